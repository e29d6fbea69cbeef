package record

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// ST-44: offsets, span, producer, sequences and timestamps are those of before, whatever the codec.
func TestCompactKeepsWhatABatchSays(t *testing.T) {
	for from := None; from <= Zstd; from++ {
		for _, appendTime := range []bool{false, true} {
			b := compactable(t, from, appendTime)
			got, err := new(Compactor).Compact(b, None, 0, 0, 0, func(r *Record) bool { return r.OffsetDelta%3 == 1 })
			if err != nil {
				t.Fatal(err)
			}
			if err := got.CheckCRC(); err != nil {
				t.Fatal(err)
			}
			if got.BaseOffset() != 100 || got.LastOffset() != 109 || got.LeaderEpoch() != 7 || got.ProducerID() != 5 || got.ProducerEpoch() != 2 ||
				got.BaseSequence() != 40 || got.LastSequence() != 49 || !got.Transactional() || got.Codec() != None || got.LogAppendTime() != appendTime {
				t.Fatalf("%s: the header has changed: %x", from, got[:HeaderSize])
			}
			var offsets []int32
			for r, err := range got.Records() {
				if err != nil {
					t.Fatal(err)
				}
				offsets = append(offsets, r.OffsetDelta)
				want := 1000 + int64(r.OffsetDelta)
				if appendTime {
					want = 5000
				}
				if r.Timestamp != want || string(r.Key) != fmt.Sprint("k", r.OffsetDelta) || len(r.Headers) != 1 || string(r.Headers[0].Value) != "v" {
					t.Errorf("%s: record %+v", from, r)
				}
			}
			if fmt.Sprint(offsets) != "[1 4 7]" {
				t.Errorf("%s: kept %v", from, offsets)
			}
		}
	}
}

// ST-45: the horizon takes the place of the base timestamp, once, and the records keep their timestamps.
func TestCompactSetsTheDeleteHorizonOnce(t *testing.T) {
	all := func(*Record) bool { return true }
	b, err := new(Compactor).Compact(compactable(t, Gzip, false), Gzip, 0, 777, 0, all)
	if err != nil {
		t.Fatal(err)
	}
	again, err := new(Compactor).Compact(b, None, 0, 999, 0, all)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := again.DeleteHorizon(); !ok || at != 777 {
		t.Error("horizon", at, ok)
	}
	for r, err := range again.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if r.Timestamp != 1000+int64(r.OffsetDelta) {
			t.Error("timestamp", r.Timestamp)
		}
	}
}

// ST-46: a batch without a record is a header, and says how far the producer was.
func TestCompactEmptiesABatch(t *testing.T) {
	b := compactable(t, LZ4, false)
	got, err := new(Compactor).Compact(b, LZ4, 0, 0, 0, func(*Record) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != HeaderSize || got.Count() != 0 || got.LastSequence() != b.LastSequence() || got.LastOffset() != b.LastOffset() ||
		got.MaxTimestamp() != b.MaxTimestamp() || got.Codec() != None || got.CheckCRC() != nil {
		t.Errorf("%x", got)
	}
	if again, err := new(Compactor).Compact(got, None, 0, 0, 0, nil); err != nil || !bytes.Equal(again, got) {
		t.Errorf("emptied again: %x, %v", again, err)
	}
}

func compactable(t *testing.T, c Codec, appendTime bool) Batch {
	t.Helper()
	b := NewBuilder(Options{Codec: c, BaseOffset: 100, LeaderEpoch: 7, Producer: &Producer{5, 2, 40}, Transactional: true,
		LogAppendTime: appendTime, AppendTime: 5000})
	for i := range 10 {
		if err := b.Append(1000+int64(i), fmt.Append(nil, "k", i), bytes.Repeat([]byte("x"), 100), Header{"h", []byte("v")}); err != nil {
			t.Fatal(err)
		}
	}
	out, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ST-47: a batch that would become larger than it may is given up; the next one is built in the same memory.
func TestCompactGivesUpWhatIsTooLarge(t *testing.T) {
	all := func(*Record) bool { return true }
	b := compactable(t, Zstd, false)
	var c Compactor
	if got, err := c.Compact(b, None, 0, 0, len(b), all); !errors.Is(err, kerr.MessageTooLarge) {
		t.Error(len(got), len(b), err)
	}
	got, err := c.Compact(b, None, 0, 0, 0, all)
	if err != nil {
		t.Fatal(err)
	}
	if whole, err := c.Compact(bytes.Clone(got), None, 0, 0, 0, all); err != nil || !bytes.Equal(whole, got) {
		t.Error("not the same again", err)
	}
	if n := testing.AllocsPerRun(20, func() {
		if _, err := c.Compact(b, None, 0, 0, 0, all); err != nil {
			t.Fatal(err)
		}
	}); n > 25 && !raceDetector {
		t.Errorf("%v allocations for a batch", n)
	}
}
