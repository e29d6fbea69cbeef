package record

import (
	"bytes"
	"testing"
)

// ST-12: only what the broker owns is set.
func TestStampOfARightBatchTouchesNoCoveredByte(t *testing.T) {
	b := sample(t, Options{Codec: LZ4}, 10)
	was := bytes.Clone(b)
	v := mustValidate(t, b)
	Stamp(b, 1000, 7, v, -1)
	if b.BaseOffset() != 1000 || b.LeaderEpoch() != 7 {
		t.Errorf("offset %d, epoch %d", b.BaseOffset(), b.LeaderEpoch())
	}
	if !bytes.Equal(b[16:], was[16:]) {
		t.Error("bytes from the magic on have changed")
	}
	if err := b.CheckCRC(); err != nil {
		t.Error(err)
	}
	equalRecords(t, b, sampleRecords(10))
}

// ST-12: max timestamp is what the records say, whatever the client says.
func TestStampCorrectsTheMaxTimestamp(t *testing.T) {
	b := patched(sample(t, Options{}, 10), func(b Batch) { b.SetMaxTimestamp(5) })
	Stamp(b, 0, 0, mustValidate(t, b), -1)
	if b.MaxTimestamp() != now+3 || b.LogAppendTime() {
		t.Errorf("max timestamp %d, %v", b.MaxTimestamp(), b.LogAppendTime())
	}
	if err := b.CheckCRC(); err != nil {
		t.Error(err)
	}
}

// ST-12: with LogAppendTime the type bit and max timestamp are the broker's; deltas stay.
func TestStampWithLogAppendTime(t *testing.T) {
	b := sample(t, Options{Transactional: true, Producer: &Producer{ID: 1}}, 10)
	Stamp(b, 50, 1, mustValidate(t, b), 777)
	if b.MaxTimestamp() != 777 || !b.LogAppendTime() || !b.Transactional() || b.BaseTimestamp() != now-3 {
		t.Errorf("max %d, attributes %x, base %d", b.MaxTimestamp(), b.Attributes(), b.BaseTimestamp())
	}
	if err := b.CheckCRC(); err != nil {
		t.Error(err)
	}
	for r, err := range b.Records() {
		if err != nil || r.Timestamp != 777 {
			t.Fatalf("timestamp %d, %v", r.Timestamp, err)
		}
	}
}

// A batch that claims LogAppendTime loses the claim on a CreateTime topic.
func TestStampClearsAFalseLogAppendTime(t *testing.T) {
	b := sample(t, Options{LogAppendTime: true, AppendTime: now}, 2)
	b.SetAttributes(b.Attributes() | -0x8000)
	b.SetCRC()
	Stamp(b, 0, 0, mustValidate(t, b), -1)
	if b.Attributes() != 0 || b.MaxTimestamp() != now {
		t.Errorf("attributes %x, max %d", b.Attributes(), b.MaxTimestamp())
	}
	if err := b.CheckCRC(); err != nil {
		t.Error(err)
	}
}
