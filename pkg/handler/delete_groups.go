package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// deleteGroups removes groups without members, and their offsets. A name that
// is there twice is answered once (KafkaApis.handleDeleteGroupsRequest).
func (h *Handler) deleteGroups(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.DeleteGroupsRequest)
	resp := kmsg.NewPtrDeleteGroupsResponse()
	resp.SetVersion(req.Version)
	seen := make(map[string]bool, len(body.Groups))
	names := keep(body.Groups, func(name string) bool {
		twice := seen[name]
		seen[name] = true
		return !twice
	})
	errs := h.Groups.Delete(ctx, names)
	resp.Groups = make([]kmsg.DeleteGroupsResponseGroup, len(names))
	for i, name := range names {
		out := kmsg.NewDeleteGroupsResponseGroup()
		out.Group = name
		if err := errs[i]; err != nil {
			out.ErrorCode, out.ErrorMessage = h.code(req, err), kafka.ErrorMessage(err)
		}
		resp.Groups[i] = out
	}
	return resp
}
