package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// deleteRecords moves the starts of logs, all in one commit (KIP-107,
// KafkaApis.handleDeleteRecordsRequest). Of a partition that is named more than once the last offset
// counts, and it is answered once. A topic without partitions is not told of.
// The timeout has no effect: Kafka's is for replicas.
func (h *Handler) deleteRecords(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.DeleteRecordsRequest)
	resp := kmsg.NewPtrDeleteRecordsResponse()
	resp.SetVersion(req.Version)
	deletions := deletionsOf(body)
	places := make(map[string]int, len(body.Topics))
	for i, o := range h.Registry.DeleteRecords(ctx, deletions) {
		name := deletions[i].Topic
		place, ok := places[name]
		if !ok {
			place = len(resp.Topics)
			places[name] = place
			t := kmsg.NewDeleteRecordsResponseTopic()
			t.Topic = name
			resp.Topics = append(resp.Topics, t)
		}
		p := kmsg.NewDeleteRecordsResponseTopicPartition()
		p.Partition, p.LowWatermark, p.ErrorCode = deletions[i].Partition, o.LogStart, h.code(req, o.Err)
		if o.Err != nil {
			p.LowWatermark = -1
		}
		resp.Topics[place].Partitions = append(resp.Topics[place].Partitions, p)
	}
	return resp
}

// deletionsOf takes the partitions out of a request, each once.
func deletionsOf(body *kmsg.DeleteRecordsRequest) []topic.Deletion {
	var all []topic.Deletion
	places := make(map[kafka.TopicPartition]int)
	for i := range body.Topics {
		t := &body.Topics[i]
		for _, p := range t.Partitions {
			tp := kafka.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			place, ok := places[tp]
			if !ok {
				place = len(all)
				places[tp] = place
				all = append(all, topic.Deletion{TopicPartition: tp})
			}
			all[place].Offset = p.Offset
		}
	}
	return all
}
