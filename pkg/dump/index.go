package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// Sizes of entries in bytes (pkg/segment/FORMAT.md).
const (
	offsetEntry = 8
	timeEntry   = 12
	txnEntry    = 34
)

// entries calls each for every entry of a file, and tells of what is no entry.
// Kafka allocates the indexes of its active segment ahead: what is zero to the end of the file is told in one line.
func (p *printer) entries(src *source, size int, each func(i int64, b []byte) error) (n int64, err error) {
	n = src.size / int64(size)
	for i := range n {
		b, err := src.view(i*int64(size), size)
		if err != nil {
			return i, err
		}
		if isZero(b) {
			zero, err := src.zeroFrom(i * int64(size))
			if err != nil {
				return i, err
			}
			if zero {
				p.faultf("position %d: %s to the end of the file", i*int64(size), counted(src.size-i*int64(size), "zero byte"))
				return i, nil
			}
			if b, err = src.view(i*int64(size), size); err != nil {
				return i, err
			}
		}
		if err := each(i, b); err != nil {
			return i, err
		}
	}
	if rest := src.size % int64(size); rest != 0 {
		p.faultf("position %d: the file ends after %d of %d bytes of an entry", n*int64(size), rest, size)
	}
	return n, nil
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// zeroFrom says whether the file holds nothing but zeros from pos on, and more than one entry of them.
func (s *source) zeroFrom(pos int64) (bool, error) {
	const least = 2 * txnEntry
	if s.size-pos < least {
		return false, nil
	}
	for pos < s.size {
		n := int(min(s.size-pos, window))
		b, err := s.view(pos, n)
		if err != nil {
			return false, err
		}
		if !isZero(b) {
			return false, nil
		}
		pos += int64(n)
	}
	return true, nil
}

// offsets prints an .index, and holds it against the .log beside it.
func (p *printer) offsets(src *source, base int64) error {
	log, err := p.logBeside(src)
	if err != nil {
		return err
	}
	defer log.close()
	p.linef("%8s %12s %12s %11s", "entry", "offset", "relative", "position")
	var last [2]int64
	n, err := p.entries(src, offsetEntry, func(i int64, b []byte) error {
		relative, pos := int64(int32(binary.BigEndian.Uint32(b))), int64(int32(binary.BigEndian.Uint32(b[4:])))
		p.linef("%8d %12d %12d %11d", i, base+relative, relative, pos)
		if relative < 0 || pos < 0 || i > 0 && (relative <= last[0] || pos <= last[1]) {
			p.faultf("entry %d: offsets and positions should ascend", i)
		}
		last = [2]int64{relative, pos}
		return p.against(log, i, pos, base+relative)
	})
	p.endf("%s", counted(n, "entry"))
	return err
}

// against holds an entry against the batch that it points to.
func (p *printer) against(log *besides, i, pos, offset int64) error {
	h, why, err := log.at(pos)
	switch {
	case err != nil || log == nil:
		return err
	case why != "":
		p.faultf("entry %d: the .log has no batch at position %d: %s", i, pos, why)
	case h.LastOffset() != offset:
		p.faultf("entry %d: the batch at position %d of the .log ends with offset %d", i, pos, h.LastOffset())
	}
	return nil
}

// times prints a .timeindex, and holds it against the .log beside it.
func (p *printer) times(src *source, base int64) error {
	log, err := p.logBeside(src)
	if err != nil {
		return err
	}
	defer log.close()
	p.linef("%8s %15s %-24s %12s %12s", "entry", "timestamp", "", "offset", "relative")
	var lastTime, lastOffset int64
	n, err := p.entries(src, timeEntry, func(i int64, b []byte) error {
		ts, relative := int64(binary.BigEndian.Uint64(b)), int64(int32(binary.BigEndian.Uint32(b[8:])))
		p.linef("%8d %15d %-24s %12d %12d", i, ts, at(ts), base+relative, relative)
		if ts < 0 || relative < 0 || i > 0 && (ts <= lastTime || relative <= lastOffset) {
			p.faultf("entry %d: timestamps and offsets should ascend", i)
		}
		lastTime, lastOffset = ts, relative
		return p.timeAgainst(log, i, ts, base+relative)
	})
	p.endf("%s", counted(n, "entry"))
	return err
}

// timeAgainst holds an entry against the batch that it names.
func (p *printer) timeAgainst(log *besides, i, ts, offset int64) error {
	h, found, err := log.ending(offset)
	switch {
	case err != nil || log == nil || log.lost:
		return err
	case !found:
		p.faultf("entry %d: no batch of the .log ends with offset %d", i, offset)
	case h.MaxTimestamp() != ts:
		p.faultf("entry %d: the batch that ends with offset %d has max timestamp %d", i, offset, h.MaxTimestamp())
	}
	return nil
}

// transactions prints a .txnindex.
func (p *printer) transactions(src *source, _ int64) error {
	p.linef("%8s %8s %12s %12s %12s %12s", "entry", "version", "producer", "first", "last", "last stable")
	n, err := p.entries(src, txnEntry, func(i int64, b []byte) error {
		version := int16(binary.BigEndian.Uint16(b))
		var v [4]int64
		for k := range v {
			v[k] = int64(binary.BigEndian.Uint64(b[2+8*k:]))
		}
		p.linef("%8d %8d %12d %12d %12d %12d", i, version, v[0], v[1], v[2], v[3])
		if version != 0 || v[0] < 0 || v[1] < 0 || v[2] < v[1] {
			p.faultf("entry %d: not an aborted transaction", i)
		}
		return nil
	})
	p.endf("%s", counted(n, "aborted transaction"))
	return err
}

// besides is the .log beside an index; nil if it is not there.
type besides struct {
	*source
	pos  int64 // of the next batch that ending looks at
	lost bool  // the batches can't be followed any more
}

// logBeside opens the .log of an index. Without one the entries are only printed.
func (p *printer) logBeside(index *source) (*besides, error) {
	name := index.file.Name()
	name = strings.TrimSuffix(strings.TrimSuffix(name, segment.IndexSuffix), segment.TimeIndexSuffix) + segment.LogSuffix
	src, err := open(p.fs, name)
	if errors.Is(err, fs.ErrNotExist) {
		p.linef("the entries are not checked: there is no %s", name)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	src.buf = src.buf[:headersWindow]
	return &besides{source: src}, nil
}

// headersWindow is how much is read for a header: those behind it are often wanted next.
const headersWindow = 4 << 10

func (l *besides) close() {
	if l != nil {
		l.source.close()
	}
}

// at is the header of the batch at a position, or why there is none.
func (l *besides) at(pos int64) (h record.Batch, why string, err error) {
	if l == nil {
		return nil, "", nil
	}
	if pos < 0 || l.size-pos < record.HeaderSize {
		return nil, fmt.Sprintf("it has %d bytes", l.size), nil
	}
	b, err := l.view(pos, record.HeaderSize)
	if err != nil {
		return nil, "", err
	}
	return record.Batch(b), unfollowable(record.Batch(b)), nil
}

// ending goes on to the batch that ends with an offset; offsets are asked for in ascending order.
func (l *besides) ending(offset int64) (h record.Batch, found bool, err error) {
	for l != nil && !l.lost && l.pos < l.size {
		h, why, err := l.at(l.pos)
		if err != nil {
			return nil, false, err
		}
		if l.lost = why != ""; l.lost || h.LastOffset() > offset {
			break
		}
		if h.LastOffset() == offset {
			return h, true, nil // it is not passed: a second entry of it is told of as such
		}
		l.pos += int64(h.Size())
	}
	return nil, false, nil
}
