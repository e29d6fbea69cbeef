package commitlog

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// makeRoomLocked sees to it that the active segment can take a batch: it makes
// the first one, or rolls. It is false if it has waited for a running flush
// instead, and let go of the lock meanwhile.
func (l *Log) makeRoomLocked(b record.Batch, maxTimestamp, now int64, cfg *Config) (ready bool, err error) {
	if err := l.makeDirLocked(); err != nil {
		return false, l.storageError("make the partition's directory", err)
	}
	if l.active != nil && !l.needsRollLocked(b, maxTimestamp, now, cfg) {
		return true, nil
	}
	if l.syncing {
		// The flusher has taken the obligations with it: names that it has not
		// synced yet would pass for durable once the segment is sealed.
		l.synced.Wait()
		return false, nil
	}
	return true, l.rollLocked(now, cfg)
}

// needsRollLocked is LogSegment.shouldRoll (ST-6).
func (l *Log) needsRollLocked(b record.Batch, maxTimestamp, now int64, cfg *Config) bool {
	if l.sealed {
		return true
	}
	s := l.active.opened.Load()
	size := s.Size()
	// The offset of the batch's last record, once it is stamped.
	if size > cfg.SegmentBytes-int64(len(b)) || s.IndexFull(l.marks.load().End+int64(b.LastOffsetDelta())) {
		return true
	}
	if size == 0 {
		return false
	}
	waited := now - l.created
	if first := s.FirstTimestamp(); first >= 0 {
		waited = maxTimestamp - first
	}
	return waited > cfg.SegmentMs-l.jitterMs
}

// rollLocked seals the active segment and makes its successor; without an
// active one it makes the first. After an error that is no failed sync it can
// be tried again from where it stopped.
func (l *Log) rollLocked(now int64, cfg *Config) error {
	if l.active != nil {
		if err := l.sealLocked(); err != nil {
			return err
		}
	}
	at := l.marks.load()
	s, err := l.createLocked(at.End)
	if err != nil {
		return l.storageError("make a segment", err)
	}
	if l.active != nil {
		l.o.Stats.Rolls.Add(1)
	}
	l.active, l.sealed = newPart(at.End, s), false
	l.created, l.jitterMs = now, jitter(cfg)
	l.dirty.dir, l.ahead, l.touched = true, false, true
	parts := append((*l.parts.Load())[:len(*l.parts.Load()):len(*l.parts.Load())], l.active)
	l.parts.Store(&parts)
	at.base, at.size = at.End, 0
	l.marks.store(at)
	if l.dropPartsLocked(); len(l.dropped) > 0 {
		go l.removeDropped()
	}
	return nil
}

// Roll seals the active segment, if it has records, and makes its successor:
// retention and compaction then may have it. KAFKA_STORAGE_ERROR if the disk failed.
func (l *Log) Roll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if err := l.writableLocked(); err != nil {
			return err
		}
		switch {
		case l.active == nil || l.active.bytes() == 0:
			return nil
		case !l.syncing:
			return l.rollLocked(l.o.Clock.Now().UnixMilli(), l.config.Load())
		}
		l.synced.Wait() // as makeRoomLocked
	}
}

// createLocked makes the segment of an end offset. A file of that name can only be one
// that an attempt before left behind: no part has it, so nothing was acknowledged from it.
func (l *Log) createLocked(base int64) (*segment.Segment, error) {
	s, err := segment.Create(&l.segment, base)
	if !errors.Is(err, fs.ErrExist) {
		return s, err
	}
	if err := l.o.FS.Remove(l.path(segment.FileName(base, segment.LogSuffix))); err != nil {
		return nil, err
	}
	return segment.Create(&l.segment, base)
}

// sealLocked makes the active segment durable to the last byte, with its name:
// recovery does not read it again once it has a successor (ST-54). The
// snapshot of the producers comes before the successor, too, so that an open
// replays one segment at most (ST-9).
func (l *Log) sealLocked() error {
	if !l.sealed {
		s := l.active.opened.Load()
		l.o.Stats.Syncs.Add(3) // the log and its two indexes
		if err := s.Seal(); err != nil {
			if errors.Is(err, segment.ErrSync) {
				return l.failLocked("seal a segment", err)
			}
			return l.storageError("seal a segment", err)
		}
		l.sealed = true
		if err := l.sync(l.takeDirtyLocked(nil)); err != nil {
			return l.failLocked("sync the partition's directory", err)
		}
		l.flushedLocked(l.marks.load().End)
	}
	if err := l.saveSnapshotLocked(); err != nil {
		return l.storageError("write the producer snapshot", err)
	}
	if at := l.marks.load(); at.LogStart == at.End {
		// All of the segment is deleted, so that an open removes it as soon as
		// it has a successor: without this sync a power cut takes the producers with it (ST-9).
		if err := l.sync(l.takeDirtyLocked(nil)); err != nil {
			return l.failLocked("sync the producer snapshot", err)
		}
	}
	return nil
}

// jitter is by how much a segment rolls early (LogConfig.randomSegmentJitter), in ms.
func jitter(cfg *Config) int64 {
	if n := min(cfg.SegmentJitterMs, cfg.SegmentMs); n > 0 {
		return rand.Int64N(n)
	}
	return 0
}

func (l *Log) path(name string) string { return filepath.Join(l.o.Dir, name) }
