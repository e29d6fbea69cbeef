package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/twmb/franz-go/pkg/kerr"
)

// errIndex is an index entry that its log does not bear out.
var errIndex = errors.New("the index does not match its log")

// A Region is bytes of a log file that stay readable until Release, also
// while the segment is closed or removed.
type Region struct {
	File   vfs.File
	Offset int64
	Length int
	// Release lets the file go; it must be called once. Nil if Length is 0.
	Release func()
}

// A found is a batch that a search has found; size 0: none, and pos is the end.
type found struct {
	pos          int64
	size         int
	last         int64
	maxTimestamp int64
}

// Read finds the batch that holds offset (or the next one after a gap) and
// returns a region from it on: at most maxBytes of it, but with wholeFirst at
// least the first batch entire; never past limit, a file position on a batch
// boundary (-1: Size). A region may end within a batch, but its first one is
// whole: without wholeFirst one larger than maxBytes gives nothing. Length 0:
// nothing there, Release is nil. CORRUPT_MESSAGE: the headers on the way can't be walked (ST-63).
func (s *Segment) Read(offset int64, maxBytes int, wholeFirst bool, limit int64) (Region, error) {
	file, err := s.logFile.acquire(0)
	if err != nil {
		return Region{}, err
	}
	end := s.Size()
	if limit >= 0 {
		end = min(end, limit)
	}
	pos, size, err := s.find(file, offset)
	room := end - pos
	if wholeFirst {
		maxBytes = max(maxBytes, size)
	}
	if err != nil || size == 0 || int64(size) > room || size > maxBytes {
		s.logFile.release()
		return Region{}, err
	}
	return Region{File: file, Offset: pos, Length: int(min(room, int64(maxBytes))), Release: s.logFile.letGo}, nil
}

// Position is the file position of the first batch whose last offset is at
// or after offset; Size if there is none.
func (s *Segment) Position(offset int64) (int64, error) {
	file, err := s.logFile.acquire(0)
	if err != nil {
		return 0, err
	}
	defer s.logFile.release()
	pos, _, err := s.find(file, offset)
	return pos, err
}

// find returns the position and size of the first batch whose last offset is
// at or after offset: from memory at the tail of an active segment, else by a
// lookup in the index and a walk of at most one interval (ST-7).
func (s *Segment) find(file vfs.File, offset int64) (pos int64, size int, err error) {
	s.mu.Lock()
	end := s.Size()
	if s.recent != nil && s.recent.count > 0 {
		if pos, size, ok := s.recent.find(offset, end); ok {
			s.mu.Unlock()
			return pos, size, nil
		}
	}
	s.mu.Unlock()
	f, err := s.search(file, offset, end)
	return f.pos, f.size, err
}

// search is find without the memory of recent batches, among the first end bytes.
func (s *Segment) search(file vfs.File, offset, end int64) (found, error) {
	w := s.walk(file, 0, end)
	defer w.done()
	f, err := s.locate(w, offset, end)
	if !errors.Is(err, errIndex) {
		return f, err
	}
	// The log is the truth: it is walked without the index, which is then
	// mended if it was to blame.
	wrong := err
	w.move(0, end, s.base)
	f, err = w.to(offset)
	if err == nil {
		s.repair(wrong)
	}
	return f, err
}

// locate is search by the index alone. errIndex: the index can't be read, or is wrong.
func (s *Segment) locate(w *walker, offset, end int64) (found, error) {
	e, ok, err := s.floor(&s.offsets, w, offset-s.base)
	if err != nil {
		return found{}, fmt.Errorf("%w: %w", errIndex, err)
	}
	w.move(0, end, s.base)
	if !ok {
		return w.to(offset)
	}
	// Every entry found is held against the log, so that an index that was
	// damaged behind our back costs time and no wrong answer (ST-8).
	if e.value <= 0 {
		// No entry is for the first batch: one that says position 0 is a page
		// of zeros that a power cut left, and may even be true.
		return found{}, s.wrongEntry(e)
	}
	w.move(e.value, end, s.base)
	h, err := w.header()
	if errors.Is(err, io.EOF) || errors.Is(err, kerr.CorruptMessage) || err == nil && h.LastOffset() != s.base+e.key {
		return found{}, s.wrongEntry(e)
	}
	if err != nil {
		return found{}, err
	}
	return w.to(offset)
}

func (s *Segment) wrongEntry(e entry) error {
	return fmt.Errorf("%w: entry for offset %d, position %d", errIndex, s.base+e.key, e.value)
}

// floor finds the last entry of an index whose key is at most key: in memory
// if the file can't have it, else in the file.
func (s *Segment) floor(x *index, w *walker, key int64) (entry, bool, error) {
	s.mu.Lock()
	e, ok := x.floorIn(x.tail, key)
	n := x.written
	s.mu.Unlock()
	if ok || n == 0 {
		return e, ok, nil
	}
	return x.floorInFile(w.buf, n, key)
}

// to walks to the first batch whose last offset is at or after offset.
func (w *walker) to(offset int64) (found, error) {
	for {
		h, err := w.header()
		if errors.Is(err, io.EOF) {
			return found{pos: w.end}, nil
		}
		if err != nil {
			return found{}, err
		}
		if last := h.LastOffset(); last >= offset {
			return found{w.pos, h.Size(), last, h.MaxTimestamp()}, nil
		}
		w.skip(h)
	}
}

// ReadBatch reads the whole batch at a file position, which must be a batch
// boundary. CORRUPT_MESSAGE: what is there is no batch; the checksum is not looked at.
func (s *Segment) ReadBatch(pos int64) (record.Batch, error) {
	file, err := s.logFile.acquire(0)
	if err != nil {
		return nil, err
	}
	defer s.logFile.release()
	w := s.walk(file, pos, s.Size())
	defer w.done()
	h, err := w.header()
	if errors.Is(err, io.EOF) {
		return nil, corrupt(file, pos, "the file ends before it")
	}
	if err != nil {
		return nil, err
	}
	b := make(record.Batch, h.Size()) // at most what the file has from here on
	if err := readFull(file, b, pos); err != nil {
		return nil, err
	}
	return b, nil
}
