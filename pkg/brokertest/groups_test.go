package brokertest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// stableMember makes a group of one member, without the machinery of a consumer.
func stableMember(t *testing.T, cl *kgo.Client, group string) (id string, generation int32) {
	t.Helper()
	joined := joinStatic(t, cl, group)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation, sync.InstanceID = group, joined.MemberID, joined.Generation, kmsg.StringPtr("one")
	sync.ProtocolType, sync.Protocol = joined.ProtocolType, joined.Protocol
	sync.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID, MemberAssignment: []byte("all")}}
	synced, err := sync.RequestWith(t.Context(), cl)
	noError(t, err)
	noError(t, kerr.ErrorForCode(synced.ErrorCode))
	return joined.MemberID, joined.Generation
}

// joinStatic adds a member with the instance id "one".
func joinStatic(t *testing.T, cl *kgo.Client, group string) *kmsg.JoinGroupResponse {
	t.Helper()
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = group, "consumer", 30000, 30000
	join.InstanceID = kmsg.StringPtr("one") // a static member needs no second request
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte("m")}}
	joined, err := join.RequestWith(t.Context(), cl)
	noError(t, err)
	noError(t, kerr.ErrorForCode(joined.ErrorCode))
	return joined
}

// heartbeat is what a member's Heartbeat is answered with.
func heartbeat(t *testing.T, cl *kgo.Client, group, member string, generation int32) error {
	t.Helper()
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	resp, err := req.RequestWith(t.Context(), cl)
	noError(t, err)
	return kerr.ErrorForCode(resp.ErrorCode)
}

// commit stores an offset of the topic demo by a member.
func commit(t *testing.T, cl *kgo.Client, group, member string, generation int32, offset int64) {
	t.Helper()
	partition := kmsg.NewOffsetCommitRequestTopicPartition()
	partition.Offset = offset
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "demo", Partitions: []kmsg.OffsetCommitRequestTopicPartition{partition}}}
	resp, err := req.RequestWith(t.Context(), cl)
	noError(t, err)
	noError(t, kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode))
}

// committed is the offset of partition 0 of the topic demo.
func committed(t *testing.T, cl *kgo.Client, group string) int64 {
	t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Groups = []kmsg.OffsetFetchRequestGroup{{Group: group, MemberEpoch: -1, Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "demo", Partitions: []int32{0}}}}}
	resp, err := req.RequestWith(t.Context(), cl)
	noError(t, err)
	noError(t, kerr.ErrorForCode(resp.Groups[0].ErrorCode))
	return resp.Groups[0].Topics[0].Partitions[0].Offset
}

// byName speaks the versions that name topics instead of telling their ids.
var byName = kgo.MaxVersions(kversion.V3_8_0())

// GR-6, ST-80: members go on after a restart without a rebalance; what was committed outlives a power cut too.
func TestGroupsCarryOnOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := brokertest.Start(t)
		produce(t, b, 0, 1)
		cl := b.Client(byName)
		member, generation := stableMember(t, cl, "g")
		commit(t, cl, "g", member, generation, 5)

		b = b.Restart()
		cl = b.Client(byName)
		noError(t, heartbeat(t, cl, "g", member, generation))
		if got := committed(t, cl, "g"); got != 5 {
			t.Errorf("offset %d after a restart, want 5", got)
		}
		commit(t, cl, "g", member, generation, 6)

		b = b.PowerCut(crashfs.Random(1))
		if got := committed(t, b.Client(byName), "g"); got != 6 {
			t.Errorf("offset %d after a power cut, want 6", got)
		}
	})
}

// GR-9: a member whose connection has ended is gone after half a second; without the setting, after its session.
func TestTheEndOfAConnectionEvictsIfAsked(t *testing.T) {
	for _, evict := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := brokertest.Start(t, func(s *config.Settings) { s.GroupEvictOnDisconnect = evict })
			cl := b.Client()
			joined := joinStatic(t, cl, "g") // that is enough to be known by the connection
			cl.Close()
			<-time.After(600 * time.Millisecond) // of the bubble
			err := heartbeat(t, b.Client(), "g", joined.MemberID, joined.Generation)
			if gone := errors.Is(err, kerr.UnknownMemberID); gone != evict || err != nil && !gone {
				t.Errorf("evict %v: heartbeat answered with %v", evict, err)
			}
		})
	}
}
