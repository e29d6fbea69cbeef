package handler

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
)

// listConfigResources lists what can have configs (KIP-1142): the topics, this
// broker and its loggers. There are no client metrics subscriptions, which are
// all that v0 is about (KIP-714), and no group has configs of its own. A type
// that is not known makes the whole request UNSUPPORTED_VERSION; none means all.
func (h *Handler) listConfigResources(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.ListConfigResourcesRequest)
	resp := kmsg.NewPtrListConfigResourcesResponse()
	resp.SetVersion(req.Version)
	if req.Version == 0 {
		return resp
	}
	wanted := make(map[kmsg.ConfigResourceType]bool, len(body.ResourceTypes))
	for _, t := range body.ResourceTypes {
		kind := kmsg.ConfigResourceType(t)
		if !knownResource(kind) {
			resp.ErrorCode = kerr.UnsupportedVersion.Code
			return resp
		}
		wanted[kind] = true
	}
	add := func(kind kmsg.ConfigResourceType, name string) {
		if len(wanted) > 0 && !wanted[kind] {
			return
		}
		r := kmsg.NewListConfigResourcesResponseConfigResource()
		r.Type, r.Name = int8(kind), name
		resp.ConfigResources = append(resp.ConfigResources, r)
	}
	node := strconv.Itoa(int(h.NodeID))
	add(kmsg.ConfigResourceTypeBroker, node)
	add(kmsg.ConfigResourceTypeBrokerLogger, node)
	for _, t := range h.Registry.All() {
		add(kmsg.ConfigResourceTypeTopic, t.Name())
	}
	return resp
}
