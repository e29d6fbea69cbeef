package handler

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// describeGroups tells the state and the members of groups. One that is not
// there is an error from v6 on (KIP-1043); before that it is dead, without one.
func (h *Handler) describeGroups(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.DescribeGroupsRequest)
	resp := kmsg.NewPtrDescribeGroupsResponse()
	resp.SetVersion(req.Version)
	resp.Groups = make([]kmsg.DescribeGroupsResponseGroup, len(body.Groups))
	for i, name := range body.Groups {
		resp.Groups[i] = h.describeGroup(req, name)
		if body.IncludeAuthorizedOperations && resp.Groups[i].ErrorCode == 0 {
			resp.Groups[i].AuthorizedOperations = groupOperations
		}
	}
	return resp
}

func (h *Handler) describeGroup(req *server.Request, name string) kmsg.DescribeGroupsResponseGroup {
	out := kmsg.NewDescribeGroupsResponseGroup()
	d, err := h.Groups.Describe(name)
	if err != nil && req.Version >= 6 {
		out.ErrorCode, out.ErrorMessage = h.code(req, err), kafka.ErrorMessage(err)
	}
	out.Group, out.State, out.ProtocolType, out.Protocol = name, d.State, d.ProtocolType, d.Protocol
	out.Members = make([]kmsg.DescribeGroupsResponseGroupMember, len(d.Members))
	for i, m := range d.Members {
		member := kmsg.NewDescribeGroupsResponseGroupMember()
		member.MemberID, member.InstanceID, member.ClientID, member.ClientHost = m.MemberID, m.InstanceID, m.ClientID, m.ClientHost
		member.ProtocolMetadata, member.MemberAssignment = m.Metadata, m.Assignment
		out.Members[i] = member
	}
	return out
}
