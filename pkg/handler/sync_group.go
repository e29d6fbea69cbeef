package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// syncGroup takes the leader's assignments, and gives each member its own: the
// answer to a follower waits for the leader's request (KafkaApis.handleSyncGroupRequest).
func (h *Handler) syncGroup(_ context.Context, req *server.Request) server.Reply {
	body := req.Body.(*kmsg.SyncGroupRequest)
	sync := &group.SyncRequest{
		Group: body.Group, Conn: req.Conn.ID, MemberID: body.MemberID, InstanceID: body.InstanceID, Generation: body.Generation,
		Named: req.Version >= 5, ProtocolType: body.ProtocolType, ProtocolName: body.Protocol,
		Assignments: make([]group.Assignment, len(body.GroupAssignment)),
	}
	for i, a := range body.GroupAssignment {
		sync.Assignments[i] = group.Assignment{MemberID: a.MemberID, Data: a.MemberAssignment}
	}
	abandoned := group.SyncResponse{Err: kerr.NotCoordinator}
	return parked(h.Groups.Sync(sync), abandoned, func(a group.SyncResponse) kmsg.Response {
		resp := kmsg.NewPtrSyncGroupResponse()
		resp.SetVersion(req.Version)
		if a.Err != nil {
			resp.ErrorCode = h.code(req, a.Err)
		}
		resp.ProtocolType, resp.Protocol, resp.MemberAssignment = a.ProtocolType, a.ProtocolName, a.Assignment
		return resp
	})
}
