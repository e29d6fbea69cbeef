package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// A part is one segment of the log, opened when it is first touched: a log of
// a hundred segments opens by their names and sizes.
type part struct {
	base   int64
	size   atomic.Int64 // of a sealed segment that is not open, in bytes
	aborts atomic.Bool  // such a segment may have aborted transactions: its .txnindex is not empty, or not there
	opened atomic.Pointer[segment.Segment]
	epoch  atomic.Int64 // of the first batch plus 1; 0: not looked up yet
	told   atomic.Bool  // that it can't be walked
	kept   atomic.Bool  // it was told that compaction keeps a batch of it that it can't read
	gone   atomic.Bool  // it is below the log start, or has been emptied by compaction, and is removed
	swaps  atomic.Int64 // how often its log has been replaced by a rewritten one

	mu      sync.Mutex // held while it is opened or closed; a leaf but for the disk
	emptied bool       // by compaction: it lies above the log start, so that a start would take it back
	unsure  bool       // the disk may have another log under its name
}

func newPart(base int64, s *segment.Segment) *part {
	p := &part{base: base}
	p.opened.Store(s)
	return p
}

func (p *part) bytes() int64 {
	if s := p.opened.Load(); s != nil {
		return s.Size()
	}
	return p.size.Load()
}

// open returns a part's segment. The errors are for clients.
func (l *Log) open(p *part) (*segment.Segment, error) {
	if s := p.opened.Load(); s != nil {
		return s, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.opened.Load(); s != nil {
		return s, nil
	}
	if err := l.endedErr(); err != nil {
		return nil, err
	}
	if p.gone.Load() {
		return nil, errGone // to open it would make its indexes anew
	}
	open := segment.Open
	if p.unsure {
		open = segment.OpenFrozen
	}
	s, err := open(&l.segment, p.base)
	if err != nil {
		return nil, l.readError(p, err)
	}
	p.opened.Store(s)
	return s, nil
}

// close closes a part's segment if it is open; ended is set, so it stays closed.
func (p *part) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.opened.Load(); s != nil {
		return s.Close()
	}
	return nil
}

// readError is what a client gets for a failed read: errGone for a part that
// was removed or rewritten meanwhile, CORRUPT_MESSAGE for headers that can't be walked
// (logged once a segment, ST-63), KAFKA_STORAGE_ERROR for the rest.
func (l *Log) readError(p *part, err error) error {
	if ended := l.endedErr(); ended != nil {
		return ended
	}
	if p.gone.Load() || errors.Is(err, fs.ErrClosed) {
		return fmt.Errorf("%s: %w: %w", l.name, errGone, err)
	}
	if !errors.Is(err, kerr.CorruptMessage) {
		return l.storageError("read", err)
	}
	if !p.told.Swap(true) {
		l.logger().Error("a segment can't be read to its end", "segment", segment.FileName(p.base, segment.LogSuffix), "error", err)
	}
	return err
}

// find returns the index of the part that an offset lies in: the last whose
// base is at or below it. -1: it is below them all.
func find(parts []*part, offset int64) int {
	return sort.Search(len(parts), func(i int) bool { return parts[i].base > offset }) - 1
}

// header reads the header of the first batch of a part.
func (l *Log) header(p *part) (h record.Batch, ok bool, err error) {
	s, err := l.open(p)
	if err != nil {
		return nil, false, err
	}
	return l.headerIn(p, s, 0)
}

// headerIn reads the header of the first batch at or after a file position.
func (l *Log) headerIn(p *part, s *segment.Segment, pos int64) (h record.Batch, ok bool, err error) {
	err = s.Batches(pos, func(_ int64, b record.Batch) bool {
		h, ok = append(record.Batch(nil), b[:record.HeaderSize]...), true
		return false
	})
	if err != nil {
		return nil, false, l.readError(p, err)
	}
	return h, ok, nil
}

// headerAt reads the header of the first batch of a part whose last offset is at or after offset.
func (l *Log) headerAt(p *part, offset int64) (record.Batch, bool, error) {
	s, err := l.open(p)
	if err != nil {
		return nil, false, err
	}
	pos, err := s.Position(offset)
	if err != nil {
		return nil, false, l.readError(p, err)
	}
	return l.headerIn(p, s, pos)
}
