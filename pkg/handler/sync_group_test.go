package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GR-1: every version gives a member what the leader assigned to it.
func TestSyncGroupGivesTheAssignment(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.eachVersion(kmsg.SyncGroup, func(t *testing.T, version int16) {
		g := t.Name()
		first := k.joined(g)
		parked := k.begin(3, joinRequest(g, ""))
		first = ask[*kmsg.JoinGroupResponse](k, 3, joinRequest(g, first.MemberID))
		second := parked.finish().(*kmsg.JoinGroupResponse)
		waits := k.begin(version, syncRequest(g, second.MemberID, second.Generation))
		for resp, want := range map[*kmsg.SyncGroupResponse]string{
			ask[*kmsg.SyncGroupResponse](k, version, syncRequest(g, first.MemberID, first.Generation, first.MemberID, "left", second.MemberID, "right")): "left",
			waits.finish().(*kmsg.SyncGroupResponse): "right",
		} {
			wantCode(t, resp.ErrorCode, nil)
			if string(resp.MemberAssignment) != want {
				t.Fatalf("assigned %q, want %q", resp.MemberAssignment, want)
			}
			if version >= 5 && (show(resp.ProtocolType) != `"consumer"` || show(resp.Protocol) != `"range"`) {
				t.Fatalf("protocol %s of type %s", show(resp.Protocol), show(resp.ProtocolType))
			}
		}
		wantState(t, k.described(4, g), "Stable", 2)
	})
}

func TestSyncGroupOfNoMember(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.member("g")
	k.eachVersion(kmsg.SyncGroup, func(t *testing.T, version int16) {
		resp := ask[*kmsg.SyncGroupResponse](k, version, syncRequest("g", "somebody", 1))
		wantCode(t, resp.ErrorCode, kerr.UnknownMemberID)
		if resp.ProtocolType != nil || resp.Protocol != nil || len(resp.MemberAssignment) != 0 {
			t.Fatalf("beside the error: %+v", resp)
		}
	})
	id, generation := k.member("h")
	other := syncRequest("h", id, generation)
	other.InstanceID = kmsg.StringPtr("one")
	wantCode(t, ask[*kmsg.SyncGroupResponse](k, 3, other).ErrorCode, kerr.UnknownMemberID)
	unnamed := syncRequest("g", "somebody", 1)
	unnamed.Protocol = nil
	wantCode(t, ask[*kmsg.SyncGroupResponse](k, 5, unnamed).ErrorCode, kerr.InconsistentGroupProtocol)
	wantCode(t, ask[*kmsg.SyncGroupResponse](k, 4, unnamed).ErrorCode, kerr.UnknownMemberID)
}
