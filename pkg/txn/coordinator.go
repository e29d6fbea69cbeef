// Package txn is the transaction coordinator: producer ids and epochs, which
// partitions and groups are in a transaction, and its end in two phases
// (KIP-98, KIP-890 with transaction.version 2).
//
// Each transactional id is a State, a pure value that transcripts in testdata/
// speak for. Around it are a mutex, never held over the disk or a wait, and a
// row in meta.db, durable before anybody is told of it.
package txn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// Options open a Coordinator. All fields are required but Clean.
type Options struct {
	Store    *metastore.Store
	Topics   *topic.Registry
	Groups   *group.Coordinator
	Clock    clock.Clock // timeouts, expiration, the timestamps of markers
	Logger   *slog.Logger
	Settings *config.Settings
	// Epoch is the broker epoch of this start, and so the coordinator epoch of every marker.
	Epoch int32
	// Clean says that the last stop flushed every log.
	Clean bool
}

// Stats count what became of transactions, for metrics.
type Stats struct {
	Committed, Aborted, TimedOut atomic.Int64
}

// A Coordinator is all transactional ids of the broker. Its methods may be
// called by any goroutine. Errors are, or wrap, kerr values: NOT_COORDINATOR
// where meta.db or a partition can't be written (ST-60), which clients try again.
type Coordinator struct {
	o     Options
	ids   *ProducerIDs
	stats Stats
	ends  sync.WaitGroup // under way
	kick  chan struct{}  // Run has to look at wake again

	closed atomic.Bool

	refused bool // of Run: it was told that the disk refuses

	mu   sync.Mutex // guards what follows; order: transactional id, coordinator
	byID map[string]*transaction
	wake time.Time // when Run has something to do; zero: nothing
	// unfinished are decided and could not be completed; Run tries again.
	unfinished map[*transaction]struct{}
}

// A transaction is one transactional id with its lock.
type transaction struct {
	c *Coordinator

	mu      sync.Mutex    // guards what follows; never held over the disk or a wait
	state   State         // as the row has it
	busy    chan struct{} // a commit is under way, and this is closed after it; nil: none
	ending  bool          // from the check of an end until it is complete: nothing else is let in
	entered int           // appends and staged offsets under way, that an end waits for
	left    chan struct{} // closed when entered is 0; nil: nobody waits
	gone    bool          // it has expired

	completion // of whoever has set ending, and then of Run
}

// A completion is how far the end of a transaction has got. One goroutine at a time is at it.
type completion struct {
	marked    map[metastore.TxnPartition]int64 // up to where a partition with its marker is to be flushed
	completed bool                             // the row says that the transaction is complete, ahead of the state
	recovered bool                             // a start has found it: markers may be in the logs already
	told      bool                             // it was logged that this takes longer
}

// Open loads the transactional ids. Recover has to follow.
func Open(o Options) (*Coordinator, error) {
	c := &Coordinator{o: o, ids: NewProducerIDs(o.Store), byID: map[string]*transaction{}, unfinished: map[*transaction]struct{}{}, kick: make(chan struct{}, 1)}
	err := o.Store.View(func(tx *metastore.Tx) error {
		for row, err := range tx.Transactions() {
			if err != nil {
				return err
			}
			if o.Clean {
				row.Settling = nil // the stop has flushed the markers
			}
			t := &transaction{c: c, state: State{row}}
			t.ending = t.state.prepared() || len(row.Settling) > 0
			c.byID[row.ID] = t
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load the transactions: %w", err)
	}
	c.wakeAt(o.Clock.Now().Add(expireEvery))
	for _, t := range c.byID {
		c.wakeFor(t.state)
	}
	return c, nil
}

// Stats are the coordinator's counters.
func (c *Coordinator) Stats() *Stats { return &c.stats }

// Close waits for the ends that are under way, whose callers have the disk to
// wait for and nothing else. What is not complete then is finished by the next
// start.
func (c *Coordinator) Close() {
	c.mu.Lock()
	c.closed.Store(true)
	c.mu.Unlock()
	c.ends.Wait()
}

// Ongoing is how many transactions are open, for metrics.
func (c *Coordinator) Ongoing() (n int) {
	for _, t := range c.all() {
		if t.now().Phase == ongoing {
			n++
		}
	}
	return n
}

// now is the state at this instant.
func (t *transaction) now() State {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

func (c *Coordinator) all() []*transaction {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]*transaction, 0, len(c.byID))
	for _, t := range c.byID {
		all = append(all, t)
	}
	return all
}

// check is for requests that name a transactional id.
func (c *Coordinator) check(id string) error {
	switch {
	case c.closed.Load():
		return kerr.CoordinatorNotAvailable
	case id == "", len(id) > metastore.MaxTransactionalID:
		return kerr.InvalidRequest
	}
	return nil
}

// lock finds a transactional id and locks it once no commit of it is under
// way. INVALID_PRODUCER_ID_MAPPING if it is not known; CONCURRENT_TRANSACTIONS while its transaction ends.
func (c *Coordinator) lock(ctx context.Context, id string) (*transaction, error) {
	if err := c.check(id); err != nil {
		return nil, err
	}
	c.mu.Lock()
	t := c.byID[id]
	c.mu.Unlock()
	if t == nil {
		return nil, kerr.InvalidProducerIDMapping
	}
	return t, t.lock(ctx)
}

// lock waits for no more than the commit of one row. After an error t is not locked.
func (t *transaction) lock(ctx context.Context) error {
	for {
		t.mu.Lock()
		busy := t.busy
		switch {
		case t.gone:
			t.mu.Unlock()
			return kerr.InvalidProducerIDMapping
		case t.ending:
			t.mu.Unlock()
			return kerr.ConcurrentTransactions
		case busy == nil:
			return nil
		}
		t.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", kerr.NotCoordinator, ctx.Err())
		}
	}
}

// put unlocks t, and returns once its next state is durable, and in force.
// extra, if set, is part of the commit. Nothing that waits for t is let in before.
func (t *transaction) put(next State, extra func(*metastore.Tx) error) error {
	busy, done := make(chan struct{}), make(chan error, 1)
	t.busy = busy
	t.c.o.Store.Submit(func(tx *metastore.Tx) error {
		if extra != nil {
			if err := extra(tx); err != nil {
				return err
			}
		}
		return tx.PutTransaction(&next.Transaction)
	}, func(err error) { done <- err })
	t.mu.Unlock()
	err := <-done
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = nil
	close(busy)
	if err != nil {
		return fmt.Errorf("transactional id %q: %w: %w", next.ID, kerr.NotCoordinator, err)
	}
	t.state = next
	return nil
}

func (c *Coordinator) nowMs() int64 { return c.o.Clock.Now().UnixMilli() }

// An InitRequest is an InitProducerId.
type InitRequest struct {
	ID        *string // nil: of an idempotent producer
	TimeoutMs int32
	Expected  *Expected // v3
}

// InitProducerID gives a producer its id and epoch, and fences the instances
// before it. An ongoing transaction of theirs is aborted first: that is
// CONCURRENT_TRANSACTIONS, and the next try succeeds. INVALID_REQUEST,
// INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED, NOT_COORDINATOR.
func (c *Coordinator) InitProducerID(ctx context.Context, req InitRequest) (producerID int64, epoch int16, err error) {
	if req.ID == nil {
		producerID, err = c.ids.Next(ctx)
		return producerID, 0, err
	}
	if err := c.check(*req.ID); err != nil {
		return 0, 0, err
	}
	if req.TimeoutMs <= 0 || int64(req.TimeoutMs) > int64(c.o.Settings.TransactionMaxTimeoutMs) {
		return 0, 0, kerr.InvalidTransactionTimeout
	}
	for {
		t, err := c.findOrMake(ctx, *req.ID)
		if err != nil {
			return 0, 0, err
		}
		next, err := c.initTransaction(ctx, t, req)
		if !errors.Is(err, kerr.InvalidProducerIDMapping) { // it has expired between the two
			return next.ProducerID, next.Epoch, err
		}
	}
}

func (c *Coordinator) initTransaction(ctx context.Context, t *transaction, req InitRequest) (State, error) {
	for fresh := noID; ; {
		if err := t.lock(ctx); err != nil {
			return State{}, err
		}
		next, err := t.state.init(req.TimeoutMs, req.Expected, fresh, c.nowMs())
		switch {
		case err == nil:
			return next, t.put(next, nil)
		case errors.Is(err, errFence):
			t.mu.Unlock()
			if err := c.fence(ctx, t, nil); err != nil {
				return State{}, err
			}
			return State{}, kerr.ConcurrentTransactions
		case errors.Is(err, errNeedsID):
			t.mu.Unlock()
			if fresh, err = c.nextID(ctx); err != nil {
				return State{}, err
			}
		default:
			t.mu.Unlock()
			return State{}, err
		}
	}
}

// findOrMake finds a transactional id, or makes one that is in memory alone until it has its first epoch.
func (c *Coordinator) findOrMake(ctx context.Context, id string) (*transaction, error) {
	c.mu.Lock()
	t := c.byID[id]
	c.mu.Unlock()
	if t != nil {
		return t, nil
	}
	fresh, err := c.nextID(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.byID[id]; t != nil {
		return t, nil
	}
	id = strings.Clone(id) // it may alias the request
	t = &transaction{c: c, state: newState(id, fresh)}
	c.byID[id] = t
	return t, nil
}

// nextID is a fresh producer id; NOT_COORDINATOR if the disk gives none.
func (c *Coordinator) nextID(ctx context.Context) (int64, error) {
	id, err := c.ids.Next(ctx)
	if err != nil {
		return noID, fmt.Errorf("%w: %w", kerr.NotCoordinator, err)
	}
	return id, nil
}
