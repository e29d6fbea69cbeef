package judge

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestRightBatchIsReadByFranzGo(t *testing.T) {
	for codec := range int16(5) {
		b := NewBatch(KeyValue("k", "v"), Record{Value: []byte{}, Headers: []kmsg.Header{{Key: "h", Value: []byte("x")}}}).Codec(codec).Idempotent(7, 3, 9)
		raw := b.Bytes()
		partition := kmsg.NewFetchResponseTopicPartition()
		partition.RecordBatches, partition.HighWatermark = raw, 2
		got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true}, &partition, kgo.DefaultDecompressor(), nil)
		if got.Err != nil || len(got.Records) != 2 {
			t.Fatalf("codec %d: %d records, %v", codec, len(got.Records), got.Err)
		}
		if r := got.Records[0]; string(r.Key) != "k" || string(r.Value) != "v" || r.Timestamp.UnixMilli() != Base || r.ProducerID != 7 || r.ProducerEpoch != 3 {
			t.Errorf("codec %d: first record is %+v", codec, r)
		}
		if r := got.Records[1]; r.Key != nil || r.Value == nil || len(r.Headers) != 1 || r.Timestamp.UnixMilli() != Base+1 {
			t.Errorf("codec %d: second record is %+v", codec, r)
		}
	}
}

func TestWrongBatchIsWrongInOneThingAlone(t *testing.T) {
	right := Values("a").Bytes()
	wrong := Values("a").With(func(b *Batch) { b.CRCXor = 1 }).Bytes()
	for i := range right {
		if (right[i] != wrong[i]) != (i == 20) {
			t.Errorf("byte %d: %#x and %#x", i, right[i], wrong[i])
		}
	}
	long := Values("a").With(func(b *Batch) { b.LengthDelta = 1 }).Bytes()
	if got, want := binary.BigEndian.Uint32(long[8:]), uint32(len(right)-12+1); got != want {
		t.Errorf("length %d, want %d", got, want)
	}
	count := Values("a").With(func(b *Batch) { b.Count = 5 }).Bytes()
	if got := binary.BigEndian.Uint32(count[17:]); got != crc32.Checksum(count[21:], castagnoli) {
		t.Error("the checksum does not cover the wrong count")
	}
}

func TestMessageSetIsReadByFranzGo(t *testing.T) {
	partition := kmsg.NewFetchResponseTopicPartition()
	partition.RecordBatches = MessageSet(1, "old")
	got, _ := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{}, &partition, kgo.DefaultDecompressor(), nil)
	if got.Err != nil || len(got.Records) != 1 || string(got.Records[0].Value) != "old" {
		t.Errorf("%+v", got)
	}
}
