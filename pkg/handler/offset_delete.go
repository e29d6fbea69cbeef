package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// offsetDelete deletes committed offsets (KIP-496, KafkaApis.handleOffsetDeleteRequest).
// The group is asked even if no partition that exists is left: its errors go before those of partitions.
func (h *Handler) offsetDelete(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.OffsetDeleteRequest)
	resp := kmsg.NewPtrOffsetDeleteResponse()
	resp.SetVersion(req.Version)
	a := offsetDeleteAnswers{places: make(map[string]int)}
	del := &group.DeleteOffsetsRequest{Group: body.Group}
	var from []int // of del.Partitions: which topic of the request
	for i := range body.Topics {
		in := &body.Topics[i]
		t, ok := h.Registry.Lookup(in.Topic)
		if !ok {
			a.place(in.Topic) // also one without partitions
		}
		for _, p := range in.Partitions {
			if !ok || p.Partition < 0 || p.Partition >= t.Partitions() {
				a.answer(in.Topic, p.Partition, kerr.UnknownTopicOrPartition.Code)
				continue
			}
			from = append(from, i)
			del.Partitions = append(del.Partitions, kafka.TopicPartition{Topic: t.Name(), Partition: p.Partition})
		}
	}
	deleted := h.Groups.DeleteOffsets(ctx, del)
	if deleted.Err != nil {
		resp.ErrorCode = h.code(req, deleted.Err)
		return resp
	}
	// Kafka answers as the group does where nothing was refused before, and merges the two by topic otherwise.
	whole := len(a.topics) == 0
	for i, tp := range del.Partitions {
		if whole && (i == 0 || from[i] != from[i-1]) {
			delete(a.places, tp.Topic) // a topic that the request has twice is answered twice
		}
		var code int16
		if err := deleted.Partitions[i]; err != nil {
			code = h.code(req, err)
		}
		a.answer(tp.Topic, tp.Partition, code)
	}
	resp.Topics = a.topics
	return resp
}

// offsetDeleteAnswers are the topics of a response, in the order in which they were answered first.
type offsetDeleteAnswers struct {
	topics []kmsg.OffsetDeleteResponseTopic
	places map[string]int
}

func (a *offsetDeleteAnswers) place(name string) int {
	place, ok := a.places[name]
	if !ok {
		place = len(a.topics)
		a.places[name] = place
		out := kmsg.NewOffsetDeleteResponseTopic()
		out.Topic = name
		a.topics = append(a.topics, out)
	}
	return place
}

func (a *offsetDeleteAnswers) answer(name string, partition int32, code int16) {
	out := kmsg.NewOffsetDeleteResponseTopicPartition()
	out.Partition, out.ErrorCode = partition, code
	t := &a.topics[a.place(name)]
	t.Partitions = append(t.Partitions, out)
}
