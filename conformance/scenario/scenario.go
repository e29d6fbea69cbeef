// Package scenario asks brokers what the recordings hold: one file a theme, each scenario a function that sends requests. Run by its tests.
package scenario

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

// noTopicID is the id that Kafka gives to no topic a client can make.
var unknownID = [16]byte{0xde, 0xad, 0xbe, 0xef, 15: 0x42}

// part is a partition of a Produce request with what is to be appended.
type part struct {
	topic   judge.Topic
	index   int32
	records []byte
}

// produce is a Produce request for version 0 to 13: it has both names and ids, of which a version sends one.
func produce(acks int16, parts ...part) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 30000
	for _, p := range parts {
		partition := kmsg.NewProduceRequestTopicPartition()
		partition.Partition, partition.Records = p.index, p.records
		if n := len(req.Topics); n > 0 && req.Topics[n-1].Topic == p.topic.Name && req.Topics[n-1].TopicID == p.topic.ID {
			req.Topics[n-1].Partitions = append(req.Topics[n-1].Partitions, partition)
			continue
		}
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic, topic.TopicID = p.topic.Name, p.topic.ID
		topic.Partitions = append(topic.Partitions, partition)
		req.Topics = append(req.Topics, topic)
	}
	return req
}

// one is a Produce request of one batch to partition 0.
func one(acks int16, topic judge.Topic, batch *judge.Batch) *kmsg.ProduceRequest {
	return produce(acks, part{topic, 0, batch.Bytes()})
}

// listOffsets asks for a timestamp, -1 being the end and -2 the start, of partition 0.
func listOffsets(topic judge.Topic, timestamp int64) *kmsg.ListOffsetsRequest {
	partition := kmsg.NewListOffsetsRequestTopicPartition()
	partition.Timestamp = timestamp
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = topic.Name, append(t.Partitions, partition)
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.Topics = -1, append(req.Topics, t)
	return req
}

// fetch reads partition 0 from offset on.
func fetch(topic judge.Topic, offset int64) *kmsg.FetchRequest {
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.FetchOffset, partition.PartitionMaxBytes = offset, 1<<20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID, t.Partitions = topic.Name, topic.ID, append(t.Partitions, partition)
	req := kmsg.NewPtrFetchRequest()
	req.MinBytes, req.MaxBytes, req.SessionEpoch, req.Topics = 0, 1<<20, -1, append(req.Topics, t)
	return req
}
