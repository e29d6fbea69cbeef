package brokertest_test

import (
	"bytes"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// A peer speaks to one broker by single requests.
type peer struct {
	t     *testing.T
	to    *kgo.Broker
	toOne *kgo.Broker // where produce requests with acks=1 go: a client of kgo writes its own acks into every one
}

func newPeer(t *testing.T, b *brokertest.Broker) peer {
	one := b.Client(kgo.RequestRetries(0), kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	return peer{t, b.Client(kgo.RequestRetries(0)).SeedBrokers()[0], one.SeedBrokers()[0]}
}

func ask[R kmsg.Response](p peer, req kmsg.Request) R {
	p.t.Helper()
	resp, err := p.to.Request(p.t.Context(), req)
	if err != nil {
		p.t.Fatalf("%s: %v", kmsg.NameForKey(req.Key()), err)
	}
	return resp.(R)
}

func (p peer) producerID() int64 {
	req := kmsg.NewPtrInitProducerIDRequest()
	return ask[*kmsg.InitProducerIDResponse](p, req).ProducerID
}

func (p peer) create(name string, partitions int) (id [16]byte, err error) {
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, int32(partitions), 1
	configs := topicConfigs
	if name == trimmed {
		configs = append(slices.Clip(configs), trimmedConfig)
	}
	for _, c := range configs {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: c[0], Value: &c[1]})
	}
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 10_000
	got := ask[*kmsg.CreateTopicsResponse](p, req).Topics[0]
	return got.TopicID, kerr.ErrorForCode(got.ErrorCode)
}

func (p peer) remove(name string) error {
	req := kmsg.NewPtrDeleteTopicsRequest()
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.Topic = &name
	req.TopicNames, req.Topics, req.TimeoutMillis = []string{name}, append(req.Topics, t), 10_000
	return kerr.ErrorForCode(ask[*kmsg.DeleteTopicsResponse](p, req).Topics[0].ErrorCode)
}

func (p peer) grow(name string, partitions int) error {
	req := kmsg.NewPtrCreatePartitionsRequest()
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = name, int32(partitions)
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 10_000
	return kerr.ErrorForCode(ask[*kmsg.CreatePartitionsResponse](p, req).Topics[0].ErrorCode)
}

// alter sets a config of a topic.
func (p peer) alter(name, config, value string) error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, name
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Value = config, &value
	r.Configs = append(r.Configs, c)
	req.Resources = append(req.Resources, r)
	return kerr.ErrorForCode(ask[*kmsg.IncrementalAlterConfigsResponse](p, req).Resources[0].ErrorCode)
}

// commit commits an offset for each partition.
func (p peer) commit(group, name string, id [16]byte, offsets []int64) error {
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = name, id
	for i, o := range offsets {
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		part.Partition, part.Offset = int32(i), o
		t.Partitions = append(t.Partitions, part)
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Topics = group, append(req.Topics, t)
	var errs []error
	for _, got := range ask[*kmsg.OffsetCommitResponse](p, req).Topics[0].Partitions {
		errs = append(errs, kerr.ErrorForCode(got.ErrorCode))
	}
	return errors.Join(errs...)
}

// find is the topic's id and partitions; ok is false if there is none.
func (p peer) find(name string) (id [16]byte, partitions int, ok bool) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &name
	req.Topics = append(req.Topics, t)
	got := ask[*kmsg.MetadataResponse](p, req).Topics[0]
	switch err := kerr.ErrorForCode(got.ErrorCode); {
	case err == nil:
		return got.TopicID, len(got.Partitions), true
	case !errors.Is(err, kerr.UnknownTopicOrPartition):
		p.t.Fatalf("metadata of %s: %v", name, err)
	}
	return id, 0, false
}

// retention asks for a config that does not go by itself.
func (p peer) retention(name string) string {
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, name, []string{retention}
	req.Resources = append(req.Resources, r)
	for _, c := range ask[*kmsg.DescribeConfigsResponse](p, req).Resources[0].Configs {
		if c.Value != nil {
			return *c.Value
		}
	}
	return ""
}

// produce sends a batch to each partition in one request (nil: none) and returns their offsets.
func (p peer) produce(name string, id [16]byte, acks int16, batches [][]byte) []int64 {
	p.t.Helper()
	offsets, errs := p.tryProduce(name, id, acks, batches)
	if err := errors.Join(errs...); err != nil {
		p.t.Fatalf("produce to %s: %v", name, err)
	}
	return offsets
}

// tryProduce is produce, with the error of each partition.
func (p peer) tryProduce(name string, id [16]byte, acks int16, batches [][]byte) ([]int64, []error) {
	p.t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 10_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = name, id
	for i, b := range batches {
		if b != nil {
			t.Partitions = append(t.Partitions, kmsg.ProduceRequestTopicPartition{Partition: int32(i), Records: bytes.Clone(b)})
		}
	}
	req.Topics = append(req.Topics, t)
	if acks == 1 {
		p.to = p.toOne
	}
	offsets, errs := make([]int64, len(batches)), make([]error, len(batches))
	for _, got := range ask[*kmsg.ProduceResponse](p, req).Topics[0].Partitions {
		offsets[got.Partition], errs[got.Partition] = got.BaseOffset, kerr.ErrorForCode(got.ErrorCode)
	}
	return offsets, errs
}

// deleteTo has the records of partitions below offsets deleted, and returns where they start then.
func (p peer) deleteTo(name string, offsets ...int64) ([]int64, []error) {
	p.t.Helper()
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = name
	for i, o := range offsets {
		t.Partitions = append(t.Partitions, kmsg.DeleteRecordsRequestTopicPartition{Partition: int32(i), Offset: o})
	}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics = append(req.Topics, t)
	starts, errs := make([]int64, len(offsets)), make([]error, len(offsets))
	for _, got := range ask[*kmsg.DeleteRecordsResponse](p, req).Topics[0].Partitions {
		starts[got.Partition], errs[got.Partition] = got.LowWatermark, kerr.ErrorForCode(got.ErrorCode)
	}
	return starts, errs
}

// start asks for the log start of a partition.
func (p peer) start(name string, partition int32) int64 {
	p.t.Helper()
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.Timestamp = partition, -2
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = name, append(t.Partitions, part)
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.Topics = -1, append(req.Topics, t)
	got := ask[*kmsg.ListOffsetsResponse](p, req).Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
		p.t.Fatalf("start of %s-%d: %v", name, partition, err)
	}
	return got.Offset
}

// batches shows the batches of a partition from that of an offset on, and returns the end.
func (p peer) batches(name string, id [16]byte, partition int32, next int64, show func(b record.Batch)) (end int64) {
	p.t.Helper()
	for {
		req := kmsg.NewPtrFetchRequest()
		req.MaxBytes, req.MaxWaitMillis, req.SessionEpoch = 1<<20, 0, -1
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = name, id
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes = partition, next, 1<<20
		t.Partitions = append(t.Partitions, part)
		req.Topics = append(req.Topics, t)
		got := ask[*kmsg.FetchResponse](p, req).Topics[0].Partitions[0]
		if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
			p.t.Fatalf("fetch %s-%d at %d: %v", name, partition, next, err)
		}
		for rest := got.RecordBatches; len(rest) > 0; {
			b, after, err := record.Parse(rest)
			if err != nil {
				break // the response may end within a batch
			}
			if err := b.CheckCRC(); err != nil {
				p.t.Fatalf("%s-%d: %v", name, partition, err)
			}
			show(b)
			next, rest = b.LastOffset()+1, after
		}
		if next >= got.HighWatermark {
			return got.HighWatermark
		}
	}
}

// records are those of a batch by offset.
func (p peer) records(b record.Batch) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		for rec, err := range b.Records() {
			if err != nil {
				p.t.Fatal(err)
			}
			if !yield(b.BaseOffset()+int64(rec.OffsetDelta), rec.Value) {
				return
			}
		}
	}
}

// values are all of a partition that starts at 0.
func (p peer) values(name string, id [16]byte, partition int32) (values []string) {
	p.t.Helper()
	p.batches(name, id, partition, 0, func(b record.Batch) {
		for at, value := range p.records(b) {
			if at != int64(len(values)) {
				p.t.Fatalf("%s-%d: a record at %d where %d is due", name, partition, at, len(values))
			}
			values = append(values, string(value))
		}
	})
	return values
}

// read shows a partition to a check, and returns where it starts and ends.
func (p peer) read(c *history.Check, name string, id [16]byte, partition int32) (start, end int64) {
	p.t.Helper()
	start = p.start(name, partition)
	r := c.Read(name, partition, start)
	end = p.batches(name, id, partition, start, func(b record.Batch) {
		for at, value := range p.records(b) {
			switch {
			case at < start: // of the batch that the log start is in
			case b.Control():
				r.Control(at)
			default:
				r.Record(at, value)
			}
		}
	})
	r.End(end, true)
	return start, end
}
