package dump

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// window is how much of a file is read at a time.
const window = 256 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A source is a file that is read through a window.
type source struct {
	file   vfs.File
	size   int64 // what is looked at: what there was at the beginning, and little more (grow)
	buf    []byte
	start  int64 // the file position of buf[0]
	filled int
	whole  []byte // the batch whose records are printed
}

func open(fsys vfs.FS, name string) (*source, error) {
	info, err := fsys.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w, but a %s", name, ErrKind, kindOfFile(info.IsDir()))
	}
	file, err := fsys.OpenFile(name, readOnly, 0)
	if err != nil {
		return nil, err
	}
	size, err := file.Size()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &source{file: file, size: size, buf: make([]byte, window)}, nil
}

func kindOfFile(dir bool) string {
	if dir {
		return "directory"
	}
	return "device"
}

// close has nothing to lose: the file was only read.
func (s *source) close() { _ = s.file.Close() }

// view returns n bytes, at most window, valid until the next call.
func (s *source) view(pos int64, n int) ([]byte, error) {
	if pos < s.start || pos+int64(n) > s.start+int64(s.filled) {
		if err := s.fill(pos, n); err != nil {
			return nil, err
		}
	}
	from := int(pos - s.start)
	return s.buf[from : from+n : from+n], nil
}

// fill reads the window that begins at pos. That n bytes are there no more is
// what a file looks like that a broker has cut back since.
func (s *source) fill(pos int64, n int) error {
	want := min(int64(len(s.buf)), s.size-pos)
	s.start, s.filled = pos, 0
	got, err := s.file.ReadAt(s.buf[:want], pos)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s at position %d: %w", s.file.Name(), pos, err)
	}
	if s.filled = got; got < n {
		return fmt.Errorf("%s: it has become shorter than %d bytes since", s.file.Name(), pos+int64(n))
	}
	return nil
}

// grow looks whether a running broker has written what was missing below end.
func (s *source) grow(end int64) bool {
	size, err := s.file.Size()
	if err != nil || size < end {
		return false
	}
	s.size, s.filled = end, 0
	return true
}

// crc is the checksum of a range, a window at a time.
func (s *source) crc(from, to int64) (sum uint32, err error) {
	for from < to {
		n := int(min(to-from, window))
		b, err := s.view(from, n)
		if err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, castagnoli, b)
		from += int64(n)
	}
	return sum, nil
}

// read returns the bytes of a batch, valid until the next call.
func (s *source) read(pos int64, n int) (record.Batch, error) {
	s.whole = s.whole[:0]
	for left := n; left > 0; {
		take := min(left, window)
		b, err := s.view(pos+int64(n-left), take)
		if err != nil {
			return nil, err
		}
		s.whole = append(s.whole, b...)
		left -= take
	}
	return s.whole, nil
}

// find returns the first position in [from, to) at which a byte is c, to if there is none.
func (s *source) find(c byte, from, to int64) (int64, error) {
	for from < to {
		n := int(min(to-from, window))
		b, err := s.view(from, min(n, max(1, int(s.start+int64(s.filled)-from))))
		if err != nil {
			return 0, err
		}
		if i := bytes.IndexByte(b, c); i >= 0 {
			return from + int64(i), nil
		}
		from += int64(len(b))
	}
	return to, nil
}
