package segment

import (
	"errors"
	"fmt"
	"io"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Open opens a sealed segment without reading its log but for a few headers;
// indexes that are missing, truncated or do not match are rebuilt from it, and
// that is logged (ST-8). A log that can't be walked to its end opens all the
// same: what can be read of it is served (ST-14, ST-63). Whether its aborted
// transactions are known AbortedKnown says: to find them takes the segments before it.
func Open(o *Options, base int64) (*Segment, error) { return open(newSegment(o, base, readOnly)) }

// OpenFrozen is Open for a log of which nobody knows whether it has the name on the disk, too: what is rebuilt from it stays in memory, since
// it might be found beside another log.
func OpenFrozen(o *Options, base int64) (*Segment, error) {
	s := newSegment(o, base, readOnly)
	s.frozen = true
	return open(s)
}

func open(s *Segment) (*Segment, error) {
	o := s.opts
	s.sealed.Store(true)
	file, err := s.logFile.acquire(0)
	if err != nil {
		return nil, err
	}
	defer s.logFile.release()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	s.size.Store(size)
	t, err := s.check(file)
	if errors.Is(err, errIndex) {
		err = s.rebuild(file, err)
	} else if err == nil && t.rot != nil {
		o.log().Error("a sealed segment can't be read to its end", "file", s.logFile.name, "error", t.rot)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.checkTxns(file)
	return s, nil
}

// A tail is what check has seen of the end of a log.
type tail struct {
	next         int64 // the offset after the last batch
	last         place // the last batch, if there is one
	maxTimestamp int64 // of the batches from the last offset entry on
	rot          error // why the walk ended before the log
}

// check looks, with a number of preads that does not grow with the log,
// whether the indexes belong to it, and takes them over. errIndex says that
// they don't, and why; any other error is the log's.
//
// The entries between are not read: a lookup holds the one that it finds
// against the log.
func (s *Segment) check(file vfs.File) (tail, error) {
	w := s.walk(file, 0, s.Size())
	defer w.done()
	prev, err := s.checkEnds(&s.offsets, w)
	if err != nil {
		return tail{}, err
	}
	t, err := s.checkTail(w, prev)
	if err != nil {
		return tail{}, err
	}
	if _, err := s.checkEnds(&s.times, w); err != nil {
		return tail{}, err
	}
	return t, s.checkTimes(w, t)
}

// checkEnds reads an index's length, and its first and last entries, and
// returns the one before the last: zero if there is none.
func (s *Segment) checkEnds(x *index, w *walker) (prev entry, err error) {
	file, err := x.file.acquire(0)
	if err != nil {
		return entry{}, fmt.Errorf("%w: %w", errIndex, err)
	}
	defer x.file.release()
	size, err := file.Size()
	if err != nil {
		return entry{}, fmt.Errorf("%w: %w", errIndex, err)
	}
	if size%int64(x.size) != 0 {
		return entry{}, wrongIndex(file, "its length is no multiple of an entry's")
	}
	n := int(size / int64(x.size))
	var first, last entry
	for _, want := range [...]struct {
		i  int
		at *entry
	}{{0, &first}, {n - 2, &prev}, {n - 1, &last}} {
		if want.i < 0 || want.i >= n {
			continue
		}
		if *want.at, err = x.read(file, w.buf, want.i); err != nil {
			return entry{}, fmt.Errorf("%w: %w", errIndex, err)
		}
	}
	switch {
	case n > 0 && (first.key < 0 || first.value < 0):
		return entry{}, wrongIndex(file, "an entry is negative")
	case n > 1 && (!first.before(last) || !prev.before(last)):
		return entry{}, wrongIndex(file, "its entries do not ascend")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x.made, x.written, x.last, x.has = true, n, last, n > 0
	return prev, nil
}

// checkTail walks from the batch of the last offset entry to the end of the
// log. As long as the index is whole the last batch begins at most an index
// interval behind it, and an interval is less than the distance of any two entries.
func (s *Segment) checkTail(w *walker, prev entry) (tail, error) {
	x := &s.offsets
	bound := max(x.last.value-prev.value, int64(s.opts.interval()), defaultInterval)
	s.indexed = x.last.value
	t := tail{next: s.base, maxTimestamp: record.NoTimestamp}
	w.move(s.indexed, s.Size(), s.base)
	for first := x.has; ; first = false {
		h, err := w.header()
		switch {
		case errors.Is(err, kerr.CorruptMessage) && !first:
			t.rot = err
			return t, nil
		case errors.Is(err, io.EOF) && !first:
			return t, nil
		case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, kerr.CorruptMessage):
			return t, err
		case first && (err != nil || h.LastOffset() != s.base+x.last.key):
			return t, wrongIndex(w.file, fmt.Sprintf("its last entry says that offset %d is at position %d",
				s.base+x.last.key, x.last.value))
		case w.pos-s.indexed > bound:
			return t, wrongIndex(w.file, "it ends before the log does")
		}
		t.next, t.last = h.LastOffset()+1, place{h.LastOffset(), w.pos}
		t.maxTimestamp = max(t.maxTimestamp, h.MaxTimestamp())
		w.skip(h)
	}
}

// checkTimes holds the last entry of the time index against the log.
func (s *Segment) checkTimes(w *walker, t tail) error {
	x := &s.times
	if !x.has {
		if t.maxTimestamp >= 0 || s.FirstTimestamp() >= 0 {
			return fmt.Errorf("%w: %s: it is empty", errIndex, x.file.name)
		}
		return nil
	}
	if x.last.key < t.maxTimestamp {
		return fmt.Errorf("%w: %s: the log has a larger timestamp", errIndex, x.file.name)
	}
	f, err := s.locate(w, s.base+x.last.value, s.Size())
	switch {
	case errors.Is(err, kerr.CorruptMessage):
		// The log can't be walked there; the entry stays, for retention.
	case err != nil:
		return err
	case f.size == 0 || f.last != s.base+x.last.value || f.maxTimestamp != x.last.key:
		return errTimeIndex(x.last)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.largest = x.last
	return nil
}

func wrongIndex(file vfs.File, why string) error {
	return fmt.Errorf("%w: %s: %s", errIndex, file.Name(), why)
}

func errTimeIndex(e entry) error {
	return fmt.Errorf("%w: time index entry for timestamp %d, relative offset %d", errIndex, e.key, e.value)
}
