package txn

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

const (
	// expireEvery is transaction.remove.expired.transaction.cleanup.interval.ms.
	expireEvery = time.Hour
	// settleAfter is how long a completed transaction's row names the
	// partitions that a start has to look at: a busy producer's next
	// transaction takes the row's place before, so this costs it nothing.
	settleAfter = time.Second
)

// Recover finishes the transactions that were decided before this start, and
// looks whether the markers of those that were completed just before a crash have
// reached the disk. What can't be finished, since a partition is offline, is
// tried again by Run; its transactional id answers CONCURRENT_TRANSACTIONS until then.
func (c *Coordinator) Recover(ctx context.Context) {
	for _, t := range c.all() {
		t.mu.Lock()
		s := t.state
		t.mu.Unlock()
		if s.prepared() || len(s.Settling) > 0 {
			_ = c.recover(ctx, t, s) // it was logged
		}
	}
}

// recover finishes one. Markers that are in the logs are not written again, but flushed: a kill may have come before that.
func (c *Coordinator) recover(ctx context.Context, t *transaction, s State) error {
	if t.marked == nil {
		t.marked, t.recovered = map[metastore.TxnPartition]int64{}, true
	}
	if s.prepared() {
		_, err := c.complete(ctx, t, s)
		return err
	}
	err := c.mark(t, s, s.Settling)
	if err == nil {
		err = c.flush(ctx, s.Settling, t.marked)
	}
	if err != nil {
		c.retryLater(t, err)
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending, t.completion = false, completion{}
	return nil
}

// Run does what nobody asks for, until ctx ends, and then returns nil: it
// aborts transactions that have timed out, completes those that could not be, and forgets
// transactional ids that nobody has used for transactional.id.expiration.ms.
func (c *Coordinator) Run(ctx context.Context) error {
	expireAt := c.o.Clock.Now().Add(expireEvery)
	for c.wait(ctx) {
		now := c.o.Clock.Now()
		c.mu.Lock()
		c.wake = time.Time{}
		c.mu.Unlock()
		c.retry(ctx)
		c.abortTimedOut(ctx, now.UnixMilli())
		c.settle(ctx, now)
		if !now.Before(expireAt) {
			c.expire(ctx, now.UnixMilli())
			expireAt = now.Add(expireEvery)
		}
		c.wakeAt(expireAt)
		for _, t := range c.all() {
			due := t.now().due()
			if !due.IsZero() && !due.After(now) { // it was looked at, and is not over: the disk refuses, or another is at it
				due = now.Add(retryEvery)
			}
			c.wakeAt(due)
		}
	}
	return nil
}

// wait is false once ctx has ended, and true when something is due.
func (c *Coordinator) wait(ctx context.Context) bool {
	for {
		c.mu.Lock()
		wake := c.wake
		c.mu.Unlock()
		after := max(wake.Sub(c.o.Clock.Now()), 0)
		due := make(chan struct{})
		timer := c.o.Clock.AfterFunc(after, func() { close(due) })
		select {
		case <-due:
			return ctx.Err() == nil
		case <-c.kick:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// wakeAt has Run look no later than at; zero: whenever it does.
func (c *Coordinator) wakeAt(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at.IsZero() || !c.wake.IsZero() && !at.Before(c.wake) {
		return
	}
	c.wake = at
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// wakeFor has Run look when there is something to do.
func (c *Coordinator) wakeFor(s State) { c.wakeAt(s.due()) }

// due is when a transaction times out, or has settled; zero: neither.
func (s State) due() time.Time {
	switch {
	case s.Phase == ongoing:
		return time.UnixMilli(s.Start + int64(s.TimeoutMs) + 1)
	case len(s.Settling) > 0:
		return time.UnixMilli(s.Updated).Add(settleAfter)
	}
	return time.Time{}
}

// retry completes what could not be completed.
func (c *Coordinator) retry(ctx context.Context) {
	c.mu.Lock()
	unfinished := c.unfinished
	c.unfinished = map[*transaction]struct{}{}
	c.mu.Unlock()
	for t := range unfinished {
		_ = c.recover(ctx, t, t.now()) // it was logged
	}
}

// abortTimedOut aborts the transactions whose time is over: that fences their
// producers (TX-7, TransactionCoordinator.abortTimedOutTransactions).
func (c *Coordinator) abortTimedOut(ctx context.Context, now int64) {
	late := func(s State) bool { return s.timedOut(now) }
	for _, t := range c.all() {
		s := t.now()
		if !late(s) {
			continue
		}
		err := c.fence(ctx, t, late)
		switch {
		case err == nil:
			c.refused = false
			c.stats.TimedOut.Add(1)
			c.o.Logger.Info("a transaction has timed out and was aborted", "transactional id", s.ID, "timeout ms", s.TimeoutMs)
		case !errors.Is(err, kerr.ConcurrentTransactions) && ctx.Err() == nil:
			c.warn("transactions have timed out and can't be aborted yet; this is tried again every second", err)
			c.wakeAt(c.o.Clock.Now().Add(retryEvery))
		}
	}
}

// settle has the rows of completed transactions forget their participants, so
// that a start after a crash need not look at them. All share one commit.
func (c *Coordinator) settle(ctx context.Context, now time.Time) {
	before := now.Add(-settleAfter).UnixMilli()
	c.changeIdle(ctx, func(s State) (State, bool) {
		ok := len(s.Settling) > 0 && s.Updated <= before
		s.Settling = nil
		return s, ok
	}, func(tx *metastore.Tx, s State) error { return tx.PutTransaction(&s.Transaction) }, nil)
}

// expire forgets transactional ids (TransactionStateManager.removeExpiredTransactionalIds).
func (c *Coordinator) expire(ctx context.Context, now int64) {
	c.changeIdle(ctx, func(s State) (State, bool) {
		return s, s.Epoch != noEpoch && s.expired(now, c.o.Settings.TransactionalIDExpirationMs)
	}, func(tx *metastore.Tx, s State) error { return tx.DropTransaction(s.ID) }, func(t *transaction) {
		t.gone = true
		c.mu.Lock()
		delete(c.byID, t.state.ID)
		c.mu.Unlock()
	})
}

// changeIdle makes a change, in one commit, of those that nothing is under way of.
func (c *Coordinator) changeIdle(ctx context.Context, pick func(State) (State, bool), change func(*metastore.Tx, State) error, then func(*transaction)) {
	type pair struct {
		t    *transaction
		next State
		busy chan struct{}
	}
	var picked []pair
	for _, t := range c.all() {
		t.mu.Lock()
		if next, ok := pick(t.state); ok && t.busy == nil && !t.ending && !t.gone && t.entered == 0 {
			t.busy = make(chan struct{})
			picked = append(picked, pair{t, next, t.busy})
		}
		t.mu.Unlock()
	}
	if len(picked) == 0 {
		return
	}
	err := c.o.Store.Update(context.WithoutCancel(ctx), func(tx *metastore.Tx) error {
		for i := range picked {
			if err := change(tx, picked[i].next); err != nil {
				return err
			}
		}
		return nil
	})
	for _, p := range picked {
		p.t.mu.Lock()
		p.t.busy = nil
		close(p.busy)
		if err == nil {
			p.t.state = p.next
			if then != nil {
				then(p.t)
			}
		}
		p.t.mu.Unlock()
	}
	if err != nil {
		c.warn("rows of transactions can't be written; this is tried again every second", err)
		return
	}
	c.refused = false
}

// warn tells of the first of many refusals.
func (c *Coordinator) warn(what string, err error) {
	if !c.refused {
		c.o.Logger.Warn(what, "error", err)
	}
	c.refused = true
}
