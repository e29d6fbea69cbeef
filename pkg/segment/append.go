package segment

import (
	"fmt"
	"io"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// Space is allocated ahead in steps that grow with the file, so that a small
// partition reserves nothing and a large one at most mostAhead.
const (
	allocateFrom = 256 << 10
	leastAhead   = 1 << 20
	mostAhead    = 16 << 20
)

// Append writes one stamped batch at the end, with one WriteAt. indexInterval
// is index.interval.bytes. If the write fails the file is cut back, and the
// error is the write's; if that fails too it wraps ErrTorn as well, and the
// segment takes no more (ST-62). After an error Size is what it was.
//
// The time index has the max timestamp of the header, which is the records'
// own or, for LogAppendTime, what it was stamped with.
func (s *Segment) Append(b record.Batch, indexInterval int) error {
	if err := s.takes(b); err != nil {
		return err
	}
	end := s.size.Load()
	s.allocate(end + int64(len(b)))
	n, err := s.active.WriteAt(b, end)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return s.cutBack(end, err)
	}
	last, ts := b.LastOffset(), b.MaxTimestamp()
	s.next = last + 1
	if end == 0 {
		s.first.Store(ts)
	}
	s.mu.Lock()
	s.recent.add(end, last)
	s.noteLocked(end, last, ts, indexInterval)
	full := len(s.offsets.tail) >= gather*offsetEntry
	s.size.Store(end + int64(len(b)))
	s.mu.Unlock()
	if full {
		s.writeGathered()
	}
	return nil
}

// takes says why a batch can't be appended. But for ErrTorn these are faults of the caller.
func (s *Segment) takes(b record.Batch) error {
	switch {
	case s.active == nil:
		return fmt.Errorf("%s: %w", s.logFile.name, ErrSealed)
	case s.torn != nil:
		return s.torn
	case len(b) < record.HeaderSize || b.Size() != len(b):
		return fmt.Errorf("%s: append of %d bytes that are no batch", s.logFile.name, len(b))
	case b.BaseOffset() < s.next || b.LastOffsetDelta() < 0:
		return fmt.Errorf("%s: append of offsets %d to %d where %d is next",
			s.logFile.name, b.BaseOffset(), b.LastOffset(), s.next)
	case s.IndexFull(b.LastOffset()):
		return fmt.Errorf("%s: append of offset %d at %d bytes, beyond what an index can say",
			s.logFile.name, b.LastOffset(), s.Size())
	}
	return nil
}

// cutBack undoes a write that failed part-way: what it left must not be read
// by a recovery, nor lie behind a shorter batch that is written over it.
func (s *Segment) cutBack(end int64, cause error) error {
	s.allocated = end
	if err := s.active.Truncate(end); err != nil {
		s.torn = fmt.Errorf("%s: %w: %w; then %w", s.logFile.name, ErrTorn, cause, err)
		return s.torn
	}
	return cause
}

// allocate reserves blocks ahead of a write that ends at end, without changing
// the file's size: recovery never sees them. It is an optimisation (fewer
// extents, less work per append), so no error of it matters: if there is no
// room for the batch itself, its write says so.
func (s *Segment) allocate(end int64) {
	if end <= s.allocated || end < allocateFrom {
		return
	}
	ahead := min(max(end, leastAhead), mostAhead)
	from := s.size.Load()
	if err := s.active.Allocate(from, end+ahead-from); err != nil {
		ahead = leastAhead // try again when this much has been written
	}
	s.allocated = end + ahead
}

// trim gives back what was allocated ahead.
func (s *Segment) trim() error {
	size := s.size.Load()
	if s.allocated <= size || s.torn != nil {
		return nil
	}
	if err := s.active.Truncate(size); err != nil {
		return err
	}
	s.allocated = size
	return nil
}

// writeGathered writes index entries for the sake of memory only: an error
// leaves them there, and the next Append tries again.
func (s *Segment) writeGathered() {
	if err := s.WriteIndexes(false); err != nil {
		s.opts.log().Warn("index entries could not be written and stay in memory", "file", s.logFile.name, "error", err)
	}
}

// Flush makes the log durable (fdatasync). It may run beside Append and
// covers what was appended before it began. Its errors wrap ErrSync. A sealed
// segment is durable already.
func (s *Segment) Flush() error {
	if s.sealed.Load() {
		return nil
	}
	file, err := s.logFile.acquire(0)
	if err != nil {
		return err
	}
	defer s.logFile.release()
	// Without it a power cut loses the batches, the acknowledged ones too.
	return syncFile(file)
}

// Seal trims what was allocated ahead, writes the indexes (an empty .txnindex too, so
// that missing and empty differ) and makes the content of all durable; the names of the
// indexes are so once the caller has synced the directory, as it must for the next segment's.
// The segment takes no more after it. After an error it is as before: an error that wraps ErrSync is final for
// the log, after any other Append and Seal may be tried again.
func (s *Segment) Seal() error {
	if s.active == nil {
		return nil
	}
	if s.torn != nil {
		return s.torn
	}
	if err := s.trim(); err != nil {
		return err
	}
	// Without it a power cut could take batches of a segment that recovery
	// does not read again, since it has a successor (ST-54).
	if err := syncFile(s.active); err != nil {
		return err
	}
	if err := s.WriteIndexes(true); err != nil {
		return err
	}
	s.indexMu.Lock()
	s.repaired = false // a wrong index of the active segment can be rebuilt from now on
	s.indexMu.Unlock()
	s.sealed.Store(true)
	s.mu.Lock()
	s.recent = nil
	s.offsets.tail, s.times.tail = nil, nil // empty; let their memory go
	s.mu.Unlock()
	s.unpin()
	return nil
}
