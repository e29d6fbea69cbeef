package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// leaveGroup removes members from a group: the one that asks, or, from v3 on,
// any that are named (KafkaApis.handleLeaveGroupRequest, KIP-345).
func (h *Handler) leaveGroup(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.LeaveGroupRequest)
	resp := kmsg.NewPtrLeaveGroupResponse()
	resp.SetVersion(req.Version)
	leave := &group.LeaveRequest{Group: body.Group}
	if req.Version < 3 {
		leave.Members = []group.Leaver{{MemberID: body.MemberID}}
	}
	for i := range body.Members {
		m := &body.Members[i]
		leave.Members = append(leave.Members, group.Leaver{MemberID: m.MemberID, InstanceID: m.InstanceID, Reason: orEmpty(m.Reason)})
	}
	left := h.Groups.Leave(leave)
	switch {
	case left.Err != nil:
		resp.ErrorCode = h.code(req, left.Err)
		return resp
	case req.Version < 3:
		if err := left.Members[0]; err != nil {
			resp.ErrorCode = h.code(req, err)
		}
		return resp
	}
	for i, m := range leave.Members {
		out := kmsg.NewLeaveGroupResponseMember()
		out.MemberID, out.InstanceID = m.MemberID, m.InstanceID
		if err := left.Members[i]; err != nil {
			out.ErrorCode = h.code(req, err)
		}
		resp.Members = append(resp.Members, out)
	}
	return resp
}
