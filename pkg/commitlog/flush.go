package commitlog

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// flusher is the state of making the log durable, guarded by Log.mu.
//
// At most one goroutine is at the disk for a log, and none when nothing waits.
// A round syncs all that there is at its beginning; who asks meanwhile is
// served by the next. So one fsync serves all that wait (ST-51). The first who
// waits does the round itself, which spares a lone producer two hand-overs
// between goroutines; the timer and those who only start a flush have a
// goroutine for it.
type flusher struct {
	dirty   obligations
	wanted  int64         // everything below is to be made durable, whether anybody waits or not
	running bool          // somebody does rounds
	rounds  int64         // how many were done
	syncing bool          // it is at the disk, without the lock
	synced  *sync.Cond    // of Log.mu: syncing has ended
	done    chan struct{} // closed after the round that runs; nil: nobody waits
	failed  error         // the log is offline for writes, for good (ST-61)
	timer   *time.Timer
	armed   bool // timer is going to fire
	ahead   bool // the first half of the active segment has been asked for
}

// obligations are what a flush has to sync besides the active segment.
type obligations struct {
	files  []vfs.File // partition.metadata, snapshots; open until synced
	dir    bool       // a name in the partition's directory
	parent bool       // the name of the directory
}

// AwaitFlushed blocks until everything below end is durable (one fsync serves
// all that wait, ST-51). KAFKA_STORAGE_ERROR: the fsync failed, for good (ST-61). It returns at
// once where acks.all.sync is off. A round at the disk that has begun is not given up when ctx ends.
func (l *Log) AwaitFlushed(ctx context.Context, end int64) error {
	if !l.o.AcksAllSync {
		return nil // ST-56
	}
	return l.awaitFlushed(ctx, end)
}

func (l *Log) awaitFlushed(ctx context.Context, end int64) error {
	for l.marks.flushed.Load() < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		done, err := l.flushOrJoin(end)
		if done == nil {
			return err
		}
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// flushOrJoin does a round, or, if somebody else is at it, returns what is
// closed after theirs. A nil channel: all below end is durable, or the error says why it never is.
func (l *Log) flushOrJoin(end int64) (done <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running {
		return l.joinLocked(end)
	}
	if unflushed, err := l.unflushedLocked(end); !unflushed {
		return nil, err
	}
	// This round covers end: nothing that is appended is left out of it.
	l.running = true
	l.roundLocked()
	if l.failed == nil && l.endedErr() == nil && l.marks.flushed.Load() < l.wanted {
		go l.runFlusher() // somebody wants more, and perhaps nobody waits
	} else {
		l.running = false
		l.synced.Broadcast()
	}
	_, err = l.unflushedLocked(end)
	return nil, err
}

// joinLocked returns what is closed after the round that runs, nil if there is nothing to wait for.
func (l *Log) joinLocked(end int64) (<-chan struct{}, error) {
	if unflushed, err := l.unflushedLocked(end); !unflushed {
		return nil, err
	}
	if l.done == nil {
		l.done = make(chan struct{})
	}
	return l.done, nil
}

// unflushedLocked says whether something below end is to be made durable
// still. If it can't be any more, that is an error.
func (l *Log) unflushedLocked(end int64) (bool, error) {
	at := l.marks.load()
	switch {
	case at.Flushed >= min(end, at.End):
		return false, nil
	case l.endedErr() != nil:
		return false, l.endedErr()
	case l.failed != nil:
		return false, l.failed
	}
	return true, nil
}

// Flushed says whether AwaitFlushed(end) would return at once, and without an error.
func (l *Log) Flushed(end int64) bool {
	return !l.o.AcksAllSync || l.marks.flushed.Load() >= end
}

// StartFlush has everything below end flushed by another goroutine: what waits
// for several logs starts all of them before it waits for the first. It never blocks.
func (l *Log) StartFlush(end int64) {
	if l.Flushed(end) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if unflushed, _ := l.unflushedLocked(end); unflushed {
		l.flushLocked(min(end, l.marks.load().End))
	}
}

// flushLocked asks for everything below end, and waits for nothing.
func (l *Log) flushLocked(end int64) {
	l.wanted = max(l.wanted, end)
	if !l.running {
		l.running = true
		go l.runFlusher()
	}
}

// runFlusher does round after round until nothing that is wanted is unflushed, running being set.
func (l *Log) runFlusher() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.failed == nil && l.endedErr() == nil && l.marks.flushed.Load() < l.wanted {
		l.roundLocked()
	}
	l.running = false
	l.synced.Broadcast()
	l.wakeWaitersLocked() // those who came after the last round do the next
}

// roundLocked makes durable what is appended so far. It lets go of the lock while it is at the disk.
func (l *Log) roundLocked() {
	end := l.marks.load().End
	job := l.takeDirtyLocked(l.active)
	l.syncing = true
	l.mu.Unlock()
	err := l.sync(job)
	l.mu.Lock()
	l.syncing = false
	l.rounds++
	l.synced.Broadcast()
	if err != nil {
		_ = l.failLocked("sync", err) // it tells the waiters
		return
	}
	l.flushedLocked(end)
}

// settleLocked makes durable what a round owes besides the batches: by a round
// of its own, unless somebody is at it. It lets go of the lock meanwhile.
func (l *Log) settleLocked() error {
	until := l.rounds
	if l.syncing {
		until++ // it has taken obligations with it
	}
	if l.dirty.any() {
		until++
	}
	for l.rounds < until && l.failed == nil {
		if l.running {
			l.synced.Wait()
			continue
		}
		l.running = true
		l.roundLocked()
		l.running = false
		l.synced.Broadcast()
		l.wakeWaitersLocked()
	}
	return l.failed
}

func (o *obligations) any() bool { return len(o.files) > 0 || o.dir || o.parent }

// A job is what one round syncs.
type job struct {
	obligations
	active *segment.Segment // nil: not it
}

// takeDirtyLocked hands the obligations over to a round. If it fails they are
// lost, which is all the same: nothing is acknowledged any more.
func (l *Log) takeDirtyLocked(active *part) job {
	j := job{obligations: l.dirty}
	l.dirty = obligations{}
	if active != nil {
		j.active = active.opened.Load()
	}
	return j
}

// sync does a round, content before names.
func (l *Log) sync(j job) error {
	l.o.Syncs.acquire()
	defer l.o.Syncs.release()
	l.o.Stats.Flushes.Add(1)
	var errs []error
	for _, f := range j.files {
		// partition.metadata: without it a power cut could leave a directory
		// that does not say whose it is. A snapshot: without it the next open
		// has a segment more to replay.
		l.o.Stats.Syncs.Add(1)
		errs = append(errs, f.Sync(), f.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if j.active != nil {
		// Without it the batches themselves are lost.
		l.o.Stats.Syncs.Add(1)
		if err := j.active.Flush(); err != nil {
			return err
		}
	}
	if j.dir {
		// Without it the newest segment may be gone, name and all.
		l.o.Stats.Syncs.Add(1)
		if err := l.names.SyncDir(l.o.Dir); err != nil {
			return err
		}
	}
	if j.parent {
		// Without it the partition's directory may be.
		return l.o.Syncs.syncDir(l.o.FS, filepath.Dir(l.o.Dir), l.o.Stats)
	}
	return nil
}

// flushedLocked publishes that everything below end is durable.
func (l *Log) flushedLocked(end int64) {
	at := l.marks.load()
	at.Flushed = max(at.Flushed, end)
	l.marks.store(at)
	l.wakeWaitersLocked()
}

func (l *Log) wakeWaitersLocked() {
	if l.done != nil {
		close(l.done)
		l.done = nil
	}
}

// failLocked takes the log offline for writes (ST-61): after a failed fsync
// the kernel may have dropped the pages, and a later one that succeeds proves
// nothing. Every waiter gets the error, and every later append. It returns what they get.
func (l *Log) failLocked(doing string, err error) error {
	if l.failed == nil {
		l.failed = l.storageError(doing, err)
		l.o.Stats.Offline.Add(1)
		l.noteFailure(-1)
		l.logger().Error("the partition is offline for writes until the broker restarts", "error", l.failed)
	}
	l.wakeWaitersLocked()
	l.synced.Broadcast()
	return l.failed
}

// dirtiedLocked sees to it that what was just appended reaches the disk: by
// the timer, ahead of a roll, or, with flush.messages, before the answer.
func (l *Log) dirtiedLocked(at mark, cfg *Config) (now bool) {
	if !l.ahead && at.size >= cfg.SegmentBytes/2 {
		// So that the sync of the roll, which appends wait for, has little left to do.
		l.ahead = true
		l.flushLocked(at.End)
	}
	l.armLocked(cfg)
	return cfg.FlushMessages > 0 && at.End-at.Flushed >= cfg.FlushMessages
}

// armLocked starts the timer (ST-52) if it does not run: real time, since it bounds
// what a real power cut may take.
func (l *Log) armLocked(cfg *Config) {
	after := l.o.FsyncInterval
	if ms := cfg.FlushMs; after <= 0 || ms < after.Milliseconds() {
		if after = time.Duration(ms) * time.Millisecond; ms > maxTimerMs {
			return // the default: never
		}
	}
	switch {
	case l.armed:
		return
	case l.timer == nil:
		l.timer = time.AfterFunc(after, l.timedFlush)
	default:
		l.timer.Reset(after)
	}
	l.armed = true
}

// maxTimerMs is the longest flush.ms that is timed, about 290 years.
const maxTimerMs = int64(1<<63-1) / int64(time.Millisecond)

func (l *Log) timedFlush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	if at := l.marks.load(); at.Flushed < at.End && l.failed == nil && l.endedErr() == nil {
		l.flushLocked(at.End)
	}
}
