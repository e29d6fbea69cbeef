package handler

import (
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
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

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
		resp := ask[*kmsg.FetchResponse](k, version, req)
		wantUnread(t, partitionsOf(resp)[0], kerr.NotLeaderForPartition)
		if len(resp.Brokers) != 0 { // where it is a replica knows
			t.Fatalf("%+v", resp.Brokers)
		}
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
		req := fetchRequest(want{"a", made.ID(), 0, 0, partitionMax}, want{"a", made.ID(), 1, 0, partitionMax}, want{"a", made.ID(), 2, 0, partitionMax})
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

// A negative limit fails where there is something to read, and only there.
func TestFetchWithANegativePartitionLimit(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 2)
	k.append("a", 0, "x")
	end, other := all(made, 1), all(made, 0)
	end.max, other.max, other.partition = -1, -1, 1
	beyond := all(made, 2)
	beyond.max = -1
	some := all(made, 0)
	some.max = -1
	wantUnread(t, k.fetched(12, fetchRequest(some))[0], kerr.UnknownServerError)
	wantUnread(t, k.fetched(12, fetchRequest(beyond))[0], kerr.OffsetOutOfRange)
	for _, p := range k.fetched(12, fetchRequest(end, other)) {
		wantCode(t, p.ErrorCode, nil)
	}
}

// An epoch below 0 is none in Fetch (FetchRequest.optionalEpoch), where ListOffsets compares any but -1.
func TestFetchTakesANegativeEpochForNone(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	k.append("a", 0, "x")
	req := fetchRequest(all(made, 0))
	req.Topics[0].Partitions[0].CurrentLeaderEpoch, req.Topics[0].Partitions[0].LastFetchedEpoch = -2, -2
	wantCode(t, k.fetched(12, req)[0].ErrorCode, nil)
	list := listRequest("a", 0, -1)
	list.Topics[0].Partitions[0].CurrentLeaderEpoch = -2
	wantCode(t, ask[*kmsg.ListOffsetsResponse](k, 7, list).Topics[0].Partitions[0].ErrorCode, kerr.FencedLeaderEpoch)
}

// Recorded: fetch-limits. The list of aborted transactions is null where a first
// batch is held back, and empty where there was no room for any.
func TestFetchTellsAbortedTransactionsWithoutRecords(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 2)
	for p := range int32(2) {
		k.append("a", p, strings.Repeat("x", 1000))
	}
	one := int32(len(batch(t, record.Options{}, strings.Repeat("x", 1000))))
	for maxBytes, wantNull := range map[int32]bool{1: false, one: false, one + 1: true, 2*one - 1: true, 3 * one: false} {
		req := fetchRequest(all(made, 0), want{"a", made.ID(), 1, 0, 0})
		req.IsolationLevel, req.MaxBytes = 1, maxBytes
		if got := k.fetched(12, req)[1]; (got.AbortedTransactions == nil) != wantNull {
			t.Errorf("max bytes %d: %v", maxBytes, got.AbortedTransactions)
		}
	}
	req := fetchRequest(all(made, 0), want{"a", made.ID(), 1, 0, 100}) // less than a batch
	req.IsolationLevel = 1
	if got := k.fetched(12, req)[1]; got.AbortedTransactions != nil || len(got.RecordBatches) != 0 {
		t.Errorf("%+v", got)
	}
}
