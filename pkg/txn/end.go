package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// An EndRequest is an EndTxn.
type EndRequest struct {
	Producer
	Commit bool
	// Bumps: v5 and later. The epoch changes with the end, and the answer has the next one.
	Bumps bool
}

// End commits or aborts a transaction and returns once that is complete and on
// the disk: no later request of this producer meets its own transaction
// (TX-5). The producer id and epoch are those to go on with. Errors:
// INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
// CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE; NOT_COORDINATOR if the disk
// refuses, and then the outcome may be decided already: a repeat tells.
//
// The steps, of which a start does those that a crash has left undone:
//
//  1. the participants are flushed: what is committed is on the disk
//  2. the row says "prepared", durably: the outcome is decided
//  3. a marker is appended to each participant
//  4. the markers are flushed, and beside that one commit has the staged
//     offsets and the row that says "complete"; until the flush is known to be done it names the participants as settling
func (c *Coordinator) End(ctx context.Context, req EndRequest) (producerID int64, epoch int16, err error) {
	t, err := c.lock(ctx, req.ID)
	if err != nil {
		return 0, 0, err
	}
	t.mu.Unlock()
	e := ending{ProducerID: req.ProducerID, Epoch: req.Epoch, Commit: req.Commit, Bumps: req.Bumps}
	next, err := c.end(ctx, t, func(s State, fresh, now int64) (State, bool, error) { return s.end(e, fresh, now) })
	return next.ProducerID, next.Epoch, err
}

// fence aborts the ongoing transaction; with only, if that says so of it.
func (c *Coordinator) fence(ctx context.Context, t *transaction, only func(State) bool) error {
	_, err := c.end(ctx, t, func(s State, fresh, now int64) (State, bool, error) {
		if s.Phase != ongoing || only != nil && !only(s) {
			return s, true, nil // somebody else was faster
		}
		n, err := s.fence(fresh, now)
		return n, false, err
	})
	return err
}

// end decides and does an end.
func (c *Coordinator) end(ctx context.Context, t *transaction, decide func(s State, fresh, now int64) (State, bool, error)) (State, error) {
	for fresh := noID; ; {
		if err := t.lock(ctx); err != nil {
			return State{}, err
		}
		next, repeat, err := decide(t.state, fresh, c.nowMs())
		if errors.Is(err, errNeedsID) {
			t.mu.Unlock()
			if fresh, err = c.nextID(ctx); err != nil {
				return State{}, err
			}
			continue
		}
		if err != nil || repeat {
			t.mu.Unlock()
			return next, err
		}
		if err := c.beginEnd(); err != nil {
			t.mu.Unlock()
			return State{}, err
		}
		defer c.ends.Done()
		t.ending = true
		t.awaitLeftLocked()
		// From here on the client may go: what is begun is finished.
		return c.finish(context.WithoutCancel(ctx), t, next)
	}
}

// beginEnd says to Close that an end is under way.
func (c *Coordinator) beginEnd() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return kerr.CoordinatorNotAvailable
	}
	c.ends.Add(1)
	return nil
}

// awaitLeftLocked waits until what was let in before the end is in the log: so
// nothing comes behind the marker, where it would open another transaction. It lets go of the lock meanwhile.
func (t *transaction) awaitLeftLocked() {
	for t.entered > 0 {
		if t.left == nil {
			t.left = make(chan struct{})
		}
		left := t.left
		t.mu.Unlock()
		<-left
		t.mu.Lock()
	}
}

// finish does the steps of End. It is called with the lock, and returns without it.
func (c *Coordinator) finish(ctx context.Context, t *transaction, prepare State) (State, error) {
	if prepare.Phase == prepareCommit {
		t.mu.Unlock()
		// Without it a power cut after the next step could leave a committed
		// transaction without its records.
		err := c.flush(ctx, prepare.Partitions, nil)
		t.mu.Lock()
		if err != nil {
			t.ending = false
			t.mu.Unlock()
			return State{}, fmt.Errorf("transactional id %q: flush: %w: %w", prepare.ID, kerr.NotCoordinator, err)
		}
	}
	if err := t.put(prepare, nil); err != nil {
		t.mu.Lock()
		t.ending = false
		t.mu.Unlock()
		return State{}, err
	}
	t.completion = completion{marked: make(map[metastore.TxnPartition]int64, len(prepare.Partitions))}
	return c.complete(ctx, t, prepare)
}

// complete does what is left of a prepared transaction; it may be called again after an error, by one goroutine at a time.
func (c *Coordinator) complete(ctx context.Context, t *transaction, prepared State) (State, error) {
	next, err := c.tryComplete(ctx, t, prepared)
	if err != nil {
		c.retryLater(t, err)
		return State{}, fmt.Errorf("transactional id %q: %w: %w", prepared.ID, kerr.NotCoordinator, err)
	}
	if next.Phase == completeCommit {
		c.stats.Committed.Add(1)
	} else {
		c.stats.Aborted.Add(1)
	}
	c.wakeFor(next)
	return next, nil
}

func (c *Coordinator) tryComplete(ctx context.Context, t *transaction, prepared State) (State, error) {
	if err := c.mark(t, prepared, prepared.Partitions); err != nil {
		return State{}, err
	}
	next := prepared.complete(c.nowMs())
	committed := make(chan error, 1)
	if t.completed {
		committed <- nil
	} else {
		c.submitComplete(prepared, next, committed)
	}
	// Without it a power cut could take a marker of a transaction whose end the
	// client was told of, once the row has another transaction: it would be open for ever.
	flushed := c.flush(ctx, prepared.Partitions, t.marked)
	err := <-committed
	t.completed = err == nil
	if err = errors.Join(err, flushed); err != nil {
		return State{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state, t.ending, t.completion = next, false, completion{}
	return next, nil
}

// submitComplete commits the staged offsets with the row: they are seen
// exactly if the transaction is complete (TX-9).
func (c *Coordinator) submitComplete(prepared, next State, committed chan<- error) {
	producerID, _, commit := prepared.marker()
	release := c.o.Groups.HoldOffsets(prepared.Groups)
	c.o.Store.Submit(func(tx *metastore.Tx) error {
		for _, g := range prepared.Groups {
			if err := tx.EndStaged(g, producerID, commit); err != nil {
				return err
			}
		}
		return tx.PutTransaction(&next.Transaction)
	}, func(err error) {
		release()
		committed <- err
	})
}

// mark appends the markers that are not appended yet, all that it can.
func (c *Coordinator) mark(t *transaction, s State, partitions []metastore.TxnPartition) error {
	m := commitlog.Marker{CoordinatorEpoch: c.o.Epoch, Bumped: s.Bumps, Repeat: t.recovered}
	m.ProducerID, m.Epoch, m.Commit = s.marker()
	var errs []error
	for _, p := range partitions {
		if _, done := t.marked[p]; done {
			continue
		}
		log, err := c.log(p)
		if log == nil && err == nil {
			continue
		}
		var a commitlog.Appended
		if err == nil {
			a, err = log.AppendMarker(m)
		}
		switch {
		case err == nil:
			t.marked[p] = a.End
		case errors.Is(err, kerr.InvalidProducerEpoch), errors.Is(err, kerr.TransactionCoordinatorFenced):
			// Somebody has ended it here by WriteTxnMarkers. To wait for ever would help nobody.
			c.o.Logger.Warn("a marker was refused: the transaction was ended on this partition past the coordinator", "transactional id", s.ID, "error", err)
			t.marked[p] = 0
		case !gone(err):
			errs = append(errs, fmt.Errorf("marker on %s-%d: %w", p.Topic, p.Partition, err))
		}
	}
	return errors.Join(errs...)
}

// log is a participant's log; nil if its topic was deleted, with all that was in it.
func (c *Coordinator) log(p metastore.TxnPartition) (*commitlog.Log, error) {
	topic, ok := c.o.Topics.LookupID(p.TopicID)
	if !ok {
		return nil, nil
	}
	log, err := topic.Log(p.Partition)
	if err != nil && gone(err) {
		return nil, nil
	}
	return log, err
}

// gone says whether an error means that the topic was deleted.
func gone(err error) bool { return errors.Is(err, kerr.UnknownTopicOrPartition) }

// flush makes participants durable, side by side: up to their ends, or to the offsets that are given.
func (c *Coordinator) flush(ctx context.Context, partitions []metastore.TxnPartition, ends map[metastore.TxnPartition]int64) error {
	type wait struct {
		log *commitlog.Log
		end int64
	}
	var waits []wait
	var errs []error
	for _, p := range partitions {
		log, err := c.log(p)
		if err != nil {
			errs = append(errs, err)
		}
		if log == nil || err != nil {
			continue
		}
		end, ok := ends[p]
		if !ok {
			end = log.Offsets().End
		}
		waits = append(waits, wait{log, end})
	}
	for i, w := range waits {
		if i < len(waits)-1 { // the last is flushed by who waits for it, here
			w.log.StartFlush(w.end)
		}
	}
	for i := len(waits) - 1; i >= 0; i-- {
		if err := waits[i].log.AwaitFlushed(ctx, waits[i].end); err != nil && !gone(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// retryLater has Run try a complete again.
func (c *Coordinator) retryLater(t *transaction, err error) {
	if !t.told {
		t.told = true
		c.o.Logger.Warn("a transaction is decided and can't be completed yet; this is tried again every second",
			"transactional id", t.now().ID, "error", err)
	}
	c.mu.Lock()
	c.unfinished[t] = struct{}{}
	c.mu.Unlock()
	c.wakeAt(c.o.Clock.Now().Add(retryEvery))
}

const retryEvery = time.Second
