package metastore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.etcd.io/bbolt"
)

var errClosed = errors.New("meta.db is closed")

// A call is one Update on its way.
type call struct {
	fn       func(*Tx) error
	err      error
	panicked any
	done     chan struct{} // closed once err is final
}

// Update queues fn for the next commit and waits until it is durable. An error
// of fn takes back fn's changes alone and is returned; fn runs once. It must not
// wait for anything but the Tx, as others' changes wait for it.
//
// If ctx ends while fn is queued, it does not run and the error is ctx's; once
// it has run, Update waits for the commit all the same.
//
// A failed commit is KAFKA_STORAGE_ERROR for all that were in it. It stops all
// further commits until the store is opened again (ST-64), unless the disk was
// full when pages were written: then nothing was changed and the next may succeed.
//
// Whoever finds no commit under way makes one, with what has queued; what
// queued meanwhile is committed by a goroutine that ends when the queue is empty.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, lead, err := s.enqueue(fn)
	if err != nil {
		return err
	}
	if lead {
		s.lead()
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if s.withdraw(c) {
			return ctx.Err()
		}
		<-c.done
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.err
}

// Submit queues fn as Update does and returns at once, so that a caller that
// holds a lock has its changes committed in the order it made them: with
// those of Update, calls run in the order they came. then is called
// once with the outcome, in a goroutine of its own.
func (s *Store) Submit(fn func(*Tx) error, then func(error)) {
	c, lead, err := s.enqueue(fn)
	go func() {
		if err == nil {
			if lead {
				s.lead()
			}
			<-c.done
			if c.panicked != nil {
				panic(c.panicked)
			}
			err = c.err
		}
		then(err)
	}()
}

// enqueue queues a call. lead says that no commit is under way and the caller makes one.
func (s *Store) enqueue(fn func(*Tx) error) (c *call, lead bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(); err != nil {
		return nil, false, err
	}
	c = &call{fn: fn, done: make(chan struct{})}
	s.queue = append(s.queue, c)
	lead = !s.committing
	s.committing = true
	return c, lead, nil
}

// lead commits what is queued, and leaves to a goroutine what queues meanwhile.
func (s *Store) lead() {
	if s.commitQueued() {
		go func() {
			for s.commitQueued() {
			}
		}()
	}
}

func (s *Store) refusalLocked() error {
	if s.closed {
		return errClosed
	}
	return s.failed
}

// withdraw takes a call out of the queue; false if it has left it.
func (s *Store) withdraw(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.queue, c)
	if i < 0 {
		return false
	}
	s.queue = slices.Delete(s.queue, i, i+1)
	return true
}

// commitQueued commits what is queued, and says whether more has come
// meanwhile. The caller has set committing; it is reset when nothing is left.
func (s *Store) commitQueued() (more bool) {
	s.mu.Lock()
	batch, failed := s.queue, s.failed
	s.queue = nil
	s.mu.Unlock()

	if failed == nil {
		failed = s.commit(batch)
	} else {
		failAll(batch, failed) // they queued before the commit failed
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = failed
	for _, c := range batch {
		close(c.done)
	}
	if len(s.queue) > 0 {
		return true
	}
	s.committing = false
	s.idle.Broadcast()
	return false
}

// commit runs a batch in one transaction. sticky is the error that ends all commits.
func (s *Store) commit(batch []*call) (sticky error) {
	bolt, err := s.db.Begin(true)
	if err != nil {
		failAll(batch, fmt.Errorf("begin in meta.db: %w", err))
		return nil
	}
	changed := false
	for _, c := range batch {
		changed = c.run(bolt) || changed
	}
	if !changed { // nothing to make durable: no fsync
		failAll(batch, bolt.Rollback())
		return nil
	}
	before := int64(bolt.ID()) - 1
	if s.o.Fail != nil {
		err = s.o.Fail()
	}
	if err != nil {
		err = errors.Join(err, bolt.Rollback())
	} else if err = bolt.Commit(); err == nil {
		s.commits.Add(1)
		return nil
	}
	err = fmt.Errorf("commit to meta.db: %w: %w", kerr.KafkaStorageError, err)
	failAll(batch, err)
	if isDiskFull(err) && s.committedID() == before {
		s.o.Logger.Warn("meta.db: the disk is full, a change was refused", "error", err)
		return nil
	}
	s.o.Logger.Error("meta.db: a commit failed; topics, groups and transactions can't be changed until the broker is restarted", "error", err)
	s.noteFailure()
	return err
}

// failAll gives err to the calls that have no error of their own.
func failAll(batch []*call, err error) {
	for _, c := range batch {
		if c.err == nil {
			c.err = err
		}
	}
}

// committedID is the id of the transaction that readers see.
func (s *Store) committedID() (id int64) {
	err := s.db.View(func(bolt *bbolt.Tx) error {
		id = int64(bolt.ID())
		return nil
	})
	if err != nil {
		return -1
	}
	return id
}

// isDiskFull says whether a commit failed because a write found no room. That
// is known to have changed nothing: bbolt writes to pages that no reader
// sees, syncs them, and only then writes the page that makes them seen, in
// place. ENOSPC from an fsync is none of it: pages may be lost for good (ST-61).
func isDiskFull(err error) bool {
	pe, ok := errors.AsType[*fs.PathError](err)
	return ok && pe.Op == "write" && slices.ContainsFunc(fullErrors, func(e syscall.Errno) bool { return errors.Is(pe.Err, e) })
}

// run runs a call's closure; its changes are taken back if it fails.
func (c *call) run(bolt *bbolt.Tx) (changed bool) {
	t := &Tx{bolt: bolt, writable: true}
	defer func() {
		if c.panicked = recover(); c.panicked != nil || c.err != nil {
			t.undo()
			changed = false
		}
	}()
	c.err = t.errorOf(c.fn(t))
	return len(t.changes) > 0
}
