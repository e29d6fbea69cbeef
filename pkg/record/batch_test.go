package record

import (
	"bytes"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The header view agrees with kmsg's, an independent reading of the format.
func TestHeaderViewAgreesWithKmsg(t *testing.T) {
	b := sample(t, Options{
		Codec: Gzip, BaseOffset: 1 << 40, LeaderEpoch: 7, Transactional: true,
		Producer: &Producer{ID: 99, Epoch: 3, BaseSequence: 1 << 30},
	}, 10)
	var k kmsg.RecordBatch
	if err := k.ReadFrom(b); err != nil {
		t.Fatal(err)
	}
	if k.FirstOffset != b.BaseOffset() || k.Length != int32(b.Size()-LengthEnd) || k.PartitionLeaderEpoch != b.LeaderEpoch() ||
		k.Magic != b.MagicByte() || uint32(k.CRC) != b.CRC() || k.Attributes != b.Attributes() || k.LastOffsetDelta != b.LastOffsetDelta() ||
		k.FirstTimestamp != b.BaseTimestamp() || k.MaxTimestamp != b.MaxTimestamp() || k.ProducerID != b.ProducerID() ||
		k.ProducerEpoch != b.ProducerEpoch() || k.FirstSequence != b.BaseSequence() || k.NumRecords != b.Count() {
		t.Errorf("kmsg reads %+v", k)
	}
	if again := k.AppendTo(nil); !bytes.Equal(again, b) {
		t.Error("kmsg writes another batch than it has read")
	}
}

// TX-1: sequences wrap from 2^31-1 to 0.
func TestSequencesWrap(t *testing.T) {
	b := sample(t, Options{Producer: &Producer{ID: 1, BaseSequence: 1<<31 - 2}}, 4)
	if b.LastSequence() != 1 {
		t.Errorf("last sequence %d, want 1", b.LastSequence())
	}
	if none := sample(t, Options{}, 4); none.LastSequence() != NoSequence {
		t.Errorf("last sequence %d of no producer", none.LastSequence())
	}
}

func TestDeleteHorizonTakesThePlaceOfTheBaseTimestamp(t *testing.T) {
	b := sample(t, Options{DeleteHorizon: 12345}, 4)
	if ms, ok := b.DeleteHorizon(); !ok || ms != 12345 {
		t.Errorf("horizon %d, %v", ms, ok)
	}
	equalRecords(t, b, sampleRecords(4))
	if _, ok := sample(t, Options{}, 4).DeleteHorizon(); ok {
		t.Error("a batch has a horizon that nobody set")
	}
}
