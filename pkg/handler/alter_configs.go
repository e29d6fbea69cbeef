package handler

import (
	"context"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// alterConfigs replaces all configs of resources: what is not named is as if it had never been set.
func (h *Handler) alterConfigs(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.AlterConfigsRequest)
	resp := kmsg.NewPtrAlterConfigsResponse()
	resp.SetVersion(req.Version)
	changes := make([]alteration, len(body.Resources))
	for i := range body.Resources {
		r, c := &body.Resources[i], &changes[i]
		c.kind, c.name, c.replace = r.ResourceType, r.ResourceName, true
		for k := range r.Configs {
			c.add(topic.OpSet, r.Configs[k].Name, r.Configs[k].Value)
		}
	}
	for i, err := range h.alter(ctx, changes, body.ValidateOnly) {
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = changes[i].kind, changes[i].name
		out.ErrorCode, out.ErrorMessage = h.code(req, err), kafka.ErrorMessage(err)
		resp.Resources = append(resp.Resources, out)
	}
	return resp
}

// incrementalAlterConfigs alters configs of resources one by one (KIP-339).
func (h *Handler) incrementalAlterConfigs(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.IncrementalAlterConfigsRequest)
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	resp.SetVersion(req.Version)
	changes := make([]alteration, len(body.Resources))
	for i := range body.Resources {
		r, c := &body.Resources[i], &changes[i]
		c.kind, c.name = r.ResourceType, r.ResourceName
		for k := range r.Configs {
			c.add(topic.Op(r.Configs[k].Op), r.Configs[k].Name, r.Configs[k].Value)
		}
	}
	for i, err := range h.alter(ctx, changes, body.ValidateOnly) {
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = changes[i].kind, changes[i].name
		out.ErrorCode, out.ErrorMessage = h.code(req, err), kafka.ErrorMessage(err)
		resp.Resources = append(resp.Resources, out)
	}
	return resp
}

// An alteration is what one of the two requests asks of one resource.
type alteration struct {
	kind    kmsg.ConfigResourceType
	name    string
	replace bool
	ops     []topic.ConfigOp
	null    []string // names with null where there has to be a value
}

// add adds an operation. Its strings are cloned: they alias the request's frame, and a topic's configs stay.
func (c *alteration) add(op topic.Op, name string, value *string) {
	o := topic.ConfigOp{Op: op, Name: strings.Clone(name)}
	switch {
	case value != nil:
		o.Value = strings.Clone(*value)
	case op != topic.OpDelete:
		c.null = append(c.null, o.Name)
	}
	c.ops = append(c.ops, o)
}

// alter does what is asked, all topics in one commit and all of the broker in another. The errors are in the
// order of the changes, of which each is on its own (ConfigAdminManager.preprocess, then the controller).
func (h *Handler) alter(ctx context.Context, changes []alteration, validateOnly bool) []error {
	type resource struct {
		kind kmsg.ConfigResourceType
		name string
	}
	count := make(map[resource]int, len(changes))
	for i := range changes {
		count[resource{changes[i].kind, changes[i].name}]++
	}
	errs := make([]error, len(changes))
	var topics []topic.ConfigChange
	var brokers []topic.BrokerChange
	var indexes, brokerIndexes []int
	for i := range changes {
		c := &changes[i]
		if count[resource{c.kind, c.name}] > 1 {
			errs[i] = kafka.Errorf(kerr.InvalidRequest, "Each resource must appear at most once.")
			continue
		}
		if errs[i] = h.checkAlteration(c); errs[i] != nil {
			continue
		}
		switch c.kind {
		case kmsg.ConfigResourceTypeTopic:
			topics = append(topics, topic.ConfigChange{Topic: c.name, Replace: c.replace, Ops: c.ops})
			indexes = append(indexes, i)
		case kmsg.ConfigResourceTypeBroker:
			brokers = append(brokers, topic.BrokerChange{Cluster: c.name == "", Replace: c.replace, Ops: c.ops})
			brokerIndexes = append(brokerIndexes, i)
		}
	}
	for i, err := range h.Registry.AlterBroker(ctx, brokers, validateOnly) {
		errs[brokerIndexes[i]] = err
	}
	for i, err := range h.Registry.AlterConfigs(ctx, topics, validateOnly) {
		errs[indexes[i]] = err
	}
	return errs
}

// checkAlteration is what Kafka's broker checks itself. Of what is neither topic
// nor broker nothing can be altered: to alter nothing is all that is left of it.
func (h *Handler) checkAlteration(c *alteration) error {
	seen := make(map[string]bool, len(c.ops))
	names := make([]string, len(c.ops))
	for i, op := range c.ops {
		if seen[op.Name] {
			return kafka.Errorf(kerr.InvalidRequest, "Error due to duplicate config keys")
		}
		seen[op.Name], names[i] = true, op.Name
	}
	if c.null != nil {
		return kafka.Errorf(kerr.InvalidRequest, "Null value not supported for : %s", strings.Join(c.null, ", "))
	}
	if c.kind == kmsg.ConfigResourceTypeTopic {
		return nil
	}
	if err := h.checkAltered(c); err != nil || len(names) == 0 || c.kind == kmsg.ConfigResourceTypeBroker {
		return err
	}
	return kafka.Errorf(kerr.InvalidRequest, "Cannot update these configs dynamically: [%s]", strings.Join(names, ", "))
}

// checkAltered checks the name of a resource that is no topic.
func (h *Handler) checkAltered(c *alteration) error {
	switch {
	case !knownResource(c.kind) || c.kind == kmsg.ConfigResourceTypeBrokerLogger && c.replace:
		return kafka.Errorf(kerr.InvalidRequest, "Unknown resource type %d", int8(c.kind))
	case c.kind == kmsg.ConfigResourceTypeClientMetrics && c.name == "":
		return kafka.Errorf(kerr.InvalidRequest, "Subscription name can't be empty")
	case c.kind == kmsg.ConfigResourceTypeGroupConfig && c.name == "":
		return kafka.Errorf(kerr.InvalidRequest, "Default group resources are not allowed.")
	case c.kind == kmsg.ConfigResourceTypeBrokerLogger:
		return h.checkNode(c.name, "Unexpected node id. Expected %d, but received %s")
	case c.kind == kmsg.ConfigResourceTypeBroker && c.name != "": // the empty name is the cluster's defaults
		return h.checkNode(c.name, "Unexpected broker id, expected %d, but received %s")
	}
	return nil
}

// checkNode checks a resource name that has to be this broker's id. The text is for another's.
func (h *Handler) checkNode(name, text string) error {
	id, err := brokerID(name)
	switch {
	case err != nil:
		return kafka.Errorf(kerr.InvalidRequest, "Node id must be an integer, but it is: %s", name)
	case id != h.NodeID:
		return kafka.Errorf(kerr.InvalidRequest, text, h.NodeID, name)
	}
	return nil
}
