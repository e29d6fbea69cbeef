package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/config"
)

// atOnceComplete is for groups whose first member does not wait for others.
func atOnceComplete(s *config.Settings) { s.GroupInitialRebalanceDelayMs = 0 }

// joinRequest is a JoinGroup of a consumer that subscribes to topics.
func joinRequest(group, member string, topics ...string) *kmsg.JoinGroupRequest {
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = topics
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 60000, 60000
	req.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: meta.AppendTo(nil)}}
	return req
}

func syncRequest(group, member string, generation int32, assignments ...string) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	for i := 0; i < len(assignments); i += 2 {
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: assignments[i], MemberAssignment: []byte(assignments[i+1])})
	}
	return req
}

// joined makes a group's first member, which has not synced yet.
func (k *kit) joined(group string, topics ...string) *kmsg.JoinGroupResponse {
	k.t.Helper()
	resp := ask[*kmsg.JoinGroupResponse](k, 3, joinRequest(group, "", topics...))
	wantCode(k.t, resp.ErrorCode, nil)
	return resp
}

// member makes a stable group of one member.
func (k *kit) member(group string, topics ...string) (id string, generation int32) {
	k.t.Helper()
	resp := k.joined(group, topics...)
	sync := ask[*kmsg.SyncGroupResponse](k, 2, syncRequest(group, resp.MemberID, resp.Generation, resp.MemberID, "all"))
	wantCode(k.t, sync.ErrorCode, nil)
	return resp.MemberID, resp.Generation
}

// leaves removes a member.
func (k *kit) leaves(group, member string) {
	k.t.Helper()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = group, member
	wantCode(k.t, ask[*kmsg.LeaveGroupResponse](k, 2, req).ErrorCode, nil)
}

// described asks for one group.
func (k *kit) described(version int16, group string) kmsg.DescribeGroupsResponseGroup {
	k.t.Helper()
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	resp := ask[*kmsg.DescribeGroupsResponse](k, version, req)
	if len(resp.Groups) != 1 || resp.Groups[0].Group != group {
		k.t.Fatalf("described: %+v", resp.Groups)
	}
	return resp.Groups[0]
}

// commitRequest is an OffsetCommit of one partition by nobody's member, for a version with names or with ids.
func (k *kit) commitRequest(group, topic string, partition int32, offset int64, metadata string) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation = group, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = topic, k.idOf(topic)
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch, p.Metadata = partition, offset, 2, &metadata
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// idOf is a topic's id, or one that no topic has.
func (k *kit) idOf(topic string) [16]byte {
	if t, ok := k.Registry.Lookup(topic); ok {
		return t.ID()
	}
	return [16]byte{0xde, 0xad, 15: 1}
}

// commit stores an offset.
func (k *kit) commit(group, topic string, partition int32, offset int64) {
	k.t.Helper()
	resp := ask[*kmsg.OffsetCommitResponse](k, 9, k.commitRequest(group, topic, partition, offset, "note"))
	wantCode(k.t, resp.Topics[0].Partitions[0].ErrorCode, nil)
}

// committed is a group's offset, -1 if there is none.
func (k *kit) committed(group, topic string, partition int32) int64 {
	k.t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	req.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
	resp := ask[*kmsg.OffsetFetchResponse](k, 7, req)
	wantCode(k.t, resp.ErrorCode, nil)
	return resp.Topics[0].Partitions[0].Offset
}

func wantState(t testing.TB, got kmsg.DescribeGroupsResponseGroup, state string, members int) {
	t.Helper()
	if got.State != state || len(got.Members) != members {
		t.Fatalf("group %s is %s with %d members, want %s with %d", got.Group, got.State, len(got.Members), state, members)
	}
}
