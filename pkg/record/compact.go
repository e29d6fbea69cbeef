package record

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// MaxInflated is the most that the records of a batch may inflate to for Compact to build it anew, in bytes.
const MaxInflated = 256 << 20

// ErrInflated is returned by Compact for a batch of more than MaxInflated: it stays as it is (ST-47).
var ErrInflated = fmt.Errorf("record: the batch inflates to more than %d bytes", MaxInflated)

// A Compactor makes batches anew for compaction, one after the other in the same memory. The zero value is ready for use.
type Compactor struct {
	to       Builder
	producer Producer
	record   Record
}

// Compact makes the batch anew with the records that keep says, in another
// codec (MemoryRecords.filterTo). Offsets, the span of offsets, epochs, producer, sequences and the
// transactional and control bits stay (ST-44); so does the delete horizon, unless
// horizon (ms; 0: none) is to be set (ST-45). Without a record it is a header alone, with the batch's max timestamp;
// for that keep may be nil, and then no record is read.
// Records are streamed from codec to codec, so that the result is all that is held.
//
// The batch is valid until the next call; keep must not hold on to the record. The errors are those of Records, ErrInflated,
// and MESSAGE_TOO_LARGE if the batch would be larger than most bytes (0: whatever it takes).
func (c *Compactor) Compact(b Batch, codec Codec, level int, horizon int64, most int, keep func(*Record) bool) (Batch, error) {
	if at, ok := b.DeleteHorizon(); ok {
		horizon = at
	}
	size := 0
	if codec == None && keep != nil {
		size = len(b) // hardly more: it is uncompressed as well, or most is not more
	}
	bounded := most != 0
	if !bounded {
		most = MaxInflated
	}
	to := &c.to
	if to.out.Cap() > keepMemory {
		*to = Builder{} // such batches are rare
	}
	c.producer = Producer{ID: b.ProducerID(), Epoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence()}
	to.start(Options{
		Codec: codec, Level: level, MaxBytes: max(most, 1),
		BaseOffset: b.BaseOffset(), LeaderEpoch: b.LeaderEpoch(), LastOffsetDelta: b.LastOffsetDelta(),
		Producer:      &c.producer,
		Transactional: b.Transactional(), Control: b.Control(),
		LogAppendTime: b.LogAppendTime(), AppendTime: b.MaxTimestamp(),
		DeleteHorizon: horizon,
	}, size)
	if keep != nil {
		if err := c.add(b, bounded, keep); err != nil {
			return nil, to.fail(err)
		}
	}
	if to.count == 0 {
		to.max = b.MaxTimestamp()
		to.o.DeleteHorizon, to.base = 0, NoTimestamp
	}
	return to.Batch()
}

// add adds the records that keep says. bounded says that the result has a bound of its own.
func (c *Compactor) add(b Batch, bounded bool, keep func(*Record) bool) error {
	inflated, r := 0, &c.record // one for all: keep might hold on to each
	defer func() { *r = Record{} }()
	for next, err := range b.RecordsWithin(MaxInflated) {
		if *r = next; err == nil {
			if inflated += r.InflatedSize(); inflated > MaxInflated {
				err = ErrInflated
			} else if keep(r) {
				err = c.to.Add(*r)
			}
		}
		if !bounded && errors.Is(err, kerr.MessageTooLarge) {
			err = ErrInflated
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// InflatedSize is about how many bytes the record takes in an uncompressed batch, and rarely less than it does.
func (r *Record) InflatedSize() int {
	n := mostOverhead + len(r.Key) + len(r.Value)
	for i := range r.Headers {
		n += mostHeaderOverhead + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return n
}

const (
	mostOverhead       = 20 // sizes, deltas and attributes, but for timestamps that are weeks apart
	mostHeaderOverhead = 4
)
