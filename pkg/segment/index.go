package segment

import (
	"encoding/binary"
	"fmt"
	"io"
	"sort"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// Sizes of index entries: a key and an int32 value (FORMAT.md).
const (
	offsetEntry = 8  // relative offset int32, position int32
	timeEntry   = 12 // timestamp int64, relative offset int32
)

// gather is how many entries an index keeps in memory before Append writes
// them: at the default interval, one write of a few KB for 2 MiB of log.
const gather = 512

// An entry of an index: relative offset to position, or timestamp to relative offset.
type entry struct{ key, value int64 }

// before says whether e may stand before f in an index.
func (e entry) before(f entry) bool { return e.key < f.key && e.value < f.value }

// An index is one of the two sorted indexes of a segment: a file of entries,
// and in memory those that are not yet in it. The segment's mu guards all but the file.
type index struct {
	file *handle
	size int // of an entry

	made    bool   // the file is there and holds nothing after the written entries
	written int    // entries in the file
	tail    []byte // the entries after them, encoded
	last    entry  // the last entry, if there is one
	has     bool
}

func newIndex(o *Options, name string, entrySize int) index {
	return index{file: newHandle(o, name, readWrite), size: entrySize}
}

func (x *index) addLocked(e entry) {
	if x.size == offsetEntry {
		x.tail = binary.BigEndian.AppendUint32(x.tail, uint32(e.key))
	} else {
		x.tail = binary.BigEndian.AppendUint64(x.tail, uint64(e.key))
	}
	x.tail = binary.BigEndian.AppendUint32(x.tail, uint32(e.value))
	x.last, x.has = e, true
}

func (x *index) decode(b []byte) entry {
	if x.size == offsetEntry {
		return entry{int64(int32(binary.BigEndian.Uint32(b))), int64(int32(binary.BigEndian.Uint32(b[4:])))}
	}
	return entry{int64(binary.BigEndian.Uint64(b)), int64(int32(binary.BigEndian.Uint32(b[8:])))}
}

// floorIn finds the last of the entries in b whose key is at most key.
func (x *index) floorIn(b []byte, key int64) (entry, bool) {
	n := sort.Search(len(b)/x.size, func(i int) bool { return x.decode(b[i*x.size:]).key > key })
	if n == 0 {
		return entry{}, false
	}
	return x.decode(b[(n-1)*x.size:]), true
}

// floorInFile does the same among the first n entries of the file, by pread:
// it halves until what is left fits one read. buf is scratch.
func (x *index) floorInFile(buf []byte, n int, key int64) (e entry, ok bool, err error) {
	file, err := x.file.acquire(0)
	if err != nil {
		return entry{}, false, err
	}
	defer x.file.release()
	block := firstRead / x.size
	lo, hi := 0, n // the entry is in [lo, hi), or, if lo is 0, there is none
	for hi-lo > block {
		mid := int(uint(lo+hi) / 2)
		e, err := x.read(file, buf, mid)
		if err != nil {
			return entry{}, false, err
		}
		if e.key <= key {
			lo = mid
		} else {
			hi = mid
		}
	}
	b := buf[:(hi-lo)*x.size]
	if err := readFull(file, b, int64(lo)*int64(x.size)); err != nil {
		return entry{}, false, err
	}
	e, ok = x.floorIn(b, key)
	return e, ok, nil
}

// read decodes the entry i of the file.
func (x *index) read(file vfs.File, buf []byte, i int) (entry, error) {
	b := buf[:x.size]
	if err := readFull(file, b, int64(i)*int64(x.size)); err != nil {
		return entry{}, err
	}
	return x.decode(b), nil
}

// resetLocked forgets all entries. The file is cut when it is next written.
func (x *index) resetLocked() {
	// Lookups read file and size without the lock.
	x.made, x.written, x.tail, x.last, x.has = false, 0, nil, entry{}, false
}

// writeIndex moves an index's entries from memory to its file. Lookups go on
// beside it. After an error they are still in memory, and a later write goes
// to the same place. indexMu is held.
func (s *Segment) writeIndex(x *index, sync bool) error {
	file, err := x.file.acquire(createFlag)
	if err != nil {
		return err
	}
	defer x.file.release()
	s.mu.Lock()
	made, at, tail := x.made, int64(x.written)*int64(x.size), x.tail
	s.mu.Unlock()
	if !made {
		// Entries of before a crash or a rebuild must not follow ours.
		if err := file.Truncate(0); err != nil {
			return err
		}
	}
	if len(tail) > 0 {
		if err := writeFull(file, tail, at); err != nil {
			return err
		}
	}
	s.mu.Lock()
	x.made = true
	x.written += len(tail) / x.size
	x.tail = append(x.tail[:0], x.tail[len(tail):]...)
	s.mu.Unlock()
	if !sync {
		return nil
	}
	// Without it a power cut after a clean stop or a roll may lose entries,
	// and the next open reads the whole log to make them again.
	return syncFile(file)
}

// writeFull writes all of b.
func writeFull(file vfs.File, b []byte, at int64) error {
	n, err := file.WriteAt(b, at)
	if err == nil && n < len(b) {
		err = fmt.Errorf("%s: wrote %d of %d bytes: %w", file.Name(), n, len(b), io.ErrShortWrite)
	}
	return err
}

// WriteIndexes writes the index entries that are still only in memory,
// and makes the files if there are none. With sync they become durable too, with the largest
// timestamp as the last entry of .timeindex: what a clean stop needs. It may run beside Append.
// After an error nothing is lost but time: the entries stay in memory.
func (s *Segment) WriteIndexes(sync bool) error {
	s.indexMu.Lock()
	defer s.indexMu.Unlock()
	return s.writeIndexes(sync)
}

// writeIndexes is WriteIndexes with indexMu held.
func (s *Segment) writeIndexes(sync bool) error {
	if sync {
		s.mu.Lock()
		s.noteLargestLocked()
		s.mu.Unlock()
	}
	if s.frozen {
		return nil
	}
	if err := s.writeIndex(&s.offsets, sync); err != nil {
		return err
	}
	if err := s.writeIndex(&s.times, sync); err != nil {
		return err
	}
	return s.writeTxns(sync)
}

// noteLocked enters a batch at a position into the indexes as Kafka does
// (LogSegment.append): one entry once more than interval bytes lie between the last
// entry's batch and this one, so none for the first batch; and with it
// the largest timestamp so far, if it has grown (TimeIndex.maybeAppend).
func (s *Segment) noteLocked(pos, last, maxTimestamp int64, interval int) {
	if maxTimestamp > s.largest.key {
		s.largest = entry{maxTimestamp, last - s.base}
	}
	if pos-s.indexed <= int64(interval) || !fits(pos) || !fits(last-s.base) {
		return
	}
	s.offsets.addLocked(entry{last - s.base, pos})
	s.indexed = pos
	s.noteLargestLocked()
}

func (s *Segment) noteLargestLocked() {
	if s.largest.key >= 0 && fits(s.largest.value) && (!s.times.has || s.largest.key > s.times.last.key) {
		s.times.addLocked(s.largest)
	}
}
