package segment

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Bounds of one pread of a walk over headers.
const (
	leastRead = 512
	firstRead = 4 << 10
	mostRead  = 64 << 10
)

// A walker goes from batch header to batch header through a log file. One
// pread serves as many headers as it holds; the reads grow while batches are
// small and shrink to the headers while they are large.
type walker struct {
	buf []byte // mostRead bytes; index searches use it too

	file vfs.File
	pos  int64 // of the next batch
	end  int64 // nothing is read from here on
	next int64 // the least base offset that the next batch may have

	start  int64 // the file position of buf[0]
	filled int   // bytes in buf
	read   int   // bytes that the next pread asks for
	served int   // headers that the last pread has served
}

var walkers = sync.Pool{New: func() any { return &walker{buf: make([]byte, mostRead)} }}

// walk returns a pooled walker at a batch boundary; done gives it back.
func (s *Segment) walk(file vfs.File, pos, end int64) *walker {
	w := walkers.Get().(*walker)
	w.file = file
	w.move(pos, end, s.base)
	return w
}

func (w *walker) done() {
	w.file = nil
	walkers.Put(w)
}

// move sets the walker to another place and forgets what it has read.
func (w *walker) move(pos, end, next int64) {
	w.pos, w.end, w.next = pos, end, next
	w.start, w.filled, w.read, w.served = 0, 0, firstRead, 0
}

// header returns the header at the walker's place, valid until the next call;
// io.EOF at the end. A header that can't be followed is CORRUPT_MESSAGE.
func (w *walker) header() (record.Batch, error) {
	room := w.end - w.pos
	if room <= 0 {
		return nil, io.EOF
	}
	if room < record.HeaderSize {
		return nil, corrupt(w.file, w.pos, "the file ends within its header")
	}
	if w.pos < w.start || w.pos+record.HeaderSize > w.start+int64(w.filled) {
		if err := w.fill(room); err != nil {
			return nil, err
		}
	}
	at := int(w.pos - w.start)
	h := record.Batch(w.buf[at : at+record.HeaderSize : at+record.HeaderSize])
	if why := fault(h, room, w.next); why != "" {
		return nil, corrupt(w.file, w.pos, why)
	}
	w.served++
	return h, nil
}

// skip moves behind the batch of a header.
func (w *walker) skip(h record.Batch) {
	w.next = h.LastOffset() + 1
	w.pos += int64(h.Size())
}

func (w *walker) fill(room int64) error {
	switch {
	case w.served >= 8:
		w.read = min(2*w.read, mostRead)
	case w.served == 1:
		w.read = max(w.read/2, leastRead)
	}
	w.served = 0
	n := int(min(room, int64(w.read)))
	w.start, w.filled = w.pos, 0
	if err := readFull(w.file, w.buf[:n], w.pos); err != nil {
		return err
	}
	w.filled = n
	return nil
}

// readFull reads len(buf) bytes that must be there.
func readFull(file vfs.File, buf []byte, pos int64) error {
	n, err := file.ReadAt(buf, pos)
	if err == nil || errors.Is(err, io.EOF) {
		if n == len(buf) {
			return nil
		}
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%s: read %d bytes at position %d: %w", file.Name(), len(buf), pos, err)
}

// fault says what keeps a header from being followed to the next one, or "".
// room is how many bytes there are from its first byte on, and next the least
// base offset that it may have.
func fault(h record.Batch, room, next int64) string {
	switch size := int64(h.Size()); {
	case h.MagicByte() != record.Magic:
		return "its magic is not 2"
	case size < record.HeaderSize:
		return "its length is less than a header's"
	case size > room:
		return "it ends beyond the file"
	case h.BaseOffset() < next:
		return "its offset is not after the one before"
	case h.LastOffsetDelta() < 0, h.BaseOffset() >= math.MaxInt64-math.MaxInt32:
		return "its last offset is no offset"
	}
	return ""
}

func corrupt(file vfs.File, pos int64, why string) error {
	return fmt.Errorf("%s: batch at position %d: %s: %w", file.Name(), pos, why, kerr.CorruptMessage)
}

// Batches walks the batch headers from a file position, which must be a batch
// boundary, up to the Size at its beginning, until yield is false. The header
// (no more bytes than that) is valid until yield returns. A batch that can't
// be walked ends it with an error that wraps CORRUPT_MESSAGE (ST-63).
func (s *Segment) Batches(pos int64, yield func(pos int64, header record.Batch) bool) error {
	file, err := s.logFile.acquire(0)
	if err != nil {
		return err
	}
	defer s.logFile.release()
	w := s.walk(file, pos, s.Size())
	defer w.done()
	for {
		h, err := w.header()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !yield(w.pos, h) {
			return nil
		}
		w.skip(h)
	}
}
