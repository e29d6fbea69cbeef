package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// snapshotSuffix is that of the producers' state; before it stands the offset in 20 digits.
const snapshotSuffix = ".snapshot"

// keptSnapshots is how many stay on disk: the newest, and the newest at or
// below the base of the active segment, which is where an open after an unclean
// stop begins. After a roll that is the one before, in case the newest is torn: every
// segment but the last was durable before its successor, so that a recovered log never ends
// before its newest roll. While the name of the active segment is not durable, one more stays.
const keptSnapshots = 2

// saveSnapshotLocked writes the state at the end of the log, also an empty
// one: without it the next open would have the whole log to replay.
func (l *Log) saveSnapshotLocked() error {
	at, err := l.bindingLocked()
	if err != nil {
		return err
	}
	if l.saved == at.Offset {
		return nil // a roll that is tried again
	}
	named := !l.dirty.dir && !l.syncing
	if err := l.writeFileLocked(segment.FileName(at.Offset, snapshotSuffix), l.producers.Encode(nil, at)); err != nil {
		return err
	}
	if !slices.Contains(l.snapshots, at.Offset) {
		l.snapshots = append(l.snapshots, at.Offset)
	}
	l.saved = at.Offset
	l.pruneSnapshotsLocked(named)
	return nil
}

// pruneSnapshotsLocked removes the snapshots that no open would take. named
// says that the name of the active segment is durable. As long as it is not, a
// power cut may take it, and the open after it begins with the segment before.
func (l *Log) pruneSnapshotsLocked(named bool) {
	start, before := int64(-1), int64(-1) // where an open after an unclean stop begins, and where it would
	for _, s := range l.snapshots {
		if s <= l.active.base {
			start, before = s, start
		}
	}
	l.snapshots = slices.DeleteFunc(l.snapshots, func(s int64) bool {
		if s == start || s == l.saved || s == before && !named {
			return false
		}
		// One that comes back after a power cut is as good as it was.
		if err := l.removeFile(segment.FileName(s, snapshotSuffix)); err != nil {
			l.logger().Warn("an old producer snapshot stays", "error", err)
		}
		return true
	})
}

// bindingLocked is what ties a snapshot to the end of the log.
func (l *Log) bindingLocked() (producer.Binding, error) {
	end := l.marks.load().End
	if l.known && l.last.Offset == end {
		return l.last, nil
	}
	h, ok, err := l.batchBefore(end)
	if err != nil {
		return producer.Binding{}, err
	}
	l.last, l.known = producer.Binding{Offset: end, After: ok}, true
	if ok {
		l.last.CRC = h.CRC()
	}
	return l.last, nil
}

// batchBefore is the header of the batch that ends right before an offset.
func (l *Log) batchBefore(offset int64) (h record.Batch, ok bool, err error) {
	parts := *l.parts.Load()
	i := find(parts, offset-1)
	if i < 0 {
		return nil, false, nil
	}
	h, ok, err = l.headerAt(parts[i], offset-1)
	return h, ok && h.LastOffset() == offset-1, err
}

// readSnapshot reads the snapshot of an offset and holds it against the log.
// Where the batch before it is gone with an old segment, its own checksum has to do.
func (l *Log) readSnapshot(offset int64) (*producer.State, error) {
	content, err := vfs.ReadFile(l.o.FS, l.path(segment.FileName(offset, snapshotSuffix)))
	if err != nil {
		return nil, err
	}
	s, at, err := producer.Decode(content)
	if err != nil {
		return nil, err
	}
	if at.Offset != offset {
		return nil, fmt.Errorf("%w: it is that of offset %d", producer.ErrSnapshot, at.Offset)
	}
	if parts := *l.parts.Load(); offset == parts[0].base {
		return s, nil
	}
	h, ok, err := l.batchBefore(offset)
	if err != nil {
		return nil, err
	}
	if !ok || !at.Fits(h.CRC()) {
		return nil, fmt.Errorf("%w: the log before offset %d is another", producer.ErrSnapshot, offset)
	}
	return s, nil
}

// newestSnapshot is the newest usable state of an offset from least to most.
// Those that are of no use are told of and passed over.
func (l *Log) newestSnapshot(least, most int64) (*producer.State, int64) {
	for _, offset := range slices.Backward(l.snapshots) {
		if offset < least || offset > most {
			continue
		}
		s, err := l.readSnapshot(offset)
		if err == nil {
			return s, offset
		}
		l.logger().Warn("a producer snapshot is passed over", "offset", offset, "error", err)
	}
	return nil, -1
}

// removeFile removes a file of the directory; one that is not there is no error.
func (l *Log) removeFile(name string) error {
	if err := l.o.FS.Remove(l.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
