package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GR-1: before v3 the one member's error is that of the response; from then on each has its own.
func TestLeaveGroupOfOneAndOfMany(t *testing.T) {
	k := newKit(t, atOnceComplete)
	k.eachVersion(kmsg.LeaveGroup, func(t *testing.T, version int16) {
		g := t.Name()
		req := kmsg.NewPtrLeaveGroupRequest()
		req.Group = g
		id, _ := k.member(g)
		req.MemberID = id
		req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: "somebody", Reason: kmsg.StringPtr("why not")}, {MemberID: id}}
		resp := ask[*kmsg.LeaveGroupResponse](k, version, req)
		wantCode(t, resp.ErrorCode, nil)
		if version >= 3 {
			if len(resp.Members) != 2 || resp.Members[0].MemberID != "somebody" || resp.Members[1].MemberID != id {
				t.Fatalf("%+v", resp.Members)
			}
			wantCode(t, resp.Members[0].ErrorCode, kerr.UnknownMemberID)
			wantCode(t, resp.Members[1].ErrorCode, nil)
		}
		wantState(t, k.described(4, g), "Empty", 0)
		resp = ask[*kmsg.LeaveGroupResponse](k, version, req)
		if version < 3 {
			wantCode(t, resp.ErrorCode, kerr.UnknownMemberID)
		} else {
			wantCode(t, resp.ErrorCode, nil)
			wantCode(t, resp.Members[1].ErrorCode, kerr.UnknownMemberID)
		}
		req.Group = ""
		wantCode(t, ask[*kmsg.LeaveGroupResponse](k, version, req).ErrorCode, kerr.InvalidGroupID)
	})
}

// GR-2: a static member is named by its instance id alone.
func TestLeaveGroupByInstanceID(t *testing.T) {
	k := newKit(t, atOnceComplete)
	join := joinRequest("g", "")
	join.InstanceID = kmsg.StringPtr("one")
	wantCode(t, ask[*kmsg.JoinGroupResponse](k, 5, join).ErrorCode, nil)
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.Members = "g", []kmsg.LeaveGroupRequestMember{{InstanceID: kmsg.StringPtr("one")}}
	resp := ask[*kmsg.LeaveGroupResponse](k, 3, req)
	wantCode(t, resp.Members[0].ErrorCode, nil)
	if show(resp.Members[0].InstanceID) != `"one"` {
		t.Fatalf("%+v", resp.Members)
	}
	wantState(t, k.described(4, "g"), "Empty", 0)
}
