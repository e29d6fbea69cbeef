package handler

import (
	"context"
	"errors"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// metadata describes topics and the one broker (KafkaApis.handleTopicMetadataRequest).
// A topic that is created by it is in the same response with its leader, where
// Kafka first answers UNKNOWN_TOPIC_OR_PARTITION (FX-21). Only such a response waits.
func (h *Handler) metadata(_ context.Context, req *server.Request) server.Reply {
	body := req.Body.(*kmsg.MetadataRequest)
	resp := kmsg.NewPtrMetadataResponse()
	resp.SetVersion(req.Version)
	reply := server.Reply{Response: func() (*server.Response, error) { return &server.Response{Body: resp}, nil }}
	if err := checkMetadata(body); err != nil {
		refuseMetadata(body, resp, err)
		return reply
	}
	h.describeBrokers(req, body, resp)
	d := describer{h: h, operations: body.IncludeTopicAuthorizedOperations && req.Version >= 8}
	var missing []topic.Spec
	switch {
	case allTopics(body):
		d.known(h.Registry.All())
	case byID(body):
		d.byID(body)
	default:
		missing = d.byName(body)
	}
	resp.Topics = d.topics
	if len(missing) > 0 {
		reply.Wait = func(ctx context.Context) {
			d.create(ctx, req, missing)
			resp.Topics = d.topics
		}
	}
	return reply
}

// describeBrokers fills in the one broker and the cluster.
func (h *Handler) describeBrokers(req *server.Request, body *kmsg.MetadataRequest, resp *kmsg.MetadataResponse) {
	resp.ClusterID = &h.ClusterID
	resp.ControllerID = h.NodeID
	node := kmsg.NewMetadataResponseBroker()
	node.NodeID = h.NodeID
	node.Host, node.Port = h.self(req.Conn)
	resp.Brokers = append(resp.Brokers, node)
	if body.IncludeClusterAuthorizedOperations && req.Version >= 8 && req.Version <= 10 {
		resp.AuthorizedOperations = clusterOperations
	}
}

// allTopics says whether every topic is asked for: null, and in v0 an empty list too.
func allTopics(body *kmsg.MetadataRequest) bool {
	return body.Topics == nil || body.Version == 0 && len(body.Topics) == 0
}

// byID says whether topics are asked for by id: as soon as one is, names are not looked at.
func byID(body *kmsg.MetadataRequest) bool {
	for i := range body.Topics {
		if body.Topics[i].TopicID != [16]byte{} {
			return true
		}
	}
	return false
}

// checkMetadata refuses null names and ids in v10 and v11, which have the
// fields but not their meaning yet. A later request that has neither name nor
// id is one that Kafka fails on.
func checkMetadata(body *kmsg.MetadataRequest) *kerr.Error {
	ids := byID(body)
	for i := range body.Topics {
		t := &body.Topics[i]
		if body.Version < 12 && (t.Topic == nil || t.TopicID != [16]byte{}) {
			return kerr.InvalidRequest
		}
		if t.Topic == nil && !ids {
			return kerr.UnknownServerError
		}
	}
	return nil
}

// refuseMetadata is MetadataRequest.getErrorResponse: the error for every topic and, from v13 on, for the whole.
func refuseMetadata(body *kmsg.MetadataRequest, resp *kmsg.MetadataResponse, err *kerr.Error) {
	resp.ErrorCode = err.Code
	for i := range body.Topics {
		t := kmsg.NewMetadataResponseTopic()
		t.ErrorCode, t.TopicID, t.Topic = err.Code, body.Topics[i].TopicID, body.Topics[i].Topic
		if t.Topic == nil {
			t.Topic = new(string)
		}
		resp.Topics = append(resp.Topics, t)
	}
}

// A describer collects the topics of a Metadata response.
type describer struct {
	h          *Handler
	operations bool // tell the authorized operations
	topics     []kmsg.MetadataResponseTopic
}

// known describes topics that exist. All that they have in common is
// shared, and what they do not is allocated together: 5,000 topics are a few allocations.
func (d *describer) known(topics []*topic.Topic) {
	total := 0
	for _, t := range topics {
		total += int(t.Partitions())
	}
	names := make([]string, len(topics))
	partitions := make([]kmsg.MetadataResponseTopicPartition, total)
	d.topics = make([]kmsg.MetadataResponseTopic, 0, len(topics))
	for i, t := range topics {
		names[i] = t.Name()
		n := int(t.Partitions())
		d.addKnown(t, &names[i], partitions[:n:n])
		partitions = partitions[n:]
	}
}

// add describes one topic that exists.
func (d *describer) add(t *topic.Topic) {
	name := t.Name()
	d.addKnown(t, &name, make([]kmsg.MetadataResponseTopicPartition, t.Partitions()))
}

func (d *describer) addKnown(t *topic.Topic, name *string, partitions []kmsg.MetadataResponseTopicPartition) {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.TopicID, out.IsInternal = name, t.ID(), isInternal(*name)
	out.Partitions = partitions
	for i := range partitions {
		p := &partitions[i]
		p.Partition, p.Leader, p.LeaderEpoch = int32(i), d.h.NodeID, d.h.Epoch
		p.Replicas, p.ISR = d.h.replicas, d.h.replicas
	}
	if d.operations {
		out.AuthorizedOperations = topicOperations
	}
	d.topics = append(d.topics, out)
}

// unknown describes a name that is no topic.
func (d *describer) unknown(name string, code int16) {
	out := kmsg.NewMetadataResponseTopic()
	out.Topic, out.IsInternal, out.ErrorCode = &name, isInternal(name), code
	if d.operations {
		out.AuthorizedOperations = topicOperations
	}
	d.topics = append(d.topics, out)
}

// byID answers ids, each once; one that is not known has no name and no authorized operations.
func (d *describer) byID(body *kmsg.MetadataRequest) {
	seen := make(map[kafka.TopicID]bool, len(body.Topics))
	for i := range body.Topics {
		id := kafka.TopicID(body.Topics[i].TopicID)
		if id.IsZero() || seen[id] {
			continue
		}
		seen[id] = true
		if t, ok := d.h.Registry.LookupID(id); ok {
			d.add(t)
			continue
		}
		out := kmsg.NewMetadataResponseTopic()
		out.TopicID, out.ErrorCode = id, kerr.UnknownTopicID.Code
		d.topics = append(d.topics, out)
	}
}

// byName answers names, each once, and returns those to be created, if that is allowed.
func (d *describer) byName(body *kmsg.MetadataRequest) (missing []topic.Spec) {
	create := d.h.Settings.AutoCreateTopics && (body.AllowAutoTopicCreation || body.Version < 4)
	seen := make(map[string]bool, len(body.Topics))
	d.topics = make([]kmsg.MetadataResponseTopic, 0, len(body.Topics))
	for i := range body.Topics {
		name := *body.Topics[i].Topic
		if seen[name] {
			continue
		}
		seen[name] = true
		if t, ok := d.h.Registry.Lookup(name); ok {
			d.add(t)
			continue
		}
		if err := topic.ValidateName(name); err != nil {
			d.unknown(name, kerr.InvalidTopicException.Code)
			continue
		}
		if !create {
			d.unknown(name, kerr.UnknownTopicOrPartition.Code)
			continue
		}
		// The name aliases the request's frame, and the topic stays.
		missing = append(missing, topic.Spec{Name: strings.Clone(name), Partitions: -1, ReplicationFactor: -1})
	}
	return missing
}

// create auto-creates topics, in one commit, and describes them. Whatever
// keeps one from being made, a collision of names or a full disk (ST-60), the
// client is told UNKNOWN_TOPIC_OR_PARTITION, which it repeats, as Kafka does.
func (d *describer) create(ctx context.Context, req *server.Request, specs []topic.Spec) {
	for i, c := range d.h.Registry.Create(ctx, specs, false) {
		t := c.Topic
		if errors.Is(c.Err, kerr.TopicAlreadyExists) { // another connection was first
			t, _ = d.h.Registry.Lookup(specs[i].Name)
		} else if c.Err != nil {
			t = nil
			d.h.code(req, c.Err) // for the log
		}
		if t == nil {
			d.unknown(specs[i].Name, kerr.UnknownTopicOrPartition.Code)
			continue
		}
		d.add(t)
	}
}

// isInternal says whether a name is one of Kafka's own topics (Topic.isInternal).
func isInternal(name string) bool {
	switch name {
	case "__consumer_offsets", "__transaction_state", "__share_group_state":
		return true
	}
	return false
}
