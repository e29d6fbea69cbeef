package commitlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// HighWatermark is what CheckStart takes for the high watermark, whatever it is.
const HighWatermark = -1

// CheckStart says where the log is to begin for a client that wants everything
// below offset deleted (Partition.deleteRecordsOnLeader): at offset, at the high
// watermark for HighWatermark, and where it begins now if that is higher. POLICY_VIOLATION for a topic that is
// compacted and not deleted from; OFFSET_OUT_OF_RANGE for an offset below 0 or above the high watermark.
//
// What is to be deleted is made durable before the answer, so that no power cut leaves a log that ends below its start.
func (l *Log) CheckStart(ctx context.Context, offset int64) (start int64, err error) {
	at := l.marks.load()
	if cfg := l.config.Load(); cfg.Compact && !cfg.Delete {
		return -1, fmt.Errorf("%s: records of a compacted topic are deleted by tombstones: %w", l.name, kerr.PolicyViolation)
	}
	if offset == HighWatermark {
		offset = at.HighWatermark
	}
	if offset < 0 || offset > at.HighWatermark {
		return -1, fmt.Errorf("%s: records up to %d can't be deleted, the high watermark is %d: %w", l.name, offset, at.HighWatermark, kerr.OffsetOutOfRange)
	}
	if err := l.AwaitFlushed(ctx, offset); err != nil {
		return -1, err
	}
	return l.prepareStart(offset)
}

// prepareStart does what has to be durable before a start is in meta.db: from
// then on an open removes what is below. A snapshot at the end of a segment stands for all of it, so
// that without this a power cut could take the producers with both (ST-9).
func (l *Log) prepareStart(start int64) (int64, error) {
	if at := l.marks.load().LogStart; start <= at {
		return at, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.settleLocked(); err != nil {
		return -1, err
	}
	return start, l.endedErr()
}

// MoveStart makes the log begin at start, which CheckStart or Expired has told
// and the caller has made durable in meta.db: what a consumer has been told is gone
// must not be back after a power cut (ST-34). It never moves the start back. Segments wholly below it are removed, oldest
// first, but never the active one (ST-32); readers in flight keep their files.
//
// KAFKA_STORAGE_ERROR: the start has moved, but files are still there. Another
// MoveStart, or the next Open, removes them.
func (l *Log) MoveStart(start int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.endedErr(); err != nil {
		return err
	}
	if at := l.marks.load(); start > at.LogStart {
		at.LogStart = start
		at.LastStable = max(at.LastStable, start)
		// Marks before parts: a reader that finds its part gone finds the new start, too.
		l.marks.store(at)
		l.dropPartsLocked()
		l.watchers.wake()
	}
	return l.removeDroppedLocked()
}

// dropPartsLocked takes the parts wholly below the log start off the list.
func (l *Log) dropPartsLocked() {
	parts := *l.parts.Load()
	n := below(parts, l.marks.load().LogStart)
	if n == 0 {
		return
	}
	dropped, kept := parts[:n:n], parts[n:]
	l.parts.Store(&kept)
	for _, p := range dropped {
		p.gone.Store(true) // after the list: who meets it looks at the list again
	}
	l.dropped = append(l.dropped, dropped...)
}

// below is how many of the parts lie wholly below an offset. The last never does.
func below(parts []*part, offset int64) (n int) {
	for n+1 < len(parts) && parts[n+1].base <= offset {
		n++
	}
	return n
}

// removeDropped is for the segment that a roll has made removable: all of it had been deleted before.
func (l *Log) removeDropped() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.removeDroppedLocked() // it is told of, and what is left is removed later
}

// removeDroppedLocked removes the files of dropped parts. It lets go of the
// lock while it is at the disk.
func (l *Log) removeDroppedLocked() error {
	for l.removing {
		l.synced.Wait()
	}
	if len(l.dropped) == 0 || l.endedErr() != nil {
		return nil
	}
	l.removing = true
	defer func() {
		l.removing = false
		l.synced.Broadcast()
	}()
	// Whatever was rolled meanwhile: the name of the segment that follows those
	// that go, and the snapshot at its start. Without it a power cut could take all three.
	if err := l.settleLocked(); err != nil {
		return err
	}
	dropped := l.dropped
	snapshots := l.oldSnapshotsLocked()
	l.dropped = nil
	l.mu.Unlock()
	n, err := l.unlink(dropped, snapshots)
	l.mu.Lock()
	l.dropped = append(dropped[n:len(dropped):len(dropped)], l.dropped...)
	switch {
	case errors.Is(err, segment.ErrSync):
		return l.failLocked("sync the partition's directory", err)
	case err != nil:
		l.logger().Warn("files below the log start stay", "segments", len(l.dropped), "error", err)
		return l.storageError("remove a segment", err)
	}
	return nil
}

// oldSnapshotsLocked takes the snapshots below the first part off the list.
func (l *Log) oldSnapshotsLocked() (names []string) {
	first := (*l.parts.Load())[0].base
	for len(l.snapshots) > 0 && l.snapshots[0] < first {
		names = append(names, segment.FileName(l.snapshots[0], snapshotSuffix))
		l.snapshots = l.snapshots[1:]
	}
	return names
}

// unlink removes parts, oldest first, so that what a power cut leaves of them
// is the end of the log's history, and the snapshots below them. n are removed.
func (l *Log) unlink(parts []*part, snapshots []string) (n int, err error) {
	for _, name := range snapshots {
		if err := l.removeFile(name); err != nil {
			return 0, err
		}
	}
	for _, p := range parts {
		if err := l.removePart(p); err != nil {
			return n, err
		}
		n++
		l.o.Stats.Removed.Add(1)
	}
	// Without it a power cut brings back what a client was told is deleted.
	// The next Open would remove it again, but the disk would be as full as before until then.
	l.o.Stats.Syncs.Add(1)
	if err := l.names.SyncDir(l.o.Dir); err != nil {
		return n, fmt.Errorf("%w: %w", segment.ErrSync, err)
	}
	return n, nil
}

// removePart unlinks the files of a part, the log last.
func (l *Log) removePart(p *part) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.opened.Load(); s != nil {
		if err := s.Remove(); err != nil || !p.emptied {
			return err
		}
		return l.wantRemoved(p)
	}
	for _, name := range segmentFiles(p.base) {
		if err := l.removeFile(name); err != nil {
			return err
		}
	}
	return nil
}

// wantRemoved is an error while somebody reads a log that can't be unlinked for as long. What is below the log start goes with its last
// reader, or at the next start; what was emptied would be there again then.
func (l *Log) wantRemoved(p *part) error {
	name := segment.FileName(p.base, segment.LogSuffix)
	switch _, err := l.o.FS.Stat(l.path(name)); {
	case err == nil:
		return fmt.Errorf("%s is being read, and can't be removed before that ends", name)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// segmentFiles are the names of a segment's files, the log last, so that no
// index is ever without its log.
func segmentFiles(base int64) []string {
	return []string{
		segment.FileName(base, segment.IndexSuffix), segment.FileName(base, segment.TimeIndexSuffix),
		segment.FileName(base, segment.TxnIndexSuffix), segment.FileName(base, segment.LogSuffix),
	}
}

// errGone is wrapped by the errors of reads that met a part that has been
// removed meanwhile, or its log rewritten: what they wanted of it is below the log start by now, or in another file.
var errGone = fmt.Errorf("the segment has been removed: %w", kerr.OffsetOutOfRange)

// again repeats a lookup that met such a part, on the parts of by then.
func again[T any](look func() (T, error)) (T, error) {
	for {
		v, err := look()
		if !errors.Is(err, errGone) {
			return v, err
		}
	}
}
