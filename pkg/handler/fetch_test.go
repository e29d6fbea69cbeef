package handler

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
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

// A fetch from within a batch gets the whole batch; one at the end gets nothing.
func TestFetchOffsets(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	k.append("a", 0, "x", "y", "z")
	for offset, wantBase := range map[int64]int64{0: 0, 2: 0, 3: -1} {
		got := k.fetched(12, fetchRequest(all(made, offset)))[0]
		wantCode(t, got.ErrorCode, nil)
		if wantBase < 0 != (len(got.RecordBatches) == 0) {
			t.Fatalf("from %d: %d bytes", offset, len(got.RecordBatches))
		}
	}
	for _, offset := range []int64{-1, 4} {
		got := k.fetched(12, fetchRequest(all(made, offset)))[0]
		wantUnread(t, got, kerr.OffsetOutOfRange)
	}
}

// KIP-98: read_committed has an empty list of aborted transactions, read_uncommitted none.
func TestFetchIsolation(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	k.append("a", 0, "x")
	for version := int16(4); version <= 18; version++ {
		for _, offset := range []int64{0, 1} {
			req := fetchRequest(all(made, offset))
			if got := k.fetched(version, req)[0]; got.AbortedTransactions != nil {
				t.Fatalf("v%d: %+v", version, got)
			}
			req.IsolationLevel = 1
			if got := k.fetched(version, req)[0]; got.AbortedTransactions == nil || len(got.AbortedTransactions) != 0 {
				t.Fatalf("v%d: %+v", version, got)
			}
		}
	}
}

// What is not there is answered after what is, and nothing is made.
func TestFetchOfWhatIsNotThere(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	k.append("a", 0, "x")
	k.eachVersion(kmsg.Fetch, func(t *testing.T, version int16) {
		unknown := kerr.UnknownTopicOrPartition
		if version >= 13 {
			unknown = kerr.UnknownTopicID
		}
		beyond := all(made, 0)
		beyond.partition = 1
		got := k.fetched(version, fetchRequest(want{topic: "missing", id: kafka.NewTopicID()}, beyond, all(made, 0)))
		if len(got) != 3 {
			t.Fatalf("%+v", got)
		}
		wantCode(t, got[0].ErrorCode, nil)
		if len(got[0].RecordBatches) == 0 {
			t.Fatal("no records")
		}
		codes := []int16{got[1].ErrorCode, got[2].ErrorCode}
		if !slices.Contains(codes, unknown.Code) || !slices.Contains(codes, kerr.UnknownTopicOrPartition.Code) {
			t.Fatalf("codes %v", codes)
		}
		for _, p := range got[1:] {
			wantUnread(t, p, kerr.TypedErrorForCode(p.ErrorCode))
			if p.AbortedTransactions == nil { // Kafka's schema default, where a failed read has null
				t.Fatalf("%+v", p)
			}
		}
		if _, ok := k.Registry.Lookup("missing"); ok {
			t.Fatal("Fetch made a topic")
		}
	})
}

// KIP-320, KIP-951: an old or unknown epoch; from v16 on the leader is told with the first.
func TestFetchChecksTheLeaderEpoch(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	for version := int16(9); version <= 18; version++ {
		for epoch, want := range map[int32]*kerr.Error{testEpoch: nil, testEpoch - 1: kerr.FencedLeaderEpoch, testEpoch + 1: kerr.UnknownLeaderEpoch} {
			req := fetchRequest(all(made, 99)) // the epoch is looked at first
			req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
			resp := ask[*kmsg.FetchResponse](k, version, req)
			got := resp.Topics[0].Partitions[0]
			if want == nil {
				want = kerr.OffsetOutOfRange
			}
			wantUnread(t, got, want)
			tell := version >= 16 && want == kerr.FencedLeaderEpoch
			if (got.CurrentLeader.LeaderID == testNode && got.CurrentLeader.LeaderEpoch == testEpoch) != tell ||
				(len(resp.Brokers) == 1 && resp.Brokers[0].NodeID == testNode && resp.Brokers[0].Host == "127.0.0.1" && resp.Brokers[0].Port == 9092) != tell {
				t.Fatalf("v%d, epoch %d: %+v %+v", version, epoch, got.CurrentLeader, resp.Brokers)
			}
		}
	}
}

// KIP-595: a client that has records of an epoch which the log does not have is told where they part.
func TestFetchFindsDivergence(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	k.append("a", 0, "x", "y")
	for version := int16(12); version <= 18; version++ {
		for _, c := range []struct {
			last   int32
			offset int64
			want   *kerr.Error
			epoch  int32
			end    int64
		}{
			{testEpoch, 1, nil, -1, -1},
			{testEpoch + 1, 1, kerr.OffsetOutOfRange, -1, -1},
			{testEpoch, 3, nil, testEpoch, 2},
			{testEpoch - 1, 1, nil, testEpoch - 1, 0},
		} {
			req := fetchRequest(all(made, c.offset))
			req.Topics[0].Partitions[0].LastFetchedEpoch = c.last
			got := k.fetched(version, req)[0]
			wantCode(t, got.ErrorCode, c.want)
			if got.DivergingEpoch.Epoch != c.epoch || got.DivergingEpoch.EndOffset != c.end {
				t.Fatalf("%+v: %+v", c, got)
			}
			if c.epoch != -1 && (len(got.RecordBatches) != 0 || got.HighWatermark != 2) {
				t.Fatalf("%+v", got)
			}
		}
	}
}

// No other node is a replica of anything.
func TestFetchAsAReplicaIsRefused(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	k.eachVersion(kmsg.Fetch, func(t *testing.T, version int16) {
		req := fetchRequest(all(made, 0))
		req.ReplicaID, req.ReplicaState.ID = 5, 5
		wantUnread(t, k.fetched(version, req)[0], kerr.NotLeaderForPartition)
	})
}

// KIP-74: the first partition with records gives a whole batch whatever the limits, later ones keep to them.
func TestFetchLimits(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 3)
	big := strings.Repeat("x", 1000)
	for p := int32(1); p < 3; p++ {
		k.append("a", p, big)
		k.append("a", p, big)
	}
	sizes := func(maxBytes, partitionMax int32) (out []int) {
		req := fetchRequest()
		req = fetchRequest(want{"a", made.ID(), 0, 0, partitionMax}, want{"a", made.ID(), 1, 0, partitionMax}, want{"a", made.ID(), 2, 0, partitionMax})
		req.MaxBytes = maxBytes
		for _, p := range k.fetched(12, req) {
			wantCode(t, p.ErrorCode, nil)
			out = append(out, len(p.RecordBatches))
		}
		return out
	}
	one := len(batch(t, record.Options{}, big))
	for _, c := range []struct {
		maxBytes, partitionMax int32
		want                   []int
	}{
		{1 << 20, 1 << 20, []int{0, 2 * one, 2 * one}},
		{1, 1 << 20, []int{0, one, 0}},
		{0, 0, []int{0, one, 0}},
		{1 << 20, 1, []int{0, one, 0}},
		{int32(one) + 10, 1 << 20, []int{0, one + 10, 0}},
		{1 << 20, int32(one) + 10, []int{0, one + 10, one + 10}},
		{int32(3*one) + 10, 1 << 20, []int{0, 2 * one, one + 10}},
	} {
		if got := sizes(c.maxBytes, c.partitionMax); !slices.Equal(got, c.want) {
			t.Errorf("max bytes %d, of a partition %d: %v, want %v", c.maxBytes, c.partitionMax, got, c.want)
		}
	}
}

// ST-63: rot in the headers of a sealed segment is told of that partition alone, and read errors as Kafka's are.
func TestFetchOfAPartitionThatCannotBeRead(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 2, "segment.bytes", "1048576")
	for range 3 { // of which no two fit into a segment
		k.append("a", 0, strings.Repeat("x", 600_000))
	}
	k.append("a", 1, "y")
	f, err := k.disk.OpenFile("/data/a-0/00000000000000000000.log", os.O_RDWR, 0)
	check(t, err)
	_, err = f.WriteAt(make([]byte, record.HeaderSize), 0)
	check(t, err)
	check(t, f.Close())
	for version := int16(4); version <= 18; version++ {
		got := k.fetched(version, fetchRequest(want{"a", made.ID(), 0, 0, 0}, want{"a", made.ID(), 1, 0, 0}))
		wantUnread(t, got[0], kerr.CorruptMessage)
		if got[0].AbortedTransactions != nil {
			t.Fatalf("%+v", got[0])
		}
		wantCode(t, got[1].ErrorCode, nil)
	}
}

// A client of v5 or older does not know KAFKA_STORAGE_ERROR.
func TestFetchOfALogThatCannotBeOpened(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	k.append("a", 0, "y")
	k.restart()
	made, _ := k.Registry.Lookup("a")
	k.disk.Fail(faultfs.Rule{Kinds: vfs.OpReadDir | vfs.OpOpen | vfs.OpRead, Name: "*a-0*", Times: -1, Err: syscall.EIO})
	for version := int16(4); version <= 18; version++ {
		want := kerr.KafkaStorageError
		if version <= 5 {
			want = kerr.NotLeaderForPartition
		}
		wantUnread(t, k.fetched(version, fetchRequest(all(made, 0)))[0], want)
	}
}

// longPoll makes a request that waits a minute for min bytes.
func longPoll(minBytes int32, wants ...want) *kmsg.FetchRequest {
	req := fetchRequest(wants...)
	req.MaxWaitMillis, req.MinBytes = 60000, minBytes
	return req
}

// poll runs a long poll beside change, and says after how long (of the bubble's time) it was answered.
func (k *kit) poll(ctx context.Context, req *kmsg.FetchRequest, change func()) ([]kmsg.FetchResponseTopicPartition, time.Duration) {
	k.t.Helper()
	start := time.Now()
	c := k.begin(12, req)
	c.ctx = ctx
	if c.reply.Wait == nil {
		k.t.Fatal("the fetch does not wait")
	}
	done := make(chan *kmsg.FetchResponse)
	go func() { done <- c.finish().(*kmsg.FetchResponse) }()
	synctest.Wait()
	if change != nil {
		select {
		case <-time.After(time.Second):
		case <-done:
			k.t.Fatal("the fetch was answered before anything happened")
		}
		change()
	}
	resp := <-done
	return partitionsOf(resp), time.Since(start)
}

// The long poll ends with what ends it in Kafka (DelayedFetch.tryComplete), and not before.
func TestFetchLongPoll(t *testing.T) {
	in := func(name string, f func(t *testing.T, k *kit, made *topic.Topic)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, func(s *config.Settings) { s.AcksAllSync = false })
				made := k.create("a", 2)
				k.append("a", 0, "x")
				f(t, k, made)
			})
		})
	}
	in("an append wakes it", func(t *testing.T, k *kit, made *topic.Topic) {
		got, took := k.poll(t.Context(), longPoll(1, all(made, 1)), func() { k.append("a", 0, "y") })
		if took != time.Second || len(got[0].RecordBatches) == 0 || got[0].HighWatermark != 2 {
			t.Fatalf("after %v: %+v", took, got)
		}
	})
	in("an append to another of its partitions wakes it", func(t *testing.T, k *kit, made *topic.Topic) {
		other := all(made, 0)
		other.partition = 1
		got, took := k.poll(t.Context(), longPoll(1, all(made, 1), other), func() { k.append("a", 1, "y") })
		if took != time.Second || len(got[0].RecordBatches) != 0 || len(got[1].RecordBatches) == 0 {
			t.Fatalf("after %v: %+v", took, got)
		}
	})
	in("max wait ends it", func(t *testing.T, k *kit, made *topic.Topic) {
		got, took := k.poll(t.Context(), longPoll(1, all(made, 1)), nil)
		wantCode(t, got[0].ErrorCode, nil)
		if took != time.Minute || len(got[0].RecordBatches) != 0 {
			t.Fatalf("after %v: %+v", took, got)
		}
	})
	in("min bytes are waited for", func(t *testing.T, k *kit, made *topic.Topic) {
		size := int32(len(batch(t, record.Options{}, "x")))
		got, took := k.poll(t.Context(), longPoll(2*size+1, all(made, 0)), func() {
			k.append("a", 0, "y")
			time.Sleep(time.Second) // of the bubble: still too few
			synctest.Wait()
			k.append("a", 0, "z")
		})
		if took != 2*time.Second || len(got[0].RecordBatches) != 3*int(size) {
			t.Fatalf("after %v: %d bytes", took, len(got[0].RecordBatches))
		}
	})
	in("the end of the context ends it", func(t *testing.T, k *kit, made *topic.Topic) {
		ctx, cancel := context.WithCancelCause(t.Context())
		got, took := k.poll(ctx, longPoll(1, all(made, 1)), func() { cancel(server.ErrShutdown) })
		wantCode(t, got[0].ErrorCode, nil)
		if took != time.Second {
			t.Fatalf("after %v", took)
		}
	})
	in("the end of the topic ends it", func(t *testing.T, k *kit, made *topic.Topic) {
		got, took := k.poll(t.Context(), longPoll(1, all(made, 1)), func() { check(t, k.Registry.Delete(t.Context(), made)) })
		wantUnread(t, got[0], kerr.UnknownTopicOrPartition)
		if took != time.Second {
			t.Fatalf("after %v", took)
		}
	})
	in("nothing is held afterwards", func(t *testing.T, k *kit, made *topic.Topic) {
		for range 3 { // the same call is used again
			_, took := k.poll(t.Context(), longPoll(1, all(made, k.offsets("a", 0).End)), func() { k.append("a", 0, "y") })
			if took != time.Second {
				t.Fatalf("after %v", took)
			}
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

// A partition that is not there does not end the wait for the others.
func TestFetchWaitsDespiteWhatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		made := k.create("a", 1)
		got, took := k.poll(t.Context(), longPoll(1, want{topic: "missing"}, all(made, 0)), func() { k.append("a", 0, "x") })
		if took != time.Second || len(got[0].RecordBatches) == 0 {
			t.Fatalf("after %v: %+v", took, got)
		}
		wantUnread(t, got[1], kerr.UnknownTopicOrPartition)
	})
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

// KIP-227.
func TestFetchSessions(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 2)
	k.append("a", 0, "x")
	for version := int16(7); version <= 18; version++ {
		end := k.offsets("a", 0).End
		first := fetchRequest(want{"a", made.ID(), 0, end, 0}, want{"a", made.ID(), 1, 0, 0})
		first.SessionEpoch = 0
		full := ask[*kmsg.FetchResponse](k, version, first)
		wantCode(t, full.ErrorCode, nil)
		if full.SessionID == 0 || len(partitionsOf(full)) != 2 {
			t.Fatalf("v%d: %+v", version, full)
		}
		next := func(epoch int32, wants ...want) *kmsg.FetchResponse {
			req := fetchRequest(wants...)
			req.SessionID, req.SessionEpoch = full.SessionID, epoch
			return ask[*kmsg.FetchResponse](k, version, req)
		}
		idle := next(1)
		if idle.ErrorCode != 0 || idle.SessionID != full.SessionID || len(idle.Topics) != 0 {
			t.Fatalf("v%d: nothing has changed: %+v", version, idle)
		}
		k.append("a", 0, "y")
		changed := partitionsOf(next(2))
		if len(changed) != 1 || changed[0].Partition != 0 || len(changed[0].RecordBatches) == 0 {
			t.Fatalf("v%d: %+v", version, changed)
		}
		moved := partitionsOf(next(3, want{"a", made.ID(), 0, end + 1, 0}))
		if len(moved) != 0 {
			t.Fatalf("v%d: %+v", version, moved)
		}
		again := next(3)
		wantCode(t, again.ErrorCode, kerr.InvalidFetchSessionEpoch)
		if again.SessionID != 0 || len(again.Topics) != 0 {
			t.Fatalf("v%d: %+v", version, again)
		}
		req := fetchRequest()
		req.SessionID, req.SessionEpoch = full.SessionID+1, 4
		wantCode(t, ask[*kmsg.FetchResponse](k, version, req).ErrorCode, kerr.FetchSessionIDNotFound)
	}
}

// Of a partition that is named twice the last counts, and it is told once.
func TestFetchOfAPartitionNamedTwice(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	k.append("a", 0, "x")
	got := k.fetched(12, fetchRequest(all(made, 99), all(made, 0)))
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	wantCode(t, got[0].ErrorCode, nil)
}

// KIP-516: a session of names is not one of ids.
func TestFetchSessionsDoNotMixNamesAndIDs(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	for _, c := range [][2]int16{{12, 13}, {13, 12}} {
		first := fetchRequest(all(made, 0))
		first.SessionEpoch = 0
		full := ask[*kmsg.FetchResponse](k, c[0], first)
		req := fetchRequest()
		req.SessionID, req.SessionEpoch = full.SessionID, 1
		wantCode(t, ask[*kmsg.FetchResponse](k, c[1], req).ErrorCode, kerr.FetchSessionTopicIDError)
	}
}

// A session keeps the names it was given: they are not those of a frame that is used again.
func TestFetchSessionsKeepTheirOwnNames(t *testing.T) {
	k := newKit(t)
	made := k.create("some-topic", 1)
	first := fetchRequest(all(made, 0))
	first.SessionEpoch = 0
	full := ask[*kmsg.FetchResponse](k, 12, first) // ask overwrites its frame
	k.append("some-topic", 0, "x")
	req := fetchRequest()
	req.SessionID, req.SessionEpoch = full.SessionID, 1
	resp := ask[*kmsg.FetchResponse](k, 12, req)
	if len(resp.Topics) != 1 || resp.Topics[0].Topic != "some-topic" || len(resp.Topics[0].Partitions[0].RecordBatches) == 0 {
		t.Fatalf("%+v", resp)
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
