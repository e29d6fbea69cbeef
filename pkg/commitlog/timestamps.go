package commitlog

import (
	"errors"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// A TimestampOffset is an answer of ListOffsets: -1, -1, -1 if there is none.
type TimestampOffset struct {
	Offset, Timestamp int64
	Epoch             int32
}

var noOffset = TimestampOffset{-1, -1, -1}

// below is t if it lies below what the isolation lets a consumer see.
func (l *Log) below(t TimestampOffset, iso kafka.Isolation) TimestampOffset {
	if t.Offset >= l.marks.load().limit(iso) {
		return noOffset
	}
	return t
}

// OffsetForTimestamp is the first record at or after ts (ms) below the isolation's limit.
//
// The way is that of UnifiedLog.fetchOffsetByTimestamp: the first segment with
// a timestamp that large, its time index, its batches, their records. Unlike
// Kafka it goes on to the next segment if the only such records are below the log start.
func (l *Log) OffsetForTimestamp(ts int64, iso kafka.Isolation) (TimestampOffset, error) {
	return again(func() (TimestampOffset, error) { return l.offsetForTimestamp(ts, iso) })
}

func (l *Log) offsetForTimestamp(ts int64, iso kafka.Isolation) (TimestampOffset, error) {
	if err := l.endedErr(); err != nil {
		return noOffset, err
	}
	start := l.marks.load().LogStart
	for _, p := range *l.parts.Load() {
		s, err := l.open(p)
		if err != nil {
			return noOffset, err
		}
		if largest, _ := s.LargestTimestamp(); largest < ts {
			continue
		}
		t, err := l.searchTime(s, ts, start)
		if err != nil {
			return noOffset, l.readError(p, err)
		}
		if t != noOffset {
			return l.below(t, iso), nil
		}
	}
	return noOffset, nil
}

// searchTime finds the first record of a segment at or after ts and start.
func (l *Log) searchTime(s *segment.Segment, ts, start int64) (TimestampOffset, error) {
	pos, err := s.TimePosition(ts)
	if err != nil {
		return noOffset, err
	}
	t := noOffset
	var failed error
	err = s.Batches(pos, func(pos int64, h record.Batch) bool {
		if h.MaxTimestamp() < ts || h.LastOffset() < start || h.Count() == 0 {
			return true
		}
		t, failed = l.searchBatch(s, pos, h, ts, start)
		return t == noOffset && failed == nil
	})
	return t, errors.Join(err, failed)
}

// searchBatch looks at the records of one batch. Of one that can't be read the header has to do (ST-14).
func (l *Log) searchBatch(s *segment.Segment, pos int64, h record.Batch, ts, start int64) (TimestampOffset, error) {
	epoch, fallback := h.LeaderEpoch(), TimestampOffset{max(h.BaseOffset(), start), h.MaxTimestamp(), h.LeaderEpoch()}
	b, err := s.ReadBatch(pos)
	if err != nil {
		return noOffset, err
	}
	offset, timestamp, ok, err := b.FirstAtOrAfterFrom(ts, start)
	switch {
	case err != nil:
		l.logger().Warn("a timestamp lookup goes by the header of a batch that can't be read", "offset", b.BaseOffset(), "error", err)
		return fallback, nil
	case !ok:
		return noOffset, nil
	}
	return TimestampOffset{offset, timestamp, epoch}, nil
}

// OffsetForMaxTimestamp is the first record that has the largest timestamp
// (ms; KIP-734), or none if that lies at or above the isolation's limit.
func (l *Log) OffsetForMaxTimestamp(iso kafka.Isolation) (TimestampOffset, error) {
	return again(func() (TimestampOffset, error) { return l.offsetForMaxTimestamp(iso) })
}

func (l *Log) offsetForMaxTimestamp(iso kafka.Isolation) (TimestampOffset, error) {
	if err := l.endedErr(); err != nil {
		return noOffset, err
	}
	var in *part
	var of *segment.Segment
	largest, last := record.NoTimestamp, int64(-1)
	for _, p := range *l.parts.Load() {
		s, err := l.open(p)
		if err != nil {
			return noOffset, err
		}
		if ts, offset := s.LargestTimestamp(); ts > largest {
			in, of, largest, last = p, s, ts, offset
		}
	}
	if in == nil {
		return noOffset, nil
	}
	t, err := firstWithMax(of, last)
	if err != nil {
		return noOffset, l.readError(in, err)
	}
	return l.below(t, iso), nil
}

// firstWithMax is the first record with the max timestamp of a segment, in the batch that ends in an offset.
func firstWithMax(s *segment.Segment, last int64) (TimestampOffset, error) {
	pos, err := s.Position(last)
	if err != nil {
		return noOffset, err
	}
	b, err := s.ReadBatch(pos)
	if err != nil {
		return noOffset, err
	}
	offset, timestamp, ok, err := b.FirstWithMaxTimestamp()
	if err != nil || !ok {
		// Unreadable, or emptied by compaction: the header has to do (ST-14).
		return TimestampOffset{b.BaseOffset(), b.MaxTimestamp(), b.LeaderEpoch()}, nil
	}
	return TimestampOffset{offset, timestamp, b.LeaderEpoch()}, nil
}
