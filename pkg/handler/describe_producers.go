package handler

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// describeProducers tells the idempotent and transactional producers of
// partitions, each with the start of its open transaction: what kafka-transactions
// finds hanging ones by (KIP-664, KafkaApis.handleDescribeProducersRequest).
func (h *Handler) describeProducers(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.DescribeProducersRequest)
	resp := kmsg.NewPtrDescribeProducersResponse()
	resp.SetVersion(req.Version)
	for i := range body.Topics {
		in := &body.Topics[i]
		out := kmsg.NewDescribeProducersResponseTopic()
		out.Topic = in.Topic
		for _, partition := range in.Partitions {
			out.Partitions = append(out.Partitions, h.producersOf(req, in.Topic, partition))
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func (h *Handler) producersOf(req *server.Request, name string, partition int32) kmsg.DescribeProducersResponseTopicPartition {
	out := kmsg.NewDescribeProducersResponseTopicPartition()
	out.Partition = partition
	fail := func(err error, message *string) kmsg.DescribeProducersResponseTopicPartition {
		out.ErrorCode, out.ErrorMessage = h.code(req, err), message
		return out
	}
	if err := topic.ValidateName(name); err != nil {
		return fail(err, text(err))
	}
	t, ok := h.Registry.Lookup(name)
	if !ok {
		return fail(kerr.UnknownTopicOrPartition, text(kerr.UnknownTopicOrPartition))
	}
	log, err := t.Log(partition)
	if err != nil {
		return fail(err, nil) // Kafka has no text for a partition
	}
	for _, p := range log.Producers() {
		a := kmsg.NewDescribeProducersResponseTopicPartitionActiveProducer()
		a.ProducerID, a.ProducerEpoch = p.ID, int32(p.Epoch)
		if n := len(p.Batches); n > 0 {
			a.LastSequence = p.Batches[n-1].LastSequence
		}
		a.LastTimestamp, a.CoordinatorEpoch, a.CurrentTxnStartOffset = p.LastTimestamp, p.CoordinatorEpoch, p.TxnFirstOffset
		out.ActiveProducers = append(out.ActiveProducers, a)
	}
	return out
}
