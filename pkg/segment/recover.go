package segment

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// Recovered is what recovery has found in a segment's log.
type Recovered struct {
	Next    int64  // the offset after the last good batch
	Cut     int64  // bytes cut off the end
	Reason  string // why, "" if nothing was cut
	Scanned int64  // bytes of the log that were read and checked; 0 after a clean stop
}

// Recover opens the newest segment. With clean it trusts the file's length
// and the indexes, as long as they match each other; otherwise it checks every batch with its CRC, cuts what is
// torn (ST-54) and makes the indexes anew. Nothing that was found counts as
// synced: the caller syncs file and directory before it acknowledges anything.
//
// Every good batch at or after replay is shown to visit, which may be nil, to
// rebuild the producers' state: the whole batch if it is a control batch or
// was checked, but never more than 1 MiB: a view of HeaderSize bytes
// otherwise. It is valid until visit returns.
//
// Of a log that was checked, visit has seen all transactions that were aborted if
// replay is not above base, and the caller adds them (AddAborted). Otherwise they
// are taken from .txnindex, unless AbortedKnown says no.
//
// An error of the disk is returned and cuts nothing.
func Recover(o *Options, base int64, clean bool, replay int64, visit func(h record.Batch)) (*Segment, Recovered, error) {
	s := newSegment(o, base, readWrite)
	file, err := o.FS.OpenFile(s.logFile.name, os.O_RDWR, filePerm)
	if err != nil {
		return nil, Recovered{}, err
	}
	s.activate(file)
	if visit == nil {
		visit = func(record.Batch) {}
	}
	r, err := s.recover(clean, replay, visit)
	if err != nil {
		return nil, r, errors.Join(err, s.Close())
	}
	s.next = r.Next
	return s, r, nil
}

func (s *Segment) recover(clean bool, replay int64, visit func(record.Batch)) (Recovered, error) {
	size, err := s.active.Size()
	if err != nil {
		return Recovered{}, err
	}
	s.size.Store(size)
	if clean {
		t, err := s.check(s.active)
		if err == nil {
			err = t.rot
		}
		if err == nil {
			s.checkTxns(s.active)
			if t.next > s.base {
				s.recent.add(t.last.pos, t.last.last)
			}
			return Recovered{Next: t.next}, s.replay(replay, t.next, visit)
		}
		s.opts.log().Warn("after a clean stop a segment is not as it was left; every batch is checked",
			"file", s.logFile.name, "error", err)
	}
	s.resetIndexes()
	s.txns.resetLocked(nil) // nobody else has the segment yet
	s.txns.known = replay <= s.base
	return s.scan(size, replay, visit)
}

// replay shows the batches from an offset on to visit, without checking them.
func (s *Segment) replay(from, next int64, visit func(record.Batch)) error {
	if from >= next {
		return nil
	}
	f, err := s.search(s.active, from, s.Size())
	if err != nil {
		return err
	}
	var readErr error
	err = s.Batches(f.pos, func(pos int64, h record.Batch) bool {
		if h.Control() && h.Size() <= scanBuffer {
			// A marker says in its record whether it commits or aborts.
			h, readErr = s.ReadBatch(pos)
		}
		if readErr == nil {
			visit(h)
		}
		return readErr == nil
	})
	return errors.Join(err, readErr)
}

// scanBuffer is how much of a log is read at once to check it. Larger batches
// are checked piece by piece: no length that a header claims is ever allocated.
const scanBuffer = 1 << 20

var scanBuffers = sync.Pool{New: func() any { return new([scanBuffer]byte) }}

// A scanner reads a log from its start with large preads.
type scanner struct {
	file   vfs.File
	buf    []byte
	start  int64 // the file position of buf[0]
	filled int
	end    int64 // of the file
}

// view returns n bytes at pos, at most len(buf), valid until the next call.
func (c *scanner) view(pos int64, n int) ([]byte, error) {
	if pos < c.start || pos+int64(n) > c.start+int64(c.filled) {
		want := int(min(c.end-pos, int64(len(c.buf))))
		c.filled = 0
		if err := readFull(c.file, c.buf[:want], pos); err != nil {
			return nil, err
		}
		c.start, c.filled = pos, want
	}
	at := int(pos - c.start)
	return c.buf[at : at+n : at+n], nil
}

// batch returns the batch at pos, or of a large one the header, if its
// checksum is right; else why not. size is its length.
func (c *scanner) batch(pos, next int64) (b record.Batch, size int, why string, err error) {
	room := c.end - pos
	if room < record.HeaderSize {
		return nil, 0, "the file ends within its header", nil
	}
	h, err := c.view(pos, record.HeaderSize)
	if err != nil {
		return nil, 0, "", err
	}
	b = record.Batch(h)
	if why := fault(b, room, next); why != "" {
		return nil, 0, why, nil
	}
	size = b.Size()
	if size > len(c.buf) {
		return c.large(pos, size)
	}
	whole, err := c.view(pos, size)
	if err != nil {
		return nil, 0, "", err
	}
	b = record.Batch(whole)
	if b.CRC() != b.ComputeCRC() {
		return nil, 0, checksumDiffers, nil
	}
	return b, size, "", nil
}

const checksumDiffers = "its checksum does not match its content"

// crcFrom is where the bytes that a batch's checksum covers begin.
const crcFrom = 21

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// large checks a batch that does not fit the buffer, a buffer at a time.
func (c *scanner) large(pos int64, size int) (record.Batch, int, string, error) {
	crc := uint32(0)
	for at := pos + crcFrom; at < pos+int64(size); {
		n := int(min(pos+int64(size)-at, int64(len(c.buf))))
		piece, err := c.view(at, n)
		if err != nil {
			return nil, 0, "", err
		}
		crc = crc32.Update(crc, castagnoli, piece)
		at += int64(n)
	}
	h, err := c.view(pos, record.HeaderSize)
	if err != nil {
		return nil, 0, "", err
	}
	if b := record.Batch(h); b.CRC() == crc {
		return b, size, "", nil
	}
	return nil, 0, checksumDiffers, nil
}

// scan checks every batch, makes the indexes, and cuts the file behind the last good one.
func (s *Segment) scan(size, replay int64, visit func(record.Batch)) (Recovered, error) {
	buf := scanBuffers.Get().(*[scanBuffer]byte)
	defer scanBuffers.Put(buf)
	c := scanner{file: s.active, buf: buf[:], end: size}
	r := Recovered{Next: s.base, Scanned: size}
	pos := int64(0)
	for pos < size {
		b, n, why, err := c.batch(pos, r.Next)
		if err != nil {
			return r, err
		}
		if why == "" && (!fits(b.LastOffset()-s.base) || !fits(pos)) {
			why = "no index could point to it"
		}
		if why != "" {
			r.Cut, r.Reason = size-pos, fmt.Sprintf("batch at position %d: %s", pos, why)
			break
		}
		s.take(pos, b)
		if b.LastOffset() >= replay {
			visit(b)
		}
		r.Next = b.LastOffset() + 1
		pos += int64(n)
	}
	s.size.Store(pos)
	// Also without a cut: it gives back what the killed process had allocated ahead.
	if err := s.active.Truncate(pos); err != nil {
		return r, err
	}
	if r.Cut > 0 {
		// Without it a power cut before the next flush could bring good batches
		// of what was cut off back, behind one that was appended in its place:
		// of an older epoch, and out of its producer's sequence.
		if err := syncFile(s.active); err != nil {
			return r, err
		}
	}
	return r, nil
}

// take enters a good batch into what the segment knows.
func (s *Segment) take(pos int64, b record.Batch) {
	if pos == 0 {
		s.first.Store(b.MaxTimestamp())
	}
	full := s.note(pos, b, s.opts.interval())
	s.mu.Lock()
	s.recent.add(pos, b.LastOffset())
	s.mu.Unlock()
	if full {
		s.writeGathered()
	}
}
