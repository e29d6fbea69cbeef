package commitlog

import (
	"errors"
	"fmt"
	"iter"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// noteUncleanable has the log be due no more after an error that says that a segment can't be walked (LogCleanerManager.markPartitionUncleanable):
// until its start moves, perhaps over that segment, or the broker is started again. It is told once.
func (l *Log) noteUncleanable(err error) bool {
	if !errors.Is(err, kerr.CorruptMessage) {
		return false
	}
	if l.uncleanable.Swap(l.Offsets().LogStart+1) == 0 {
		l.o.Stats.Unclean.Add(1)
		l.logger().Error("the partition is compacted no more, until the segment that can't be read is deleted or the broker is started again", "error", err)
	}
	return true
}

// isUncleanable says whether that is so.
func (l *Log) isUncleanable() bool { return l.uncleanable.Load() > l.Offsets().LogStart }

// A reading is where a pass is.
type reading struct {
	part *part
	pos  int64
}

// tell logs, once a segment, that a batch stays as it is because it can't be read (ST-14).
func (p *pass) tell(b record.Batch, err error) {
	if at := p.reading; !at.part.kept.Swap(true) {
		p.l.logger().Warn("a batch stays as it is: compaction can't read it", "segment", segment.FileName(at.part.base, segment.LogSuffix),
			"position", at.pos, "offset", b.BaseOffset(), "error", err)
	}
}

// keepUnread notes a batch that stays as it is since it can't be read (ST-14, ST-47). Without the tombstones and markers
// behind it, what it has would count again for who can read it; so they stay, too.
func (p *pass) keepUnread(b record.Batch, err error) {
	p.unread = true
	p.tell(b, err)
}

// beyond is an error for a batch that claims offsets of the next segment, which begins at end. No checksum
// covers a batch's offset; with one that is too high it would take the later records of its keys away.
func (p *pass) beyond(part *part, pos int64, b record.Batch, end int64) error {
	if b.LastOffset() < end {
		return nil
	}
	return p.l.readError(part, fmt.Errorf("%s: batch at position %d: its last offset is %d, and the next segment begins at %d: %w",
		segment.FileName(part.base, segment.LogSuffix), pos, b.LastOffset(), end, kerr.CorruptMessage))
}

// records are those of a batch that may have been written by other means: offsets that don't ascend within the batch are an error, too.
func records(b record.Batch) iter.Seq2[record.Record, error] {
	return func(yield func(record.Record, error) bool) {
		last := int32(-1)
		for r, err := range b.RecordsWithin(record.MaxInflated) {
			if err == nil && (r.OffsetDelta <= last || r.OffsetDelta > b.LastOffsetDelta()) {
				err = fmt.Errorf("a record at offset delta %d after %d, in a batch up to %d: %w", r.OffsetDelta, last, b.LastOffsetDelta(), kerr.InvalidRecord)
			}
			if !yield(r, err) || err != nil {
				return
			}
			last = r.OffsetDelta
		}
	}
}

// batchKeys are the keys of one batch, until all of it has been read.
type batchKeys struct {
	bytes   []byte
	ends    []int // of each key
	offsets []int64
}

// mostBatchKeys is how much memory they may take, in bytes.
const mostBatchKeys = 4 << 20

func (k *batchKeys) bytesHeld() int { return len(k.bytes) + 16*len(k.offsets) }

func (k *batchKeys) reset() {
	k.bytes, k.ends, k.offsets = k.bytes[:0], k.ends[:0], k.offsets[:0]
}

func (k *batchKeys) add(key []byte, offset int64) {
	k.bytes = append(k.bytes, key...)
	k.ends, k.offsets = append(k.ends, len(k.bytes)), append(k.offsets, offset)
}

func (k *batchKeys) each(yield func(key []byte, offset int64)) {
	start := 0
	for i, end := range k.ends {
		yield(k.bytes[start:end], k.offsets[i])
		start = end
	}
}
