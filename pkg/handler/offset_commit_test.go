package handler

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GR-4: every version, by name or by id; what is not there is told beside what is committed.
func TestOffsetCommitStoresWhatIsThere(t *testing.T) {
	k := newKit(t, atOnceComplete)
	a := k.create("a", 2)
	k.eachVersion(kmsg.OffsetCommit, func(t *testing.T, version int16) {
		offset := 100 + int64(version)
		req := k.commitRequest("g", "a", 1, offset, "note")
		unknown := k.commitRequest("g", "nothing", 0, 1, "").Topics[0]
		missing := req.Topics[0].Partitions[0]
		missing.Partition = 2
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, missing)
		req.Topics = append(req.Topics, unknown)
		resp := ask[*kmsg.OffsetCommitResponse](k, version, req)
		if len(resp.Topics) != 2 {
			t.Fatalf("%+v", resp.Topics)
		}
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				var want *kerr.Error
				switch {
				case (topic.Topic == "a" || topic.TopicID == a.ID()) && p.Partition == 2:
					want = kerr.UnknownTopicOrPartition
				case topic.Topic == "nothing":
					want = kerr.UnknownTopicOrPartition
				case topic.TopicID == unknown.TopicID:
					want = kerr.UnknownTopicID
				}
				wantCode(t, p.ErrorCode, want)
			}
		}
		if got := k.committed("g", "a", 1); got != offset {
			t.Fatalf("offset %d, want %d", got, offset)
		}
	})
}

// KafkaApis.handleOffsetCommitRequest: the group is not asked if no partition is there.
func TestOffsetCommitOfNothingThatIsThereDoesNotAskTheGroup(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 1)
	req := k.commitRequest("g", "nothing", 0, 1, "")
	req.Generation = 5
	resp := ask[*kmsg.OffsetCommitResponse](k, 9, req)
	wantCode(t, resp.Topics[0].Partitions[0].ErrorCode, kerr.UnknownTopicOrPartition)
	req.Topics = nil
	if resp := ask[*kmsg.OffsetCommitResponse](k, 9, req); len(resp.Topics) != 0 {
		t.Fatalf("%+v", resp.Topics)
	}
	wantState(t, k.described(4, "g"), "Dead", 0)
}

// An error of the group is that of every partition that is there; which it is depends on the version.
func TestOffsetCommitToAGroupThatIsNotThere(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 1)
	for version, want := range map[int16]*kerr.Error{8: kerr.IllegalGeneration, 9: kerr.GroupIDNotFound} {
		req := k.commitRequest("g", "a", 0, 1, "")
		req.Generation, req.MemberID = 3, "somebody"
		wantCode(t, ask[*kmsg.OffsetCommitResponse](k, version, req).Topics[0].Partitions[0].ErrorCode, want)
	}
}

func TestOffsetCommitWithTooMuchMetadata(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 1)
	resp := ask[*kmsg.OffsetCommitResponse](k, 9, k.commitRequest("g", "a", 0, 1, strings.Repeat("x", 4097)))
	wantCode(t, resp.Topics[0].Partitions[0].ErrorCode, kerr.OffsetMetadataTooLarge)
}

// A retention time of v2 to v4 that no duration can hold is a very long one, not one in the past.
func TestARetentionTimeDoesNotOverflow(t *testing.T) {
	for ms, want := range map[int64]time.Duration{0: 0, 5: 5 * time.Millisecond, 1<<63 - 1: (1<<63 - 1) / time.Millisecond * time.Millisecond} {
		if got := retention(ms); got != want {
			t.Errorf("%d ms is %v, want %v", ms, got, want)
		}
	}
}

// v2 to v4 say how long an offset is kept; a later version has no such field.
func TestOffsetCommitWithARetentionTime(t *testing.T) {
	for version := int16(2); version <= 5; version++ {
		k := newKit(t, atOnceComplete)
		k.create("a", 1)
		req := k.commitRequest("g", "a", 0, 1, "")
		req.RetentionTimeMillis = 0
		wantCode(t, ask[*kmsg.OffsetCommitResponse](k, version, req).Topics[0].Partitions[0].ErrorCode, nil)
		want := 1
		if version == 5 {
			want = 0
		}
		if n, err := k.Groups.ExpireOffsets(t.Context()); err != nil || n != want {
			t.Fatalf("v%d: %d offsets expired, want %d: %v", version, n, want, err)
		}
	}
}

// OffsetCommitResponse.Builder: a topic that the request has twice is answered twice, unless something was refused beside it.
func TestOffsetCommitOfOneTopicTwice(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 1)
	req := k.commitRequest("g", "a", 0, 1, "")
	req.Topics = append(req.Topics, k.commitRequest("g", "a", 0, 2, "").Topics...)
	if resp := ask[*kmsg.OffsetCommitResponse](k, 9, req); len(resp.Topics) != 2 {
		t.Fatalf("%+v", resp.Topics)
	}
	req.Topics = append(req.Topics, k.commitRequest("g", "nothing", 0, 1, "").Topics...)
	if resp := ask[*kmsg.OffsetCommitResponse](k, 9, req); len(resp.Topics) != 2 || len(resp.Topics[1].Partitions) != 2 {
		t.Fatalf("%+v", resp.Topics)
	}
}

// GR-2: an instance id is looked at.
func TestOffsetCommitOfAnotherInstance(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.create("a", 1)
	id, generation := k.member("g")
	req := k.commitRequest("g", "a", 0, 1, "")
	req.MemberID, req.Generation, req.InstanceID = id, generation, kmsg.StringPtr("one")
	wantCode(t, ask[*kmsg.OffsetCommitResponse](k, 9, req).Topics[0].Partitions[0].ErrorCode, kerr.UnknownMemberID)
}
