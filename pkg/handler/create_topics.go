package handler

import (
	"context"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

const (
	// maxPartitionsPerRequest bounds what one CreateTopics may ask for
	// (ReplicationControlManager.MAX_PARTITIONS_PER_BATCH).
	maxPartitionsPerRequest = 10000
	// clusterMetadataTopic is the name of Kafka's metadata log, which no client may create.
	clusterMetadataTopic = "__cluster_metadata"
)

// createTopics makes topics, all in one commit, and tells all their effective
// configs (KIP-525). Names that occur twice, and Kafka's metadata log, are
// refused here (ControllerApis.createTopics); the rest is the registry's.
func (h *Handler) createTopics(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.CreateTopicsRequest)
	resp := kmsg.NewPtrCreateTopicsResponse()
	resp.SetVersion(req.Version)

	count := make(map[string]int, len(body.Topics))
	for i := range body.Topics {
		count[body.Topics[i].Topic]++
	}
	var specs []topic.Spec
	var refused []kmsg.CreateTopicsResponseTopic
	for i := range body.Topics {
		t := &body.Topics[i]
		switch n := count[t.Topic]; {
		case n > 1:
			count[t.Topic] = -1 // told once
			refused = append(refused, refusedTopic(t.Topic, kafka.Errorf(kerr.InvalidRequest, "Duplicate topic name.")))
		case n < 0:
		case t.Topic == clusterMetadataTopic:
			refused = append(refused, refusedTopic(t.Topic, kafka.Errorf(kerr.InvalidRequest,
				"Creation of internal topic %s is prohibited.", clusterMetadataTopic)))
		default:
			specs = append(specs, topicSpec(t))
		}
	}
	if h.partitionsOf(specs) > maxPartitionsPerRequest {
		err := kafka.Errorf(kerr.PolicyViolation, "Excessively large number of partitions per request.")
		for i := range body.Topics {
			resp.Topics = append(resp.Topics, refusedTopic(body.Topics[i].Topic, err))
		}
		return resp
	}
	resp.Topics = append(h.create(ctx, req, specs, body.ValidateOnly), refused...)
	return resp
}

// create makes the topics of specs and tells of each.
func (h *Handler) create(ctx context.Context, req *server.Request, specs []topic.Spec, validateOnly bool) []kmsg.CreateTopicsResponseTopic {
	if len(specs) == 0 {
		return nil
	}
	created := h.Registry.Create(ctx, specs, validateOnly)
	out := make([]kmsg.CreateTopicsResponseTopic, 0, len(specs))
	for i, c := range created {
		if c.Err != nil {
			r := refusedTopic(specs[i].Name, c.Err)
			r.ErrorCode = h.code(req, c.Err)
			out = append(out, r)
			continue
		}
		out = append(out, h.createdTopic(c.Topic))
	}
	return out
}

// refusedTopic is the answer for a topic that is not made; it always has a text.
func refusedTopic(name string, err error) kmsg.CreateTopicsResponseTopic {
	r := kmsg.NewCreateTopicsResponseTopic()
	r.Topic, r.ErrorCode, r.ErrorMessage = name, kafka.ErrorCode(err), text(err)
	r.NumPartitions, r.ReplicationFactor = -1, -1
	r.Configs = []kmsg.CreateTopicsResponseTopicConfig{} // Kafka sends none as empty, not as null
	return r
}

// createdTopic tells of a topic that is made, or would be.
func (h *Handler) createdTopic(t *topic.Topic) kmsg.CreateTopicsResponseTopic {
	r := kmsg.NewCreateTopicsResponseTopic()
	r.Topic, r.TopicID = t.Name(), t.ID()
	r.NumPartitions, r.ReplicationFactor = t.Partitions(), int16(len(h.replicas))
	entries := config.DescribeTopic(h.Registry.Settings(), t.Overrides())
	r.Configs = make([]kmsg.CreateTopicsResponseTopicConfig, len(entries))
	for i := range entries {
		e, c := &entries[i], &r.Configs[i]
		c.Default()
		c.Name, c.Value, c.Source = e.Name, e.Value, int8(e.Source)
		c.ReadOnly, c.IsSensitive = e.ReadOnly, e.Sensitive
	}
	return r
}

// topicSpec takes a topic out of a request. Its strings are cloned: they alias
// the request's frame, and the topic stays.
func topicSpec(t *kmsg.CreateTopicsRequestTopic) topic.Spec {
	s := topic.Spec{Name: strings.Clone(t.Topic), Partitions: t.NumPartitions, ReplicationFactor: t.ReplicationFactor}
	for i := range t.ReplicaAssignment {
		a := &t.ReplicaAssignment[i]
		s.Assignments = append(s.Assignments, topic.Assignment{Partition: a.Partition, Brokers: a.Replicas})
	}
	for i := range t.Configs {
		e := topic.ConfigEntry{Name: strings.Clone(t.Configs[i].Name)}
		if v := t.Configs[i].Value; v != nil {
			e.Value = kmsg.StringPtr(strings.Clone(*v))
		}
		s.Configs = append(s.Configs, e)
	}
	return s
}

// partitionsOf is how many partitions specs ask for, invalid numbers left out.
func (h *Handler) partitionsOf(specs []topic.Spec) (total int64) {
	for i := range specs {
		switch s := &specs[i]; {
		case len(s.Assignments) > 0:
			total += int64(len(s.Assignments))
		case s.Partitions == -1:
			total += int64(h.Settings.NumPartitions)
		case s.Partitions > 0:
			total += int64(s.Partitions)
		}
	}
	return total
}
