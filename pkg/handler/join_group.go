package handler

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// joinGroup adds a member to a group, or has it take part in its next
// generation (KafkaApis.handleJoinGroupRequest). The answer waits until the
// group's members have all joined.
func (h *Handler) joinGroup(_ context.Context, req *server.Request) server.Reply {
	body := req.Body.(*kmsg.JoinGroupRequest)
	join := &group.JoinRequest{
		Group: body.Group, Conn: req.Conn.ID, MemberID: body.MemberID, InstanceID: body.InstanceID,
		ClientID: req.ClientID, ClientHost: clientHost(req.Conn), ProtocolType: body.ProtocolType,
		Protocols:          make([]group.Protocol, len(body.Protocols)),
		SessionTimeout:     millis(body.SessionTimeoutMillis),
		RebalanceTimeout:   millis(body.RebalanceTimeoutMillis),
		RequireKnownMember: req.Version >= 4, SkipAssignment: req.Version >= 9, Reason: orEmpty(body.Reason),
	}
	if req.Version < 1 {
		join.RebalanceTimeout = join.SessionTimeout
	}
	for i, p := range body.Protocols {
		join.Protocols[i] = group.Protocol{Name: p.Name, Metadata: p.Metadata}
	}
	abandoned := group.JoinResponse{Err: kerr.NotCoordinator, Generation: -1, MemberID: body.MemberID}
	return parked(h.Groups.Join(join), abandoned, func(a group.JoinResponse) kmsg.Response { return h.joinResponse(req, &a) })
}

func (h *Handler) joinResponse(req *server.Request, a *group.JoinResponse) kmsg.Response {
	resp := kmsg.NewPtrJoinGroupResponse()
	resp.SetVersion(req.Version)
	if a.Err != nil {
		resp.ErrorCode = h.code(req, a.Err)
	}
	resp.Generation, resp.ProtocolType, resp.Protocol = a.Generation, a.ProtocolType, a.ProtocolName
	resp.LeaderID, resp.MemberID, resp.SkipAssignment = a.Leader, a.MemberID, a.SkipAssignment
	resp.Members = make([]kmsg.JoinGroupResponseMember, len(a.Members))
	for i, m := range a.Members {
		out := kmsg.NewJoinGroupResponseMember()
		out.MemberID, out.InstanceID, out.ProtocolMetadata = m.MemberID, m.InstanceID, m.Metadata
		resp.Members[i] = out
	}
	return resp
}

// millis is a duration that a request has in milliseconds; it may be negative.
func millis(n int32) time.Duration { return time.Duration(n) * time.Millisecond }
