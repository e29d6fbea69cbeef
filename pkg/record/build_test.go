package record

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

func TestBuilderKeepsGaps(t *testing.T) {
	records := []Record{{OffsetDelta: 2, Timestamp: 1}, {OffsetDelta: 5, Timestamp: 2}, {OffsetDelta: 1 << 20, Timestamp: 3}}
	b := NewBuilder(Options{LastOffsetDelta: 1<<20 + 1, BaseOffset: 10})
	for _, r := range records {
		if err := b.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	equalRecords(t, batch, records)
	if batch.LastOffset() != 10+1<<20+1 || batch.Count() != 3 {
		t.Errorf("last offset %d, count %d", batch.LastOffset(), batch.Count())
	}
	if _, rest, err := Parse(batch); err != nil || len(rest) > 0 {
		t.Error(len(rest), err)
	}
}

// ST-46: the batch that keeps a producer's sequence has a header and nothing else.
func TestEmptyBatch(t *testing.T) {
	for _, c := range allCodecs {
		b, err := NewBuilder(Options{Codec: c, LastOffsetDelta: 9, Producer: &Producer{ID: 4, Epoch: 1, BaseSequence: 20}}).Batch()
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != HeaderSize || b.Count() != 0 || b.LastOffsetDelta() != 9 || b.LastSequence() != 29 || b.Codec() != None || b.BaseTimestamp() != NoTimestamp {
			t.Errorf("%s: %d bytes, %d records", c, len(b), b.Count())
		}
		equalRecords(t, b, nil)
	}
}

func TestBuilderRefusesOffsetsThatDoNotGrow(t *testing.T) {
	b := NewBuilder(Options{})
	if err := b.Add(Record{OffsetDelta: 3}); err != nil {
		t.Fatal(err)
	}
	if err := b.Add(Record{OffsetDelta: 3}); err == nil {
		t.Error("the same offset twice")
	}
	if _, err := b.Batch(); err == nil {
		t.Error("a batch after an error")
	}
}

func TestBuilderIsDoneAfterItsBatch(t *testing.T) {
	b := NewBuilder(Options{Codec: Gzip})
	if _, err := b.Batch(); err != nil {
		t.Fatal(err)
	}
	if err := b.Append(0, nil, nil); !errors.Is(err, errBuilt) {
		t.Errorf("%v", err)
	}
	if _, err := b.Batch(); !errors.Is(err, errBuilt) {
		t.Errorf("%v", err)
	}
}

func TestBuilderStopsAtItsLimit(t *testing.T) {
	for _, c := range allCodecs {
		b := NewBuilder(Options{Codec: c, MaxBytes: 1000})
		var err error
		for i := 0; err == nil && i < 100_000; i++ {
			err = b.Append(int64(i*i), nil, compressible(1000))
		}
		if err == nil {
			_, err = b.Batch()
		}
		if !errors.Is(err, kerr.MessageTooLarge) {
			t.Errorf("%s: %v", c, err)
		}
	}
}
