package handler

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// produceTo makes a request for partitions 0, 1 ... of one topic.
func produceTo(name string, id kafka.TopicID, acks int16, records ...[]byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 1000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = name, id
	for i, r := range records {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(i), r
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// produced asks and returns the answers of the one topic.
func (k *kit) produced(version int16, req *kmsg.ProduceRequest) []kmsg.ProduceResponseTopicPartition {
	k.t.Helper()
	resp := ask[*kmsg.ProduceResponse](k, version, req)
	if len(resp.Topics) != 1 || resp.Topics[0].Topic != "" && resp.Topics[0].Topic != req.Topics[0].Topic {
		k.t.Fatalf("%+v", resp)
	}
	return resp.Topics[0].Partitions
}

func (k *kit) offsets(name string, partition int32) commitlog.Offsets {
	k.t.Helper()
	log, err := k.Handler.log(name, partition)
	check(k.t, err)
	return log.Offsets()
}

// ST-12, ST-51, ST-52: what is acknowledged is in the log; with acks=all it is durable.
func TestProduceAppends(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 2)
	base := int64(0)
	k.eachVersion(kmsg.Produce, func(t *testing.T, version int16) {
		for _, acks := range []int16{1, -1} {
			got := k.produced(version, produceTo("a", made.ID(), acks,
				batch(t, record.Options{}, "x", "y"), batch(t, record.Options{}, "z", "z")))
			for i, p := range got {
				wantCode(t, p.ErrorCode, nil)
				if p.Partition != int32(i) || p.BaseOffset != base || p.LogAppendTime != -1 || p.ErrorMessage != nil || len(p.ErrorRecords) != 0 {
					t.Fatalf("acks %d: %+v, want base offset %d", acks, p, base)
				}
				if version >= 5 && p.LogStartOffset != 0 {
					t.Fatalf("%+v", p)
				}
			}
			base += 2
			o := k.offsets("a", 1)
			if o.HighWatermark != base || acks == -1 && o.Flushed != base {
				t.Fatalf("acks %d: %+v, want end %d", acks, o, base)
			}
		}
	})
}

func TestProduceFindsNoPartition(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	good := batch(t, record.Options{}, "x")
	k.eachVersion(kmsg.Produce, func(t *testing.T, version int16) {
		want := kerr.UnknownTopicOrPartition
		if version >= 13 {
			want = kerr.UnknownTopicID
		}
		got := k.produced(version, produceTo("missing", kafka.NewTopicID(), 1, good))
		wantRefused(t, got[0], want, -1)
		if _, ok := k.Registry.Lookup("missing"); ok {
			t.Fatal("Produce made a topic")
		}
		if version < 13 {
			got = k.produced(version, produceTo("a", kafka.TopicID{}, 1, good, good))
			wantCode(t, got[0].ErrorCode, nil)
			wantRefused(t, got[1], kerr.UnknownTopicOrPartition, -1)
		}
	})
}

// There are no transactions: every transactional id is unknown. The neighbours are appended.
func TestProduceRefusesTransactionalBatches(t *testing.T) {
	k := newKit(t)
	k.create("a", 2)
	req := produceTo("a", kafka.TopicID{}, -1,
		batch(t, record.Options{Transactional: true, Producer: &record.Producer{ID: 5}}, "x"), batch(t, record.Options{}, "x"))
	for id, want := range map[string]*kerr.Error{"id": kerr.InvalidProducerIDMapping, "": kerr.InvalidRequest} {
		req.TransactionID = &id
		got := k.produced(9, req)
		wantRefused(t, got[0], want, -1)
		if got[0].ErrorMessage != nil {
			t.Errorf("message %s", show(got[0].ErrorMessage))
		}
		wantCode(t, got[1].ErrorCode, nil)
	}
}

// A topic of which no partition is asked for is not answered (recorded: produce-requests).
func TestProduceLeavesOutTopicsWithoutPartitions(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	req := produceTo("a", kafka.TopicID{}, -1, batch(t, record.Options{}, "x"))
	for _, name := range []string{"a", "none"} {
		empty := kmsg.NewProduceRequestTopic()
		empty.Topic = name
		req.Topics = append(req.Topics, empty)
	}
	resp := ask[*kmsg.ProduceResponse](k, 9, req)
	if len(resp.Topics) != 1 || resp.Topics[0].Topic != "a" || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Errorf("%+v", resp.Topics)
	}
}

func TestProduceRefusesOtherAcks(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	for _, acks := range []int16{-2, 2, 100} {
		got := k.produced(9, produceTo("a", kafka.TopicID{}, acks, batch(t, record.Options{}, "x"), []byte{}))
		wantRefused(t, got[0], kerr.InvalidRequiredAcks, -1)
		wantRefused(t, got[1], kerr.UnknownTopicOrPartition, -1) // what failed before keeps its error
	}
	if o := k.offsets("a", 0); o.End != 0 {
		t.Fatalf("%+v", o)
	}
}

func TestProduceKeepsInternalTopicsToTools(t *testing.T) {
	k := newKit(t)
	k.create("__consumer_offsets", 1)
	got := k.produced(9, produceTo("__consumer_offsets", kafka.TopicID{}, 1, batch(t, record.Options{}, "x")))
	wantRefused(t, got[0], kerr.InvalidTopicException, -1)
}

func TestProduceWithLogAppendTime(t *testing.T) {
	k := newKit(t)
	k.create("a", 1, "message.timestamp.type", "LogAppendTime")
	before := time.Now().UnixMilli()
	got := k.produced(9, produceTo("a", kafka.TopicID{}, 1, batch(t, record.Options{}, "x")))[0]
	if got.LogAppendTime < before || got.LogAppendTime > time.Now().UnixMilli() {
		t.Fatalf("%+v", got)
	}
}

// TX-1, ST-55: a repeat is answered with the first one's offset, and only once that is durable.
func TestProduceRepeatsAreNotAppended(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	b := batch(t, record.Options{Producer: &record.Producer{ID: 9, BaseSequence: 0}}, "x", "y")
	first := k.produced(9, produceTo("a", kafka.TopicID{}, 1, append([]byte(nil), b...)))[0]
	again := k.produced(9, produceTo("a", kafka.TopicID{}, -1, append([]byte(nil), b...)))[0]
	wantCode(t, again.ErrorCode, nil)
	if first.BaseOffset != 0 || again.BaseOffset != 0 {
		t.Fatalf("%+v %+v", first, again)
	}
	if o := k.offsets("a", 0); o.End != 2 || o.Flushed != 2 {
		t.Fatalf("%+v, want one copy, durable", o)
	}
	gap := batch(t, record.Options{Producer: &record.Producer{ID: 9, BaseSequence: 7}}, "x")
	got := k.produced(9, produceTo("a", kafka.TopicID{}, 1, gap))[0]
	wantRefused(t, got, kerr.OutOfOrderSequenceNumber, 0)
	if got.ErrorMessage != nil {
		t.Fatalf("message %s", show(got.ErrorMessage))
	}
}

// ST-52: acks=0 has no answer; an error closes the connection.
func TestProduceWithoutAcks(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	reply := k.begin(9, produceTo("a", kafka.TopicID{}, 0, batch(t, record.Options{}, "x"))).reply
	if reply.Response != nil || reply.Wait != nil || reply.Close {
		t.Fatalf("%+v", reply)
	}
	if o := k.offsets("a", 0); o.End != 1 {
		t.Fatalf("%+v", o)
	}
	for _, bad := range []*kmsg.ProduceRequest{
		produceTo("missing", kafka.TopicID{}, 0, batch(t, record.Options{}, "x")),
		produceTo("a", kafka.TopicID{}, 0, mutate(batch(t, record.Options{}, "x"), func(b record.Batch) { b[16] = 9 })),
	} {
		reply := k.begin(9, bad).reply
		if reply.Response != nil || !reply.Close {
			t.Fatalf("%+v", reply)
		}
	}
	if !strings.Contains(k.log.String(), "acks=0") {
		t.Fatalf("the log does not say why: %s", k.log)
	}
}

// ST-60: a disk that takes no more is KAFKA_STORAGE_ERROR, leaves no offset behind, and writes resume by themselves.
func TestProduceOnAFullDisk(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	k.append("a", 0, "before")
	k.disk.SetFull(true)
	wantRefused(t, k.produced(9, produceTo("a", kafka.TopicID{}, -1, batch(t, record.Options{}, "x")))[0], kerr.KafkaStorageError, -1)
	if reply := k.begin(9, produceTo("a", kafka.TopicID{}, 0, batch(t, record.Options{}, "x"))).reply; !reply.Close {
		t.Fatal("acks=0 on a full disk does not close the connection")
	}
	k.disk.SetFull(false)
	got := k.produced(9, produceTo("a", kafka.TopicID{}, -1, batch(t, record.Options{}, "x")))[0]
	wantCode(t, got.ErrorCode, nil)
	if got.BaseOffset != 1 {
		t.Fatalf("base offset %d, want 1", got.BaseOffset)
	}
}

// ST-62: a write that fails part-way leaves nothing in its partition, and the others of the request stand.
func TestProduceToOneFailingPartition(t *testing.T) {
	k := newKit(t)
	k.create("a", 3)
	for p := range int32(3) {
		k.append("a", p, "before")
	}
	k.disk.Fail(faultfs.Rule{Kinds: vfs.OpWrite, Name: "a-1/*.log", Err: syscall.EIO, Short: 20})
	b := batch(t, record.Options{}, "x")
	req := produceTo("a", kafka.TopicID{}, -1, b, b, b)
	for p, got := range k.produced(9, req) {
		if p == 1 {
			wantRefused(t, got, kerr.KafkaStorageError, -1)
		} else if wantCode(t, got.ErrorCode, nil); got.BaseOffset != 1 {
			t.Errorf("partition %d: base offset %d, want 1", p, got.BaseOffset)
		}
	}
	for p, end := range map[int32]int64{0: 2, 1: 1, 2: 2} {
		if got := k.offsets("a", p).End; got != end {
			t.Errorf("partition %d ends at %d, want %d", p, got, end)
		}
	}
	for p, got := range k.produced(9, req) {
		if want := []int64{2, 1, 2}[p]; got.BaseOffset != want {
			t.Errorf("partition %d: the next base offset is %d, want %d", p, got.BaseOffset, want)
		}
	}
}

// ST-51, ST-61: acks=all is not acknowledged where the fsync fails.
func TestProduceIsNotAcknowledgedWithoutItsFsync(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	k.append("a", 0, "before")
	k.disk.Fail(faultfs.Rule{Kinds: vfs.OpSync, Times: -1, Err: syscall.EIO})
	wantRefused(t, k.produced(9, produceTo("a", kafka.TopicID{}, -1, batch(t, record.Options{}, "x")))[0], kerr.KafkaStorageError, -1)
}

// ST-51: the fsync is awaited in the Reply, so that the connection's next request appends meanwhile.
func TestProduceOverlapsTheFsync(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	first := k.begin(9, produceTo("a", kafka.TopicID{}, -1, batch(t, record.Options{}, "x")))
	second := k.begin(9, produceTo("a", kafka.TopicID{}, -1, batch(t, record.Options{}, "y")))
	if o := k.offsets("a", 0); o.End != 2 {
		t.Fatalf("%+v: both are appended before either is answered", o)
	}
	for i, c := range []*call{first, second} {
		resp := c.finish().(*kmsg.ProduceResponse)
		wantCode(t, resp.Topics[0].Partitions[0].ErrorCode, nil)
		if resp.Topics[0].Partitions[0].BaseOffset != int64(i) {
			t.Fatalf("%+v", resp.Topics[0].Partitions[0])
		}
	}
}

// A connection that is gone gets no success for what is not known to be durable; a broker that stops finishes its flushes (ST-50).
func TestProduceWhenTheContextEnds(t *testing.T) {
	for _, c := range []struct {
		cause error
		want  *kerr.Error
	}{{server.ErrConnClosed, kerr.RequestTimedOut}, {server.ErrShutdown, nil}} {
		t.Run(c.cause.Error(), func(t *testing.T) {
			k := newKit(t)
			k.create("a", 1)
			release := make(chan struct{})
			k.disk.OnOp(func(op vfs.Op) {
				if op.Kind == vfs.OpSync {
					<-release
				}
			})
			call := k.begin(9, produceTo("a", kafka.TopicID{}, -1, batch(t, record.Options{}, "x")))
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(c.cause)
			call.ctx = ctx
			if c.want == nil {
				close(release)
			}
			got := call.finish().(*kmsg.ProduceResponse)
			wantCode(t, got.Topics[0].Partitions[0].ErrorCode, c.want)
			if c.want != nil {
				close(release)
			}
		})
	}
}

// ST-56: without sync there is nothing to wait for.
func TestProduceWithoutSyncDoesNotWait(t *testing.T) {
	k := newKit(t, func(s *config.Settings) { s.AcksAllSync = false })
	k.create("a", 1)
	c := k.begin(9, produceTo("a", kafka.TopicID{}, -1, batch(t, record.Options{}, "x")))
	if c.reply.Wait != nil {
		t.Fatal("the reply waits")
	}
	c.finish()
}

// benchProduce sends batches of size bytes through Handle, acks=1, on a disk that keeps nothing.
func benchProduce(b *testing.B, size int) {
	k := newKitOn(b, vfs.OS, nil, func(s *config.Settings) { s.AcksAllSync = false })
	made := k.create("a", 1)
	records := batch(b, record.Options{}, strings.Repeat("x", size-record.HeaderSize-20))
	req := produceTo("a", made.ID(), 1, records)
	req.Version = 13
	r := &server.Request{Conn: k.conn, Key: 0, Version: 13, ClientID: "bench", Body: req}
	pristine := append([]byte(nil), records...)
	out := make([]byte, 0, 256)
	b.SetBytes(int64(len(records)))
	b.ReportAllocs()
	for b.Loop() {
		copy(records[:record.HeaderSize], pristine) // as it came off the wire
		reply := k.Handle(b.Context(), r)
		resp, err := reply.Response()
		if err != nil {
			b.Fatal(err)
		}
		out = resp.Body.AppendTo(out[:0])
		resp.Release()
	}
}

func BenchmarkProduce(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) { benchProduce(b, size) })
	}
}
