package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// createPartitions gives topics more partitions, all in one commit; they take
// records when it is answered (FX-21). A name that is there twice is
// refused here, once (ControllerApis.createPartitions); the rest is the registry's.
func (h *Handler) createPartitions(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.CreatePartitionsRequest)
	resp := kmsg.NewPtrCreatePartitionsResponse()
	resp.SetVersion(req.Version)
	answer := func(name string, code int16, err error) {
		t := kmsg.NewCreatePartitionsResponseTopic()
		t.Topic, t.ErrorCode, t.ErrorMessage = name, code, kafka.ErrorMessage(err)
		resp.Topics = append(resp.Topics, t)
	}
	count := make(map[string]int, len(body.Topics))
	for i := range body.Topics {
		count[body.Topics[i].Topic]++
	}
	var growths []topic.Growth
	for i := range body.Topics {
		if t := &body.Topics[i]; count[t.Topic] == 1 {
			growths = append(growths, growthOf(t))
		}
	}
	if h.partitionsAdded(growths) > maxPartitionsPerRequest {
		err := kafka.Errorf(kerr.PolicyViolation, "Excessively large number of additional partitions per request.")
		for i := range body.Topics {
			answer(body.Topics[i].Topic, kafka.ErrorCode(err), err)
		}
		return resp
	}
	for i, err := range h.Registry.GrowAll(ctx, growths, body.ValidateOnly) {
		answer(growths[i].Name, h.code(req, err), err)
	}
	for i := range body.Topics {
		if name := body.Topics[i].Topic; count[name] > 1 {
			count[name] = 0 // told once
			err := kafka.Errorf(kerr.InvalidRequest, "Duplicate topic name.")
			answer(name, kafka.ErrorCode(err), err)
		}
	}
	return resp
}

// growthOf takes a topic out of a request.
func growthOf(t *kmsg.CreatePartitionsRequestTopic) topic.Growth {
	g := topic.Growth{Name: t.Topic, Partitions: t.Count}
	if t.Assignment == nil {
		return g
	}
	g.Assignments = make([][]int32, len(t.Assignment))
	for i := range t.Assignment {
		g.Assignments[i] = t.Assignment[i].Replicas
	}
	return g
}

// partitionsAdded is how many partitions growths ask for, those of topics that there are not left out.
func (h *Handler) partitionsAdded(growths []topic.Growth) (total int64) {
	for i := range growths {
		if t, ok := h.Registry.Lookup(growths[i].Name); ok {
			total += max(0, int64(growths[i].Partitions)-int64(t.Partitions()))
		}
	}
	return total
}
