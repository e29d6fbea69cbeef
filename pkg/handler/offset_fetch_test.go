package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// fetchOffsetsRequest asks in the form of a version; topic "" is all.
func (k *kit) fetchOffsetsRequest(version int16, group, topic string, partitions ...int32) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	if topic != "" {
		req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: partitions}}
		g.Topics = []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, TopicID: k.idOf(topic), Partitions: partitions}}
	}
	if version >= 8 {
		req.Groups = append(req.Groups, g)
	}
	return req
}

// flat is what a version says of one topic's offsets.
func flat(t *testing.T, version int16, resp *kmsg.OffsetFetchResponse) []kmsg.OffsetFetchResponseGroupTopicPartition {
	t.Helper()
	var all []kmsg.OffsetFetchResponseGroupTopicPartition
	if version >= 8 {
		wantCode(t, resp.Groups[0].ErrorCode, nil)
		for _, topic := range resp.Groups[0].Topics {
			all = append(all, topic.Partitions...)
		}
		return all
	}
	wantCode(t, resp.ErrorCode, nil)
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			all = append(all, kmsg.OffsetFetchResponseGroupTopicPartition{Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode})
		}
	}
	return all
}

// GR-4: every version; an offset that was never committed is -1 without an error.
func TestOffsetFetchOfSomePartitions(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 3)
	k.commit("g", "a", 1, 7)
	k.eachVersion(kmsg.OffsetFetch, func(t *testing.T, version int16) {
		got := flat(t, version, ask[*kmsg.OffsetFetchResponse](k, version, k.fetchOffsetsRequest(version, "g", "a", 2, 1)))
		if len(got) != 2 || got[0].Partition != 2 || got[0].Offset != -1 || got[0].ErrorCode != 0 || show(got[0].Metadata) != `""` ||
			got[1].Partition != 1 || got[1].Offset != 7 || show(got[1].Metadata) != `"note"` {
			t.Fatalf("%+v", got)
		}
		if version >= 5 && (got[0].LeaderEpoch != -1 || got[1].LeaderEpoch != 2) {
			t.Fatalf("leader epochs: %+v", got)
		}
		got = flat(t, version, ask[*kmsg.OffsetFetchResponse](k, version, k.fetchOffsetsRequest(version, "missing", "a", 1)))
		if len(got) != 1 || got[0].Offset != -1 || got[0].ErrorCode != 0 {
			t.Fatalf("of a group that is not there: %+v", got)
		}
	})
}

// A topic that is not there is an error only where it is asked for by its id.
func TestOffsetFetchOfAnUnknownTopic(t *testing.T) {
	k := newKit(t, atOnceComplete)
	for version := int16(1); version <= 10; version++ {
		got := flat(t, version, ask[*kmsg.OffsetFetchResponse](k, version, k.fetchOffsetsRequest(version, "g", "nothing", 0)))
		var want *kerr.Error
		if version >= 10 {
			want = kerr.UnknownTopicID
		}
		if len(got) != 1 || got[0].Offset != -1 {
			t.Fatalf("v%d: %+v", version, got)
		}
		wantCode(t, got[0].ErrorCode, want)
	}
}

// Null topics are all, from v2 on.
func TestOffsetFetchOfAll(t *testing.T) {
	k := newKit(t, atOnceComplete)
	a, b := k.create("a", 2), k.create("b", 1)
	k.commit("g", "b", 0, 3)
	k.commit("g", "a", 0, 1)
	k.commit("g", "a", 1, 2)
	for version := int16(1); version <= 10; version++ {
		resp := ask[*kmsg.OffsetFetchResponse](k, version, k.fetchOffsetsRequest(version, "g", ""))
		got := flat(t, version, resp)
		if version == 1 {
			if len(got) != 0 {
				t.Fatalf("v1 has no way to ask for all: %+v", got)
			}
			continue
		}
		if len(got) != 3 || got[0].Offset != 1 || got[1].Offset != 2 || got[2].Offset != 3 {
			t.Fatalf("v%d: %+v", version, got)
		}
		if version >= 10 && (resp.Groups[0].Topics[0].TopicID != a.ID() || resp.Groups[0].Topics[1].TopicID != b.ID()) {
			t.Fatalf("ids: %+v", resp.Groups[0].Topics)
		}
	}
}

// v8 asks for many groups at once.
func TestOffsetFetchOfManyGroups(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 1)
	k.commit("g", "a", 0, 1)
	k.commit("h", "a", 0, 2)
	for version := int16(8); version <= 10; version++ {
		req := k.fetchOffsetsRequest(version, "g", "a", 0)
		req.Groups = append(req.Groups, k.fetchOffsetsRequest(version, "h", "").Groups...)
		resp := ask[*kmsg.OffsetFetchResponse](k, version, req)
		if len(resp.Groups) != 2 || resp.Groups[0].Group != "g" || resp.Groups[0].Topics[0].Partitions[0].Offset != 1 ||
			resp.Groups[1].Group != "h" || resp.Groups[1].Topics[0].Partitions[0].Offset != 2 {
			t.Fatalf("v%d: %+v", version, resp.Groups)
		}
	}
}

// KIP-848 (OffsetFetch v10): an offset of a topic that was deleted is not one of its successor.
func TestOffsetFetchOfATopicThatWasMadeAgain(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 1)
	k.commit("g", "a", 0, 1)
	ask[*kmsg.DeleteTopicsResponse](k, 5, deleteRequest(5, "a"))
	// GR-7: it is gone, not hidden.
	if got := flat(t, 7, ask[*kmsg.OffsetFetchResponse](k, 7, k.fetchOffsetsRequest(7, "g", ""))); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
	k.create("a", 1)
	for version := int16(7); version <= 10; version++ {
		got := flat(t, version, ask[*kmsg.OffsetFetchResponse](k, version, k.fetchOffsetsRequest(version, "g", "a", 0)))
		if len(got) != 1 || got[0].Offset != -1 || got[0].ErrorCode != 0 {
			t.Fatalf("v%d: %+v", version, got)
		}
	}
}

// An offset that outlived its topic, whose offsets could not be dropped, is not told to who asks for the new topic's by id.
func TestOffsetFetchByIDTellsNoOffsetOfAnOlderTopic(t *testing.T) {
	k := newKit(t, atOnceComplete)
	old := k.create("a", 1)
	k.commit("g", "a", 0, 1)
	check(t, k.Registry.Delete(t.Context(), old))
	k.create("a", 1)
	got := flat(t, 10, ask[*kmsg.OffsetFetchResponse](k, 10, k.fetchOffsetsRequest(10, "g", "a", 0)))
	if len(got) != 1 || got[0].Offset != -1 {
		t.Fatalf("%+v", got)
	}
}
