package commitlog

import (
	"sync"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// Syncs is what the rounds of all logs have in common. It bounds how many are at
// the disk at a time, since each holds a thread: the runtime ends a process that
// wants 10,000. And it syncs the directory that all partitions lie in once for
// all that have made a name in it. A nil *Syncs does neither.
type Syncs struct {
	slots chan struct{}

	turn chan struct{} // taken over the sync of a directory
	mu   sync.Mutex    // guards all below; a leaf
	next map[string]*dirSync
	lost map[string]error // by directory: its sync has failed
}

// A dirSync is a sync of a directory that has not begun.
type dirSync struct {
	done chan struct{}
	err  error // once done is closed
}

// NewSyncs makes a bound of n rounds.
func NewSyncs(n int) *Syncs {
	return &Syncs{slots: make(chan struct{}, n), turn: make(chan struct{}, 1), next: map[string]*dirSync{}, lost: map[string]error{}}
}

func (s *Syncs) acquire() {
	if s != nil {
		s.slots <- struct{}{}
	}
}

func (s *Syncs) release() {
	if s != nil {
		<-s.slots
	}
}

// syncDir makes the names in a directory durable: by one sync for all that ask
// before it begins. One that fails is the answer to them, and to all that ask
// later: names that were made before it may be dropped, and a later sync that
// succeeds does not bring them back (ST-61).
func (s *Syncs) syncDir(fsys vfs.FS, dir string, stats *Stats) error {
	if s == nil {
		stats.Syncs.Add(1)
		return fsys.SyncDir(dir)
	}
	s.mu.Lock()
	d := s.next[dir]
	if d != nil {
		s.mu.Unlock()
		<-d.done
		return d.err
	}
	d = &dirSync{done: make(chan struct{})}
	s.next[dir] = d
	s.mu.Unlock()
	defer close(d.done)

	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	delete(s.next, dir) // who asks from here on may have made a name that this one does not cover
	d.err = s.lost[dir]
	s.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	stats.Syncs.Add(1)
	if d.err = fsys.SyncDir(dir); d.err != nil {
		s.mu.Lock()
		s.lost[dir] = d.err
		s.mu.Unlock()
	}
	return d.err
}
