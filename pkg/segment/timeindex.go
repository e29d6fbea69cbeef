package segment

import (
	"encoding/binary"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// TimePosition is a position, on a batch boundary, at or before the first
// batch whose max timestamp is at least ts (ms); Size if the segment has none.
// From it on the headers have to be walked (LogSegment.findOffsetByTimestamp).
func (s *Segment) TimePosition(ts int64) (int64, error) {
	s.mu.Lock()
	end, largest := s.Size(), s.largest.key
	s.mu.Unlock()
	if ts > largest {
		return end, nil
	}
	file, err := s.logFile.acquire(0)
	if err != nil {
		return 0, err
	}
	defer s.logFile.release()
	e, ok, err := s.timeFloor(file, ts, end)
	if err != nil || !ok {
		return 0, err
	}
	// All batches before the one that first had e.key have smaller timestamps.
	f, err := s.search(file, s.base+e.value, end)
	if err != nil {
		return 0, err
	}
	if f.size == 0 || f.last != s.base+e.value || f.maxTimestamp != e.key {
		s.repair(errTimeIndex(e))
		return 0, nil // as if there were no index
	}
	return f.pos, nil
}

// timeFloor finds the last entry of the time index with a timestamp of at most ts.
func (s *Segment) timeFloor(file vfs.File, ts, end int64) (entry, bool, error) {
	w := s.walk(file, 0, end)
	defer w.done()
	e, ok, err := s.floor(&s.times, w, ts)
	if err != nil {
		s.repair(err)
		return entry{}, false, nil
	}
	return e, ok, nil
}

// LastTimestamp is the last timestamp (ms) in the time index of a sealed
// segment, which is the segment's largest. It opens no segment and does not hold the entry
// against the log: Open does. ok is false if the index can't tell.
func LastTimestamp(o *Options, base int64) (ts int64, ok bool) {
	file, err := o.FS.OpenFile(o.path(base, TimeIndexSuffix), readOnly, 0)
	if err != nil {
		return 0, false
	}
	defer func() { _ = file.Close() }() // only read
	size, err := file.Size()
	if err != nil || size < timeEntry || size%timeEntry != 0 {
		return 0, false
	}
	var last [timeEntry]byte
	if _, err := file.ReadAt(last[:], size-timeEntry); err != nil {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(last[:])), true
}
