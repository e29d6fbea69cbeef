package commitlog

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// A Slice is the answer to Read.
type Slice struct {
	Offsets
	Region  segment.Region       // Length 0: nothing to read at or below the limit
	Aborted []AbortedTransaction // ReadCommitted: never nil
}

// An AbortedTransaction is one that a read-committed consumer must drop.
type AbortedTransaction struct{ ProducerID, FirstOffset int64 }

// Read returns a region from the batch that holds offset on (within one
// segment, at most maxBytes, with wholeFirst at least one batch).
// OFFSET_OUT_OF_RANGE outside [LogStart, End]; CORRUPT_MESSAGE for a segment
// that can't be walked (ST-63).
//
// It takes no lock: no append and no flush delays it. The moment in which a
// rewritten segment takes the place of the old one does, for that segment (ST-48).
func (l *Log) Read(offset int64, maxBytes int, wholeFirst bool, iso kafka.Isolation) (Slice, error) {
	for {
		s, err := l.read(offset, maxBytes, wholeFirst, iso)
		if err == nil || !errors.Is(err, errGone) {
			return s, err
		}
	}
}

func (l *Log) read(offset int64, maxBytes int, wholeFirst bool, iso kafka.Isolation) (Slice, error) {
	at := l.marks.load()
	s := Slice{Offsets: at.Offsets}
	if iso == kafka.ReadCommitted {
		s.Aborted = noneAborted
	}
	if offset < at.LogStart || offset > at.End {
		return s, fmt.Errorf("%s: offset %d is not in %d to %d: %w", l.name, offset, at.LogStart, at.End, kerr.OffsetOutOfRange)
	}
	if err := l.endedErr(); err != nil {
		return s, err
	}
	if offset >= at.limit(iso) {
		return s, nil
	}
	// After the marks: the list has every part that they cover.
	parts := *l.parts.Load()
	if len(parts) > 0 && offset < parts[0].base { // the start has moved since the marks were read
		return s, fmt.Errorf("%s: offset %d: %w", l.name, offset, errGone)
	}
	for i := max(find(parts, offset), 0); i < len(parts); i++ {
		swaps := parts[i].swaps.Load()
		region, more, err := l.readPart(at, parts, i, offset, maxBytes, wholeFirst, iso)
		if err != nil {
			return s, err
		}
		if !more {
			s.Region = region
			if iso == kafka.ReadCommitted && l.aborts.Load() && (region.Length > 0 || maxBytes == 0) {
				err = l.addAborted(&s, at, parts, i, offset, swaps)
			}
			return s, err
		}
	}
	return s, nil
}

// readPart reads from one part. more says that it has no batch at or after
// offset, but that the next may: compaction leaves gaps at the ends, too.
func (l *Log) readPart(at mark, parts []*part, i int, offset int64, maxBytes int, wholeFirst bool, iso kafka.Isolation) (r segment.Region, more bool, err error) {
	p := parts[i]
	s, err := l.open(p)
	if err != nil {
		return r, false, err
	}
	end, last, err := l.endIn(at, parts, i, s, iso)
	if err != nil {
		return r, false, err
	}
	r, err = s.Read(offset, maxBytes, wholeFirst, end)
	if err != nil {
		return r, false, l.readError(p, err)
	}
	if r.Length > 0 || last {
		return r, false, nil
	}
	pos, err := s.Position(offset) // is there nothing, or was maxBytes too little?
	if err != nil {
		return r, false, l.readError(p, err)
	}
	return r, pos >= s.Size(), nil
}

// endIn is the file position in a part up to which the isolation lets a
// consumer read, and whether the limit lies in this part.
func (l *Log) endIn(at mark, parts []*part, i int, s *segment.Segment, iso kafka.Isolation) (end int64, last bool, err error) {
	limit := at.limit(iso)
	if i+1 < len(parts) && limit >= parts[i+1].base {
		return s.Size(), false, nil // sealed, and all of it below the limit
	}
	if limit == at.End {
		if parts[i].base == at.base {
			return at.size, true, nil
		}
		return s.Size(), true, nil // rolled since the marks were read
	}
	end, err = s.Position(limit) // an open transaction begins there
	if err != nil {
		return 0, false, l.readError(parts[i], err)
	}
	return end, true, nil
}

// Available is how many bytes Read could return from offset on in the end,
// for a long poll's min bytes; rolled says that offset lies in a segment before
// the one of the limit, so that no more will come to this read (DelayedFetch).
// Both are zero where Read would fail.
func (l *Log) Available(offset int64, iso kafka.Isolation) (bytes int64, rolled bool) {
	_, err := again(func() (_ struct{}, err error) {
		bytes, rolled, err = l.available(offset, iso)
		return struct{}{}, err
	})
	if err != nil {
		return 0, false
	}
	return bytes, rolled
}

func (l *Log) available(offset int64, iso kafka.Isolation) (bytes int64, rolled bool, err error) {
	at := l.marks.load()
	if offset < at.LogStart || offset >= at.limit(iso) || l.endedErr() != nil {
		return 0, false, nil
	}
	parts := *l.parts.Load()
	i := find(parts, offset)
	if i < 0 {
		return 0, false, nil // the start has moved since the marks were read
	}
	s, err := l.open(parts[i])
	if err != nil {
		return 0, false, err
	}
	end, last, err := l.endIn(at, parts, i, s, iso)
	if err != nil {
		return 0, false, err
	}
	pos, err := s.Position(offset)
	if err != nil {
		return 0, false, l.readError(parts[i], err)
	}
	return max(end-pos, 0), !last, nil
}
