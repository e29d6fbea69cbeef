package handler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// TX-8: read_committed stops at the last stable offset and has the aborted transactions
// of its range; read_uncommitted sees all and has none. Both tell the offset.
func TestFetchOfTransactions(t *testing.T) {
	k := newKit(t)
	made := k.create("a", 1)
	k.transact("a", 1, 0, 0, "aborted") // 0
	k.transact("a", 2, 0, 0, "kept")    // 1
	k.end("a", commitlog.Marker{ProducerID: 1})
	k.transact("a", 3, 0, 0, "open") // 3
	k.end("a", commitlog.Marker{ProducerID: 2, Commit: true})
	k.append("a", 0, "plain") // 5
	for version := int16(4); version <= 18; version++ {
		req := fetchRequest(all(made, 0))
		got := k.fetched(version, req)[0]
		wantCode(t, got.ErrorCode, nil)
		if got.HighWatermark != 6 || got.LastStableOffset != 3 || got.AbortedTransactions != nil || lastOffset(t, got.RecordBatches) != 5 {
			t.Fatalf("v%d uncommitted: %+v", version, got)
		}
		req.IsolationLevel = 1
		got = k.fetched(version, req)[0]
		wantCode(t, got.ErrorCode, nil)
		if got.HighWatermark != 6 || got.LastStableOffset != 3 || lastOffset(t, got.RecordBatches) != 2 {
			t.Fatalf("v%d committed: %+v", version, got)
		}
		if a := got.AbortedTransactions; len(a) != 1 || a[0].ProducerID != 1 || a[0].FirstOffset != 0 {
			t.Fatalf("v%d: aborted %+v", version, a)
		}
		req = fetchRequest(all(made, 4)) // above what is stable, and there
		req.IsolationLevel = 1
		got = k.fetched(version, req)[0]
		wantCode(t, got.ErrorCode, nil)
		if len(got.RecordBatches) != 0 || got.AbortedTransactions == nil || len(got.AbortedTransactions) != 0 {
			t.Fatalf("v%d from 4: %+v", version, got)
		}
	}
}

func lastOffset(t *testing.T, raw []byte) int64 {
	t.Helper()
	last := int64(-1)
	for len(raw) > 0 {
		b, rest, err := record.Parse(raw)
		check(t, err)
		last, raw = b.LastOffset(), rest
	}
	return last
}

// TX-8: a read_committed long poll counts what is stable only, and is woken by the marker that makes it so.
func TestFetchWaitsForTheLastStableOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		made := k.create("a", 1)
		req := fetchRequest(all(made, 0))
		req.IsolationLevel, req.MaxWaitMillis, req.MinBytes = 1, 5000, 1
		k.transact("a", 1, 0, 0, "x")
		began := time.Now()
		done := make(chan *kmsg.FetchResponse, 1)
		go func() { done <- ask[*kmsg.FetchResponse](k, 12, req) }()
		time.Sleep(time.Second)
		synctest.Wait()
		k.transact("a", 1, 0, 1, "y")
		time.Sleep(time.Second)
		synctest.Wait()
		select {
		case r := <-done:
			t.Fatalf("answered before the transaction was over: %+v", r)
		default:
		}
		k.end("a", commitlog.Marker{ProducerID: 1, Commit: true})
		got := (<-done).Topics[0].Partitions[0]
		if waited := time.Since(began); waited != 2*time.Second || lastOffset(t, got.RecordBatches) != 2 || got.LastStableOffset != 3 {
			t.Errorf("after %v: %+v", waited, got)
		}
	})
}

// KIP-98: latest is the last stable offset for read_committed, and what lies above it is not found by its time.
func TestListOffsetsOfTransactions(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	k.appendAt("a", 100)
	k.transact("a", 1, 0, 0, "open") // now
	k.appendAt("a", 50)
	k.eachVersion(kmsg.ListOffsets, func(t *testing.T, version int16) {
		for _, c := range []struct {
			ts        int64
			since     int16
			isolation int8
			offset    int64
		}{
			{-1, 1, 0, 3}, {-1, 2, 1, 1}, {-3, 7, 0, 1}, {-3, 7, 1, -1}, {-2, 2, 1, 0}, {100, 2, 1, 0}, {101, 2, 1, -1}, {101, 1, 0, 1},
		} {
			if version < c.since {
				continue
			}
			req := listRequest("a", 0, c.ts)
			req.IsolationLevel = c.isolation
			got := ask[*kmsg.ListOffsetsResponse](k, version, req).Topics[0].Partitions[0]
			wantCode(t, got.ErrorCode, nil)
			if got.Offset != c.offset {
				t.Errorf("v%d %+v: offset %d", version, c, got.Offset)
			}
		}
	})
}
