package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// listGroups tells of all groups, or those in some states (v4, KIP-518) and of
// some types (v5, KIP-848). One that has offsets and never had a member is among them.
func (h *Handler) listGroups(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.ListGroupsRequest)
	resp := kmsg.NewPtrListGroupsResponse()
	resp.SetVersion(req.Version)
	listed := h.Groups.List(group.ListFilter{States: body.StatesFilter, Types: body.TypesFilter})
	resp.Groups = make([]kmsg.ListGroupsResponseGroup, len(listed))
	for i, g := range listed {
		out := kmsg.NewListGroupsResponseGroup()
		out.Group, out.ProtocolType, out.GroupState, out.GroupType = g.Group, g.ProtocolType, g.State, g.Type
		resp.Groups[i] = out
	}
	return resp
}
