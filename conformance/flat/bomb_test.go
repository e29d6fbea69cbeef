//go:build linux

package flat

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc32"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/target"
)

// ST-10: a batch of 1 MiB that inflates to 1 GiB is accepted, and reading it takes at most 32 MiB above the request.
func TestABombNeedsLittleMemory(t *testing.T) {
	const records, size, most = 1024, 1 << 20, 32 << 20
	p := start(t, target.Binary(t), t.TempDir())
	cl := client(t, p.addr)
	limit := "4194304"
	topic, err := kadm.NewClient(cl).CreateTopic(t.Context(), 1, 1, map[string]*string{"max.message.bytes": &limit}, "bomb")
	if err != nil {
		t.Fatal(err)
	}
	batch := bomb(t, records, size)
	send(t, cl, topic.ID, bomb(t, 1, 1)) // the partition is open, and what a first request takes is there
	before := p.anonymous(t)
	var peak atomic.Int64
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for tick := time.NewTicker(time.Millisecond); ; {
			peak.Store(max(peak.Load(), p.anonymous(t)))
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	began := time.Now()
	send(t, cl, topic.ID, batch)
	took := time.Since(began)
	close(done)
	<-watched
	above := peak.Load() - before - int64(len(batch))
	t.Logf("a batch of %d bytes that inflates to %d MiB, read in %v: %.1f MB in use before, %.1f MB at most, %.1f MB above the request",
		len(batch), records*size>>20, took.Round(time.Millisecond), float64(before)/1e6, float64(peak.Load())/1e6, float64(above)/1e6)
	if above > most {
		t.Errorf("%d bytes above the request, at most %d are allowed", above, most)
	}
}

// send produces one batch as it is.
func send(t *testing.T, cl *kgo.Client, id kadm.TopicID, batch []byte) {
	t.Helper()
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = batch
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID, topic.Partitions = "bomb", id, append(topic.Partitions, part)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = 1, 30_000, append(req.Topics, topic)
	shard, err := cl.Broker(1).RetriableRequest(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(shard.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}

// bomb is a gzip batch of records whose values are zeros.
func bomb(t *testing.T, records, size int) []byte {
	t.Helper()
	var payload bytes.Buffer
	member := func(p []byte) []byte { // a stream may be of many members, and the long one is compressed once
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		if _, err := w.Write(p); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	value, end := member(make([]byte, size)), member([]byte{0}) // no headers
	for i := range records {
		head := binary.AppendVarint([]byte{0, 0}, int64(i)) // attributes, timestamp delta, offset delta
		head = append(head, 1)                              // no key
		head = binary.AppendVarint(head, int64(size))
		payload.Write(member(append(binary.AppendVarint(nil, int64(len(head)+size+1)), head...)))
		payload.Write(value)
		payload.Write(end)
	}
	now := time.Now().UnixMilli()
	b := kmsg.RecordBatch{
		Length: int32(61 - 12 + payload.Len()), PartitionLeaderEpoch: -1, Magic: 2, Attributes: 1, LastOffsetDelta: int32(records - 1),
		FirstTimestamp: now, MaxTimestamp: now, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1, NumRecords: int32(records), Records: payload.Bytes(),
	}
	raw := b.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	return raw
}
