package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var _ = judge.Register("create-partitions", createPartitions)

// grown asks for a topic to have so many partitions, the new ones on these brokers if any are given.
func grown(name string, count int32, replicas ...[]int32) kmsg.CreatePartitionsRequestTopic {
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = name, count
	for _, brokers := range replicas {
		a := kmsg.NewCreatePartitionsRequestTopicAssignment()
		a.Replicas = brokers
		t.Assignment = append(t.Assignment, a)
	}
	return t
}

func grow(topics ...kmsg.CreatePartitionsRequestTopic) *kmsg.CreatePartitionsRequest {
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.Topics, req.TimeoutMillis = topics, 30000
	return req
}

// createPartitions asks every version for more partitions, and has each error alone and with others.
func createPartitions(e *judge.Env) {
	c := e.Conn()
	none := e.Name("none")
	for v := int16(0); v <= 3; v++ {
		a, b := e.CreateTopic(fmt.Sprintf("a%d", v), 1), e.CreateTopic(fmt.Sprintf("b%d", v), 3)
		// Kafka answers those that it refuses by itself after the others, in the order of a hash map.
		do := func(step string, topics ...kmsg.CreatePartitionsRequestTopic) {
			c.Do(fmt.Sprintf("v%d %s", v, step), v, grow(topics...), judge.Sorted("Topics"))
		}
		do("no topics")
		validated := grow(grown(a.Name, 5))
		validated.ValidateOnly = true
		c.Do(fmt.Sprintf("v%d validate only", v), v, validated)
		validated.Topics = []kmsg.CreatePartitionsRequestTopic{grown(b.Name, 3), grown(none, 3), grown(a.Name, 2, []int32{2})}
		c.Do(fmt.Sprintf("v%d errors, validate only", v), v, validated, judge.Sorted("Topics"))
		c.Do(fmt.Sprintf("v%d they are as they were", v), 9, metadataOf(a.Name, b.Name), judge.Sorted("Topics"))
		do("grown", grown(a.Name, 3))
		e.AwaitTopic(a.Name, 3)
		c.Do(fmt.Sprintf("v%d it has grown", v), 12, metadataOf(a.Name))
		c.Do(fmt.Sprintf("v%d and is empty", v), 7, offsetsOf(a, at(0, -1), at(1, -1), at(2, -1), at(3, -1)), anyOrder)
		do("as many", grown(a.Name, 3))
		for _, n := range []int32{2, 1, 0, -1, -100} {
			do(fmt.Sprintf("%d partitions", n), grown(a.Name, n))
		}
		for _, n := range []int32{10003, 10004, 2147483647} {
			do(fmt.Sprintf("%d partitions", n), grown(a.Name, n, []int32{1}))
		}
		do("too many, and another", grown(a.Name, 10004), grown(b.Name, 4))
		do("too many of two", grown(a.Name, 5003), grown(b.Name, 5004))
		do("too many, and one with fewer", grown(a.Name, 10004), grown(b.Name, 0, []int32{}))
		do("too many, with others around", grown(none, 4), grown(b.Name, 4), grown(a.Name, 10004), grown(b.Name, 4))
		do("too many, twice", grown(a.Name, 10004), grown(a.Name, 10004))
		do("too many of a topic that is not there", grown(none, 10004))
		do("unknown", grown(none, 3))
		do("invalid names", grown("", 1), grown("a b", 1), grown(".", 1), grown("__cluster_metadata", 2))
		do("twice", grown(a.Name, 4), grown(a.Name, 5))
		do("twice, with others around", grown(none, 4), grown(a.Name, 4), grown(b.Name, 2), grown(a.Name, 4), grown(a.Name, 4))
		do("one of two", grown(b.Name, 4), grown(a.Name, 3))
		e.AwaitTopic(b.Name, 4)
		c.Do(fmt.Sprintf("v%d one of two has grown", v), 9, metadataOf(a.Name, b.Name), judge.Sorted("Topics"))
		createPartitionsPlaced(e, c, v, a.Name, none)
	}
}

// createPartitionsPlaced has new partitions placed by hand. The topic has three.
func createPartitionsPlaced(e *judge.Env, c *judge.Conn, v int16, name, none string) {
	do := func(step string, topic kmsg.CreatePartitionsRequestTopic) {
		req := grow(topic)
		req.ValidateOnly = true
		c.Do(fmt.Sprintf("v%d placed: %s", v, step), v, req)
	}
	do("one", grown(name, 4, []int32{1}))
	do("two", grown(name, 5, []int32{1}, []int32{1}))
	do("too few", grown(name, 5, []int32{1}))
	do("too many", grown(name, 4, []int32{1}, []int32{1}))
	do("none for one", grown(name, 4, []int32{}))
	do("unknown broker", grown(name, 4, []int32{2}))
	do("negative broker", grown(name, 4, []int32{-1}))
	do("this broker twice", grown(name, 4, []int32{1, 1}))
	do("this broker and an unknown one", grown(name, 4, []int32{1, 2}))
	do("unknown broker twice", grown(name, 4, []int32{5, 5}))
	do("the second is wrong", grown(name, 5, []int32{1}, []int32{2}))
	do("the second is empty", grown(name, 5, []int32{1}, []int32{}))
	do("no increase", grown(name, 3, []int32{1}))
	do("a decrease", grown(name, 2, []int32{1}))
	do("unknown topic", grown(none, 2, []int32{7}))
	empty := grown(name, 4)
	empty.Assignment = []kmsg.CreatePartitionsRequestTopicAssignment{}
	do("an empty list of assignments", empty)
	made := grow(grown(name, 5, []int32{1}, []int32{1}))
	c.Do(fmt.Sprintf("v%d placed: made", v), v, made)
	e.AwaitTopic(name, 5)
	c.Do(fmt.Sprintf("v%d placed: it has grown", v), 9, metadataOf(name))
}
