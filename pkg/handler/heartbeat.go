package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// heartbeat keeps a member's session, and tells it of a rebalance (KafkaApis.handleHeartbeatRequest).
func (h *Handler) heartbeat(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.HeartbeatRequest)
	resp := kmsg.NewPtrHeartbeatResponse()
	resp.SetVersion(req.Version)
	err := h.Groups.Heartbeat(&group.HeartbeatRequest{
		Group: body.Group, Conn: req.Conn.ID, MemberID: body.MemberID, InstanceID: body.InstanceID, Generation: body.Generation,
	})
	if err != nil {
		resp.ErrorCode = h.code(req, err)
	}
	return resp
}
