// Package metastore is meta.db: everything of the broker that is not a record,
// as typed rows in bbolt, with a group commit.
//
// bbolt is opened with its free list synced to the file: a commit writes one
// page more, but opening reads the list instead of walking the whole tree.
// Growth is synced too (NoGrowSync off): ext4 is where most of these files live.
package metastore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// FormatVersion is the version of the data directory's layout (ST-4).
const FormatVersion = 1

const (
	lockTimeout = time.Second // ST-3

	// initialMap is how much is mapped, and so how large the file gets at its
	// first growth (it is sparse). Growth costs an fsync and waits for
	// readers, so it is better had once, early.
	initialMap = 1 << 20

	// mode lets the group write: the image runs as any user of group 0 (FX-31).
	mode fs.FileMode = 0o660
)

// A Store is an open meta.db.
type Store struct {
	db      *bbolt.DB
	o       Options
	commits atomic.Int64

	mu         sync.Mutex
	idle       sync.Cond // of mu: committing became false
	queue      []*call
	committing bool
	closed     bool
	failed     error // sticky: the commit that failed (ST-64)
}

// Options open a Store.
type Options struct {
	Path string
	// Fail, if set, is asked before each commit and may make it fail as a
	// failing disk would (faults in tests, ST-70).
	Fail func() error
	// Start, if set, is run in a transaction of its own before Open returns.
	// In a new store it is part of making it, which saves two fsyncs where a
	// broker is started for one test.
	Start func(*Tx) error
	// Logger is told, once, of a failed commit; nil for slog.Default.
	Logger *slog.Logger
}

// Open opens or creates the file. A lock held by another process is an error
// after 1 s (ST-3); it is vfs.ErrLocked. A newer format version is refused in one line (ST-4).
func Open(o Options) (*Store, error) {
	if _, err := vfs.OS.Stat(o.Path); errors.Is(err, fs.ErrNotExist) {
		if err := create(o.Path, o.Start); err != nil {
			return nil, fmt.Errorf("make %s: %w", o.Path, err)
		}
		o.Start = nil // done
	}
	if err := rescue(o.Path); err != nil {
		return nil, err
	}
	s := &Store{o: o}
	s.idle.L = &s.mu
	if s.o.Logger == nil {
		s.o.Logger = slog.Default()
	}
	if err := guarded(o.Path, s.open); err != nil {
		return nil, err
	}
	return s, nil
}

// open opens a file that is there, and looks at every page that it is going to need.
func (s *Store) open() (err error) {
	if s.db, err = openBolt(s.o.Path, false); err != nil {
		return err
	}
	err = s.View((*Tx).checkFormat)
	if err == nil {
		err = s.addBuckets()
	}
	if err == nil {
		err = s.View((*Tx).walk)
	}
	if err == nil && s.o.Start != nil {
		err = s.Update(context.Background(), s.o.Start)
	}
	if err != nil {
		_ = s.db.Close() // the first error is the one to tell, in one line
		return fmt.Errorf("%s: %w", s.o.Path, err)
	}
	return nil
}

// guarded makes an error of what bbolt does with a damaged file: it panics,
// and where the file is shorter than it says, the memory it is mapped to faults.
// The file is not closed then, since that could wait for ever for the transaction that was under way.
func guarded(path string, open func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		p := recover()
		if _, fault := p.(runtime.Error); fault {
			p = "a page is missing or garbage"
		}
		if p != nil {
			err = fmt.Errorf("%s is damaged (%v): put a copy of it back, or start with an empty data directory", path, p)
		}
	}()
	return open()
}

// openBolt opens a file; making says that it is built under another name and
// synced once at the end.
func openBolt(path string, making bool) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, mode, &bbolt.Options{
		Timeout:         lockTimeout,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: initialMap,
		NoSync:          making,
		NoGrowSync:      making,
		NoStatistics:    true,
	})
	if err != nil {
		return nil, opening(path, err)
	}
	return db, nil
}

// opening says what keeps a file from being opened.
func opening(path string, err error) error {
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%s: another broker has it open: %w for %v", path, vfs.ErrLocked, lockTimeout)
	case isPathError(err):
		return fmt.Errorf("open meta.db: %w", err) // it has the path
	}
	return fmt.Errorf("%s: not a meta.db, or a damaged one: %w", path, err)
}

func isPathError(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok
}

// Close closes the file after the last commit. Update fails from then on. The
// error is that of a commit that has failed, too: the stop was not clean then (ST-50, ST-64).
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.awaitIdleLocked()
	failed := s.failed
	s.mu.Unlock()
	return errors.Join(failed, s.db.Close())
}

func (s *Store) awaitIdleLocked() {
	for s.committing {
		s.idle.Wait()
	}
}

// View reads a consistent state: what the last commit left.
func (s *Store) View(fn func(*Tx) error) error {
	return s.db.View(func(bolt *bbolt.Tx) error {
		t := &Tx{bolt: bolt}
		return t.errorOf(fn(t))
	})
}

// WriteTo copies the committed state into w as a file that Open accepts, while
// the store is in use.
func (s *Store) WriteTo(w io.Writer) (n int64, err error) {
	err = s.db.View(func(bolt *bbolt.Tx) error {
		n, err = bolt.WriteTo(w)
		return err
	})
	return n, err
}

// Commits is how many transactions were committed since Open, for metrics.
func (s *Store) Commits() int64 { return s.commits.Load() }
