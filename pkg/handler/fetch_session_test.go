package handler

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

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
		first, second := beyond, want{topic: "missing", id: kafka.NewTopicID()}
		if version < 13 {
			first, second = second, first
		}
		got := k.fetched(version, fetchRequest(first, second, all(made, 0)))
		if len(got) != 3 {
			t.Fatalf("%+v", got)
		}
		wantCode(t, got[0].ErrorCode, nil)
		if len(got[0].RecordBatches) == 0 {
			t.Fatal("no records")
		}
		wantCode(t, got[1].ErrorCode, unknown) // also if it is named after the other
		wantCode(t, got[2].ErrorCode, kerr.UnknownTopicOrPartition)
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
