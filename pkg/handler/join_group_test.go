package handler

import (
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GR-1: every version; from v4 on a member without id is given one first (KIP-394).
func TestALoneMemberJoinsAndLeads(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.eachVersion(kmsg.JoinGroup, func(t *testing.T, version int16) {
		group := t.Name()
		resp := ask[*kmsg.JoinGroupResponse](k, version, joinRequest(group, "", "orders"))
		if version >= 4 {
			wantCode(t, resp.ErrorCode, kerr.MemberIDRequired)
			if resp.Generation != -1 || resp.LeaderID != "" || len(resp.Members) != 0 {
				t.Fatalf("beside the error: %+v", resp)
			}
			resp = ask[*kmsg.JoinGroupResponse](k, version, joinRequest(group, resp.MemberID, "orders"))
		}
		wantCode(t, resp.ErrorCode, nil)
		if !strings.HasPrefix(resp.MemberID, "test-") || resp.LeaderID != resp.MemberID || resp.Generation != 1 || *resp.Protocol != "range" {
			t.Fatalf("%+v", resp)
		}
		if (resp.ProtocolType != nil) != (version >= 7) {
			t.Fatalf("protocol type %s", show(resp.ProtocolType))
		}
		if len(resp.Members) != 1 || resp.Members[0].MemberID != resp.MemberID || !strings.Contains(string(resp.Members[0].ProtocolMetadata), "orders") {
			t.Fatalf("members %+v", resp.Members)
		}
		wantState(t, k.described(4, group), "CompletingRebalance", 1)
	})
}

func TestAnErrorOfJoinGroupHasNoGeneration(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.eachVersion(kmsg.JoinGroup, func(t *testing.T, version int16) {
		resp := ask[*kmsg.JoinGroupResponse](k, version, joinRequest("", "somebody"))
		wantCode(t, resp.ErrorCode, kerr.InvalidGroupID)
		if resp.Generation != -1 || resp.MemberID != "somebody" || resp.LeaderID != "" || resp.ProtocolType != nil {
			t.Fatalf("%+v", resp)
		}
		if (resp.Protocol == nil) != (version >= 7) || resp.Protocol != nil && *resp.Protocol != "" {
			t.Fatalf("protocol %s", show(resp.Protocol))
		}
	})
}

// GR-2: from v5 on a member may have an instance id, which the leader learns.
func TestAStaticMemberIsNamedToTheLeader(t *testing.T) {
	k := newKit(t, atOnceComplete)
	for version := int16(5); version <= 9; version++ {
		req := joinRequest(t.Name()+string(rune('0'+version)), "")
		req.InstanceID = kmsg.StringPtr("one")
		resp := ask[*kmsg.JoinGroupResponse](k, version, req)
		wantCode(t, resp.ErrorCode, nil)
		if !strings.HasPrefix(resp.MemberID, "one-") || len(resp.Members) != 1 || show(resp.Members[0].InstanceID) != `"one"` {
			t.Fatalf("v%d: %+v", version, resp)
		}
	}
}

// A JoinGroup waits for the other members in the reply, never before it.
func TestAJoinWaitsForTheOtherMembers(t *testing.T) {
	k := newKit(t, atOnceComplete)
	id, _ := k.member("g")
	parked := k.begin(3, joinRequest("g", ""))
	wantState(t, k.described(4, "g"), "PreparingRebalance", 2)
	first := ask[*kmsg.JoinGroupResponse](k, 3, joinRequest("g", id))
	second := parked.finish().(*kmsg.JoinGroupResponse)
	if first.Generation != 2 || second.Generation != 2 || second.LeaderID != id || len(first.Members) != 2 || len(second.Members) != 0 {
		t.Fatalf("%+v\n%+v", first, second)
	}
}

// The end of a connection is not the end of a membership.
func TestTheEndOfItsConnectionLeavesAMemberInTheGroup(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.member("g")
	parked := k.begin(3, joinRequest("g", ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	parked.ctx = ctx
	wantCode(t, parked.finish().(*kmsg.JoinGroupResponse).ErrorCode, kerr.NotCoordinator)
	wantState(t, k.described(4, "g"), "PreparingRebalance", 2)
}

// KIP-814: from v9 on a leader that was started anew is told that it leads, and that it need not assign.
func TestALeaderThatIsStartedAnewSkipsTheAssignment(t *testing.T) {
	k := newKit(t, atOnceComplete)
	for version := int16(5); version <= 9; version++ {
		g := t.Name() + string(rune('0'+version))
		req := joinRequest(g, "")
		req.InstanceID = kmsg.StringPtr("one")
		first := ask[*kmsg.JoinGroupResponse](k, version, req)
		wantCode(t, ask[*kmsg.SyncGroupResponse](k, 2, syncRequest(g, first.MemberID, first.Generation, first.MemberID, "all")).ErrorCode, nil)
		again := ask[*kmsg.JoinGroupResponse](k, version, req)
		wantCode(t, again.ErrorCode, nil)
		if skips := again.LeaderID == again.MemberID; skips != (version >= 9) || again.SkipAssignment != skips || again.Generation != first.Generation {
			t.Fatalf("v%d: %+v", version, again)
		}
	}
}
