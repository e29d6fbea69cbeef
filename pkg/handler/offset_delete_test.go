package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func offsetDeleteRequest(group, topic string, partitions ...int32) *kmsg.OffsetDeleteRequest {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	t := kmsg.NewOffsetDeleteRequestTopic()
	t.Topic = topic
	for _, p := range partitions {
		t.Partitions = append(t.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: p})
	}
	req.Topics = append(req.Topics, t)
	return req
}

// GR-5.
func TestOffsetDelete(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 2)
	k.create("b", 1)
	id, _ := k.member("g", "a")
	k.leaves("g", id)
	k.commit("g", "a", 0, 1)
	k.commit("g", "a", 1, 2)
	resp := ask[*kmsg.OffsetDeleteResponse](k, 0, offsetDeleteRequest("g", "a", 7, 0))
	wantCode(t, resp.ErrorCode, nil)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 2 {
		t.Fatalf("%+v", resp.Topics)
	}
	for _, p := range resp.Topics[0].Partitions {
		var want *kerr.Error
		if p.Partition == 7 {
			want = kerr.UnknownTopicOrPartition
		}
		wantCode(t, p.ErrorCode, want)
	}
	if first, second := k.committed("g", "a", 0), k.committed("g", "a", 1); first != -1 || second != 2 {
		t.Fatalf("offsets %d and %d, want -1 and 2", first, second)
	}
}

func TestOffsetDeleteOfASubscribedTopic(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 1)
	k.create("b", 1)
	k.member("g", "a")
	req := offsetDeleteRequest("g", "a", 0)
	req.Topics = append(req.Topics, offsetDeleteRequest("g", "b", 0).Topics...)
	resp := ask[*kmsg.OffsetDeleteResponse](k, 0, req)
	wantCode(t, resp.ErrorCode, nil)
	wantCode(t, resp.Topics[0].Partitions[0].ErrorCode, kerr.GroupSubscribedToTopic)
	wantCode(t, resp.Topics[1].Partitions[0].ErrorCode, nil)
}

func TestOffsetDeleteOfNoGroup(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 1)
	for group, want := range map[string]*kerr.Error{"": kerr.InvalidGroupID, "nothing": kerr.GroupIDNotFound} {
		resp := ask[*kmsg.OffsetDeleteResponse](k, 0, offsetDeleteRequest(group, "a", 0))
		wantCode(t, resp.ErrorCode, want)
		if len(resp.Topics) != 0 {
			t.Fatalf("%+v", resp.Topics)
		}
	}
}

// OffsetDeleteResponse.Builder: as of a commit.
func TestOffsetDeleteOfOneTopicTwice(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 2)
	k.commit("g", "a", 0, 1)
	req := offsetDeleteRequest("g", "a", 0)
	req.Topics = append(req.Topics, offsetDeleteRequest("g", "a", 1).Topics...)
	if resp := ask[*kmsg.OffsetDeleteResponse](k, 0, req); len(resp.Topics) != 2 {
		t.Fatalf("%+v", resp.Topics)
	}
	req.Topics = append(req.Topics, offsetDeleteRequest("g", "nothing", 0).Topics...)
	if resp := ask[*kmsg.OffsetDeleteResponse](k, 0, req); len(resp.Topics) != 2 || len(resp.Topics[1].Partitions) != 2 {
		t.Fatalf("%+v", resp.Topics)
	}
}
