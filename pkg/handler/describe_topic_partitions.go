package handler

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// maxPartitionsDescribed is Kafka's max.request.partition.size.limit.
const maxPartitionsDescribed = 2000

// describeTopicPartitions describes the partitions of topics in the order of
// their names (KIP-966), as many as the request allows, and tells where the
// next request begins (DescribeTopicPartitionsRequestHandler). It makes no topic.
func (h *Handler) describeTopicPartitions(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.DescribeTopicPartitionsRequest)
	resp := kmsg.NewPtrDescribeTopicPartitionsResponse()
	resp.SetVersion(req.Version)
	names, err := h.namesToDescribe(body)
	if err != nil {
		for i := range body.Topics {
			t := kmsg.NewDescribeTopicPartitionsResponseTopic()
			t.Topic, t.ErrorCode = &body.Topics[i].Topic, err.Code
			resp.Topics = append(resp.Topics, t)
		}
		return resp
	}
	left := max(1, min(maxPartitionsDescribed, body.ResponsePartitionLimit))
	for i := range names {
		t, exists := h.Registry.Lookup(names[i])
		switch {
		case !exists && len(body.Topics) == 0:
			continue // it was deleted meanwhile
		case left == 0:
			resp.NextCursor = cursorAt(names[i], 0)
			return resp
		case !exists:
			resp.Topics = append(resp.Topics, missingTopic(&names[i]))
			continue
		}
		first := int32(0)
		if c := body.Cursor; c != nil && c.Topic == names[i] {
			first = min(c.Partition, t.Partitions())
		}
		n := min(t.Partitions()-first, left)
		left -= n
		resp.Topics = append(resp.Topics, h.describedTopic(t, &names[i], first, n))
		if first+n < t.Partitions() {
			resp.NextCursor = cursorAt(names[i], first+n)
			return resp
		}
	}
	return resp
}

// namesToDescribe are the topics that a request asks for, from its cursor on,
// by name and each once. The error is that of the request as a whole.
func (h *Handler) namesToDescribe(body *kmsg.DescribeTopicPartitionsRequest) ([]string, *kerr.Error) {
	from := ""
	if body.Cursor != nil {
		from = body.Cursor.Topic
	}
	var names []string
	if len(body.Topics) == 0 {
		for _, t := range h.Registry.All() {
			names = append(names, t.Name())
		}
	}
	for i := range body.Topics {
		names = append(names, body.Topics[i].Topic)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.Compare(name, from) < 0 })
	slices.Sort(names)
	names = slices.Compact(names)
	switch {
	case body.Cursor != nil && len(body.Topics) > 0 && !slices.Contains(names, from):
		return nil, kerr.InvalidRequest
	case body.Cursor != nil && body.Cursor.Partition < 0:
		return nil, kerr.InvalidRequest
	case len(names) > 0 && names[0] == "":
		return nil, kerr.UnknownServerError // Kafka fails on it
	}
	return names, nil
}

func cursorAt(topic string, partition int32) *kmsg.DescribeTopicPartitionsResponseNextCursor {
	c := kmsg.NewDescribeTopicPartitionsResponseNextCursor()
	c.Topic, c.Partition = topic, partition
	return &c
}

// missingTopic is the answer for a name that is no topic, or can be none.
func missingTopic(name *string) kmsg.DescribeTopicPartitionsResponseTopic {
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.IsInternal, out.AuthorizedOperations = name, isInternal(*name), topicOperations
	out.ErrorCode = kerr.UnknownTopicOrPartition.Code
	if topic.ValidateName(*name) != nil {
		out.ErrorCode = kerr.InvalidTopicException.Code
	}
	return out
}

// describedTopic tells of n partitions of a topic. All are led by this broker, which is their only replica.
func (h *Handler) describedTopic(t *topic.Topic, name *string, first, n int32) kmsg.DescribeTopicPartitionsResponseTopic {
	out := kmsg.NewDescribeTopicPartitionsResponseTopic()
	out.Topic, out.TopicID, out.IsInternal, out.AuthorizedOperations = name, t.ID(), isInternal(*name), topicOperations
	out.Partitions = make([]kmsg.DescribeTopicPartitionsResponseTopicPartition, n)
	for i := range out.Partitions {
		p := &out.Partitions[i]
		p.Default()
		p.Partition, p.LeaderID, p.LeaderEpoch = first+int32(i), h.NodeID, h.Epoch
		p.Replicas, p.ISR = h.replicas, h.replicas
		p.EligibleLeaderReplicas, p.LastKnownELR = []int32{}, []int32{} // Kafka sends none as empty, not as null
	}
	return out
}
