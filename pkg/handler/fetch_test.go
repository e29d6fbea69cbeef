package handler

import (
	"bytes"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// A want is one partition of a fetch request.
type want struct {
	topic     string
	id        kafka.TopicID
	partition int32
	offset    int64
	max       int32 // 0: 1 MiB
}

// fetchRequest is a sessionless request that does not wait.
func fetchRequest(wants ...want) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.MinBytes = 50<<20, 1
	req.SessionEpoch = -1
	for _, w := range wants {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.FetchOffset, p.PartitionMaxBytes = w.partition, w.offset, 1<<20
		if w.max != 0 {
			p.PartitionMaxBytes = w.max
		}
		n := len(req.Topics)
		if n == 0 || req.Topics[n-1].Topic != w.topic || req.Topics[n-1].TopicID != w.id {
			t := kmsg.NewFetchRequestTopic()
			t.Topic, t.TopicID = w.topic, w.id
			req.Topics = append(req.Topics, t)
			n++
		}
		req.Topics[n-1].Partitions = append(req.Topics[n-1].Partitions, p)
	}
	return req
}

// all is the partition 0 of a topic from an offset on, for every version.
func all(t *topic.Topic, offset int64) want {
	return want{topic: t.Name(), id: t.ID(), offset: offset}
}

// fetched asks and returns the partitions in the order of the response.
func (k *kit) fetched(version int16, req *kmsg.FetchRequest) []kmsg.FetchResponseTopicPartition {
	k.t.Helper()
	return partitionsOf(ask[*kmsg.FetchResponse](k, version, req))
}

func partitionsOf(resp *kmsg.FetchResponse) (out []kmsg.FetchResponseTopicPartition) {
	for _, t := range resp.Topics {
		out = append(out, t.Partitions...)
	}
	return out
}

// wantUnread compares the answer of a partition that can't be read.
func wantUnread(t *testing.T, got kmsg.FetchResponseTopicPartition, want *kerr.Error) {
	t.Helper()
	wantCode(t, got.ErrorCode, want)
	if got.HighWatermark != -1 || got.LastStableOffset != -1 || got.LogStartOffset != -1 || got.RecordBatches == nil || len(got.RecordBatches) != 0 {
		t.Fatalf("%+v", got)
	}
}

// ST-12: what was produced comes back byte for byte but for what the broker owns.
func TestFetchReturnsWhatWasProduced(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	sent := batch(t, record.Options{Codec: record.LZ4}, "x", "y")
	k.produced(9, produceTo("a", kafka.TopicID{}, 1, append([]byte(nil), sent...)))
	k.append("a", 0, "z")
	k.eachVersion(kmsg.Fetch, func(t *testing.T, version int16) {
		resp := ask[*kmsg.FetchResponse](k, version, fetchRequest(all(made, 0)))
		if len(resp.Topics) != 1 || version < 13 && resp.Topics[0].Topic != "a" || version >= 13 && resp.Topics[0].TopicID != made.ID() {
			t.Fatalf("%+v", resp.Topics)
		}
		got := resp.Topics[0].Partitions[0]
		wantCode(t, got.ErrorCode, nil)
		if got.HighWatermark != 3 || got.LastStableOffset != 3 || version >= 5 && got.LogStartOffset != 0 ||
			got.PreferredReadReplica != -1 || got.AbortedTransactions != nil || got.CurrentLeader.LeaderID != -1 {
			t.Fatalf("%+v", got)
		}
		first, rest, err := record.Parse(got.RecordBatches)
		check(t, err)
		if !bytes.Equal(first[record.HeaderSize:], sent[record.HeaderSize:]) || first.LeaderEpoch() != testEpoch || first.CRC() != first.ComputeCRC() {
			t.Fatal("the first batch is another than what was sent")
		}
		second, rest, err := record.Parse(rest)
		check(t, err)
		if second.BaseOffset() != 2 || len(rest) != 0 {
			t.Fatalf("second batch at %d, then %d bytes", second.BaseOffset(), len(rest))
		}
	})
}

// What ends a fetch at once (ReplicaManager.fetchMessages).
func TestFetchThatDoesNotWait(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	k.append("a", 0, "x")
	noWait := longPoll(1, all(made, 1))
	noWait.MaxWaitMillis = 0
	fenced := longPoll(1, all(made, 1))
	fenced.Topics[0].Partitions[0].CurrentLeaderEpoch = testEpoch - 1
	diverging := longPoll(1, all(made, 1))
	diverging.Topics[0].Partitions[0].LastFetchedEpoch = testEpoch - 1
	none := longPoll(1)
	for name, req := range map[string]*kmsg.FetchRequest{
		"max wait is 0":             noWait,
		"there are records":         longPoll(1, all(made, 0)),
		"min bytes is 0":            longPoll(0, all(made, 1)),
		"an error":                  fenced,
		"a divergence":              diverging,
		"no partitions":             none,
		"no partition can be read":  longPoll(1, want{topic: "missing"}),
		"an offset out of range":    longPoll(1, all(made, 5)),
		"max bytes below min bytes": func() *kmsg.FetchRequest { r := longPoll(1000, all(made, 0)); r.MaxBytes = 1; return r }(),
	} {
		c := k.begin(12, req)
		if c.reply.Wait != nil {
			t.Errorf("%s: the fetch waits", name)
		}
		c.finish()
	}
}

// The records that a response names stay readable until it is sent, whatever
// happens to the topic, and their file is let go then, once.
func TestFetchHoldsItsFilesUntilItIsSent(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	k.append("a", 0, "x")
	for _, wait := range []bool{false, true} {
		req := fetchRequest(all(made, 0))
		if wait { // what was read before the long poll is let go too
			req = longPoll(1<<20, all(made, 0))
			req.MaxWaitMillis = 1
		}
		c := k.begin(12, req)
		if (c.reply.Wait != nil) != wait {
			t.Fatal("the fetch waits, or not, against its limits")
		}
		if wait {
			c.reply.Wait(t.Context())
		}
		resp, err := c.reply.Response()
		check(t, err)
		check(t, k.Registry.Delete(t.Context(), made))
		if body := join(t, resp.Parts); !bytes.Contains(body, []byte("x")) {
			t.Fatal("no records")
		}
		closed := k.disk.Count(vfs.OpClose)
		resp.Release()
		if n := k.disk.Count(vfs.OpClose) - closed; n != 1 {
			t.Fatalf("%d files were closed by the release, want 1", n)
		}
		made = k.create("a", 1)
		k.append("a", 0, "x")
	}
}

// A long poll holds no file: what was read before it is let go.
func TestFetchHoldsNoFileWhileItWaits(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	k.append("a", 0, "x")
	c := k.begin(12, longPoll(1<<20, all(made, 0)))
	if c.reply.Wait == nil {
		t.Fatal("the fetch does not wait")
	}
	check(t, k.Registry.Delete(t.Context(), made))
	closed := k.disk.Count(vfs.OpClose)
	c.finish()
	if n := k.disk.Count(vfs.OpClose) - closed; n != 0 {
		t.Fatalf("%d files were held", n)
	}
}

// BenchmarkFetch asks through Handle and encodes the response, without sending it.
func BenchmarkFetch(b *testing.B) {
	run := func(b *testing.B, k *kit, version int16, req *kmsg.FetchRequest, wantRecords bool) {
		req.Version = version
		r := &server.Request{Conn: k.conn, Key: 1, Version: version, ClientID: "bench", Body: req}
		b.ReportAllocs()
		for b.Loop() {
			reply := k.Handle(b.Context(), r)
			if reply.Wait != nil {
				b.Fatal("the fetch waits")
			}
			resp, err := reply.Response()
			if err != nil || wantRecords != (len(resp.Parts) > 1) {
				b.Fatal(err, len(resp.Parts))
			}
			resp.Release()
		}
	}
	b.Run("tail of one partition", func(b *testing.B) {
		k := newKitOn(b, vfs.OS, nil)
		made := k.create("a", 1)
		k.append("a", 0, strings.Repeat("x", 60000))
		run(b, k, 18, fetchRequest(all(made, 0)), true)
	})
	b.Run("100 empty partitions", func(b *testing.B) {
		k := newKitOn(b, vfs.OS, nil)
		made := k.create("a", 100)
		var wants []want
		for p := range int32(100) {
			wants = append(wants, want{"a", made.ID(), p, 0, 0})
		}
		run(b, k, 18, fetchRequest(wants...), false)
	})
	b.Run("100 empty partitions of a session", func(b *testing.B) {
		k := newKitOn(b, vfs.OS, nil)
		made := k.create("a", 100)
		var wants []want
		for p := range int32(100) {
			wants = append(wants, want{"a", made.ID(), p, 0, 0})
		}
		first := fetchRequest(wants...)
		first.SessionEpoch = 0
		full := ask[*kmsg.FetchResponse](k, 18, first)
		req := fetchRequest()
		req.Version = 18
		req.SessionID = full.SessionID
		r := &server.Request{Conn: k.conn, Key: 1, Version: 18, ClientID: "bench", Body: req}
		epoch := int32(0)
		b.ReportAllocs()
		for b.Loop() {
			epoch++
			req.SessionEpoch = epoch
			resp, err := k.Handle(b.Context(), r).Response()
			if err != nil {
				b.Fatal(err)
			}
			resp.Release()
		}
	})
}

// Kafka fails on an isolation level that is none, as soon as there is something to read.
func TestFetchWithAnUnknownIsolationLevel(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	k.append("a", 0, "x")
	k.eachVersion(kmsg.Fetch, func(t *testing.T, version int16) {
		req := fetchRequest(all(made, 0))
		req.IsolationLevel = 2
		resp := ask[*kmsg.FetchResponse](k, version, req)
		if version >= 7 {
			wantCode(t, resp.ErrorCode, kerr.UnknownServerError)
		}
		if version >= 13 {
			if len(resp.Topics) != 0 {
				t.Fatalf("%+v", resp)
			}
			return
		}
		wantUnread(t, partitionsOf(resp)[0], kerr.UnknownServerError)
	})
	none := fetchRequest()
	none.IsolationLevel = 2
	wantCode(t, ask[*kmsg.FetchResponse](k, 12, none).ErrorCode, nil)
}
