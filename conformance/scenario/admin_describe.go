package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// Brokers of their own: all there is is asked for.
var (
	_ = judge.RegisterOwn("describe-topic-partitions", target.Options{}, describeTopicPartitions)
	_ = judge.RegisterOwn("list-config-resources", target.Options{}, listConfigResources)
)

// partitionsOf asks for the partitions of topics, so many at most.
func partitionsOf(limit int32, names ...string) *kmsg.DescribeTopicPartitionsRequest {
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = limit
	for _, name := range names {
		t := kmsg.NewDescribeTopicPartitionsRequestTopic()
		t.Topic = name
		req.Topics = append(req.Topics, t)
	}
	return req
}

// since has a request begin at a cursor.
func since(req *kmsg.DescribeTopicPartitionsRequest, topic string, partition int32) *kmsg.DescribeTopicPartitionsRequest {
	cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
	cursor.Topic, cursor.Partition = topic, partition
	req.Cursor = &cursor
	return req
}

// describeTopicPartitions asks for partitions by name and for all, in one piece and in several.
func describeTopicPartitions(e *judge.Env) {
	c := e.Conn()
	do := func(step string, req *kmsg.DescribeTopicPartitionsRequest) { c.Do(step, 0, req) }
	do("there are no topics", partitionsOf(2000))
	// Topics come by name: a, b, c.
	b, a, third := e.CreateTopic("b", 3), e.CreateTopic("a", 2), e.CreateTopic("c", 1)
	none, after := e.Name("aa"), e.Name("d")
	do("all", partitionsOf(2000))
	do("one", partitionsOf(2000, a.Name))
	do("two, the last first", partitionsOf(2000, b.Name, a.Name))
	do("one twice", partitionsOf(2000, a.Name, a.Name))
	do("unknown", partitionsOf(2000, none))
	do("unknown, and known", partitionsOf(2000, after, b.Name, none, a.Name))
	do("an empty name", partitionsOf(2000, "", a.Name))
	do("an empty name that is before the cursor", since(partitionsOf(2000, "", a.Name), a.Name, 0))
	do("invalid names", partitionsOf(2000, "a b", ".", "__cluster_metadata", "__consumer_offsets"))
	for _, limit := range []int32{-1, 0, 1, 2, 3, 4, 5, 6, 7, 2001} {
		do(fmt.Sprintf("all, %d at most", limit), partitionsOf(limit))
		do(fmt.Sprintf("some, %d at most", limit), partitionsOf(limit, none, a.Name, after, b.Name))
	}
	for _, name := range []string{"", a.Name, b.Name, third.Name, none, after} {
		for _, partition := range []int32{0, 1, 3, -1} {
			do(fmt.Sprintf("all since %q %d", name, partition), since(partitionsOf(2), name, partition))
			do(fmt.Sprintf("some since %q %d", name, partition), since(partitionsOf(2, b.Name, a.Name, after, none), name, partition))
		}
	}
	do("since one that is not asked for, and invalid", since(partitionsOf(2, a.Name, none, a.Name), b.Name, -1))
}

// listConfigResources lists what can have configs, of all types and of some.
func listConfigResources(e *judge.Env) {
	c := e.Conn()
	list := func(types ...int8) *kmsg.ListConfigResourcesRequest {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.ResourceTypes = types
		return req
	}
	do := func(step string, version int16, types ...int8) {
		c.Do(fmt.Sprintf("v%d %s", version, step), version, list(types...), judge.Sorted("ConfigResources"))
	}
	do("there are no topics", 0)
	do("there are no topics", 1)
	e.CreateTopic("b", 1)
	e.CreateTopic("a", 1, "flush.ms", "1")
	do("all", 0)
	do("all", 1)
	for _, kind := range []int8{2, 4, 8, 16, 32, 0, 1, 3, 64, 77, -1} {
		do(fmt.Sprintf("type %d", kind), 1, kind)
	}
	do("topics twice", 1, 2, 2)
	do("topics and brokers", 1, 2, 4)
	do("brokers and topics", 1, 4, 2)
	do("topics and an unknown type", 1, 2, 77)
}
