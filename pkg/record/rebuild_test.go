package record

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// ST-13: the records stay, from every codec to every codec.
func TestRebuildKeepsTheRecords(t *testing.T) {
	for _, from := range allCodecs {
		b := sample(t, Options{
			Codec: from, BaseOffset: 9, LeaderEpoch: 3, Transactional: true, DeleteHorizon: 5,
			Producer: &Producer{ID: 4, Epoch: 2, BaseSequence: 77},
		}, 1000)
		for _, to := range allCodecs {
			n, err := Rebuild(b, to, 0)
			if err != nil {
				t.Fatalf("%s to %s: %v", from, to, err)
			}
			equalRecords(t, n, sampleRecords(1000))
			if err := n.CheckCRC(); err != nil {
				t.Error(err)
			}
			if _, ok := n.DeleteHorizon(); ok || n.Codec() != to || n.BaseOffset() != 9 || n.LeaderEpoch() != 3 || !n.Transactional() ||
				n.ProducerID() != 4 || n.ProducerEpoch() != 2 || n.BaseSequence() != 77 || n.LastOffsetDelta() != 999 || n.MaxTimestamp() != now+3 {
				t.Errorf("%s to %s: the header has changed", from, to)
			}
		}
	}
}

// ST-12: inner offsets that are not 0..n-1 become so, as LogValidator makes them.
func TestRebuildMakesOffsetsConsecutive(t *testing.T) {
	b := NewBuilder(Options{Codec: Gzip})
	for _, delta := range []int32{0, 7, 300} {
		if err := b.Add(Record{OffsetDelta: delta, Timestamp: now, Value: []byte("v")}); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	batch = patched(batch, putInt32(23, 2))
	if mustValidate(t, batch).Consecutive {
		t.Fatal("gaps are seen as consecutive")
	}
	n, err := Rebuild(batch, Gzip, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !mustValidate(t, n).Consecutive {
		t.Error("not consecutive after the rebuild")
	}
}

// A batch that claims LogAppendTime gives its records that time, also if the claim is cleared later.
func TestRebuildOfLogAppendTime(t *testing.T) {
	b := sample(t, Options{LogAppendTime: true, AppendTime: now - 5}, 10)
	n, err := Rebuild(b, Zstd, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !n.LogAppendTime() || n.MaxTimestamp() != now-5 {
		t.Errorf("attributes %x, max %d", n.Attributes(), n.MaxTimestamp())
	}
	Stamp(n, 0, 0, mustValidate(t, n), -1)
	for _, r := range all(t, n) {
		if r.Timestamp != now-5 {
			t.Fatalf("timestamp %d", r.Timestamp-now)
		}
	}
}

func TestRebuildIsBounded(t *testing.T) {
	b := sample(t, Options{Codec: Zstd}, 1000)
	if _, err := RebuildWithin(b, None, 0, 2*len(b)); !errors.Is(err, kerr.MessageTooLarge) {
		t.Errorf("%v", err)
	}
}

func TestRebuildOfBrokenRecordsIsAnError(t *testing.T) {
	b := sample(t, Options{}, 10)
	for _, cut := range []int{1, 10, 100} {
		if _, err := Rebuild(withPayload(b, None, b[HeaderSize:len(b)-cut]), Gzip, 0); !errors.Is(err, kerr.InvalidRecord) {
			t.Errorf("%d bytes less: %v", cut, err)
		}
	}
	if _, err := Rebuild(withPayload(b, None, append(b[HeaderSize:len(b):len(b)], 0)), Gzip, 0); !errors.Is(err, kerr.InvalidRecord) {
		t.Errorf("a byte more: %v", err)
	}
}
