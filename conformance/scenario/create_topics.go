package scenario

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("create-topics", createTopics)
	_ = judge.Register("create-topics-names", createTopicsNames)
	_ = judge.Register("create-topics-errors", createTopicsErrors)
	_ = judge.Register("create-topics-assignments", createTopicsAssignments)
	_ = judge.Register("delete-topics", deleteTopics)
)

// newTopic asks for a topic.
func newTopic(name string, partitions int32, replicas int16, configs ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replicas
	for i := 0; i < len(configs); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = configs[i], &configs[i+1]
		t.Configs = append(t.Configs, c)
	}
	return t
}

// assigned asks for a topic whose partitions are placed by hand: partition 0 on the first list, and so on.
func assigned(name string, replicas ...[]int32) kmsg.CreateTopicsRequestTopic {
	t := newTopic(name, -1, -1)
	for i, brokers := range replicas {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = int32(i), brokers
		t.ReplicaAssignment = append(t.ReplicaAssignment, a)
	}
	return t
}

func create(topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics, req.TimeoutMillis = topics, 30000
	return req
}

func validate(topics ...kmsg.CreateTopicsRequestTopic) *kmsg.CreateTopicsRequest {
	req := create(topics...)
	req.ValidateOnly = true
	return req
}

// createTopics asks every version for topics that are made, that would be, and that are there.
func createTopics(e *judge.Env) {
	c := e.Conn()
	for v := int16(2); v <= 7; v++ {
		name := e.Name(fmt.Sprintf("v%d", v))
		c.Do(fmt.Sprintf("v%d validate only", v), v, validate(newTopic(name, 3, 1)))
		c.Do(fmt.Sprintf("v%d it is not there", v), 9, metadataOf(name))
		c.Do(fmt.Sprintf("v%d created", v), v, create(newTopic(name, 3, 1, "cleanup.policy", "compact", "max.message.bytes", "2000000")))
		e.AwaitTopic(name, 3)
		c.Do(fmt.Sprintf("v%d it is there", v), 12, metadataOf(name))
		c.Do(fmt.Sprintf("v%d created again", v), v, create(newTopic(name, 3, 1)))
		c.Do(fmt.Sprintf("v%d validated again", v), v, validate(newTopic(name, 3, 1)))
		c.Do(fmt.Sprintf("v%d errors", v), v, create(newTopic("a b", 1, 1), newTopic(e.Name("p"), 0, 1), newTopic(e.Name("r"), 1, 0), newTopic(e.Name("c"), 1, 1, "nonsense", "1")))
		c.Do(fmt.Sprintf("v%d no topics", v), v, create())
		if v < 5 {
			c.Do(fmt.Sprintf("v%d defaults", v), v, validate(newTopic(name+"d", -1, -1)))
			c.Do(fmt.Sprintf("v%d placed", v), v, validate(assigned(name+"p", []int32{1}, []int32{1})))
		}
	}
	defaults, several := e.Name("defaults"), []string{e.Name("s1"), e.Name("s2"), e.Name("s3")}
	c.Do("defaults", 5, create(newTopic(defaults, -1, -1)))
	e.AwaitTopic(defaults, 1)
	c.Do("several", 4, create(newTopic(several[2], 1, 1), newTopic(several[0], 2, -1), newTopic(several[1], -1, 1)))
	for i, name := range several {
		e.AwaitTopic(name, []int32{2, 1, 1}[i])
	}
	c.Do("several are there", 9, metadataOf(several...), judge.Sorted("Topics"))
	all := validate(newTopic(e.Name("configs"), 1, 1, "segment.bytes", "2097152", "retention.ms", "-1", "cleanup.policy", "compact,delete", "flush.messages", "2"))
	c.Do("with configs", 7, all)
}

// createTopicsNames has names that are right and wrong, and some that collide.
func createTopicsNames(e *judge.Env) {
	c := e.Conn()
	for _, name := range append(badNames, "A.b_c-9", "-", "_", "a.", "...", longName, "__x", "__consumer_offsets_", "__cluster_metadata", "a=b", "a+b", "a\tb", "a~b", "\u007f") {
		c.Do(fmt.Sprintf("name %.12q of %d bytes", name, len(name)), 4, validate(newTopic(name, 1, 1)))
	}
	dotted, bars := e.CreateTopic("x.y.z", 1), e.CreateTopic("x_y", 1)
	for _, name := range []string{"x_y_z", "x.y_z", "x.y.z", "x.y", "x_y", "X.y", "x-y"} {
		c.Do("collision of "+name, 4, validate(newTopic(e.Name(name), 1, 1)))
		c.Do("collision of "+name+", created", 7, create(newTopic(e.Name(name), 0, 1)))
	}
	c.Do("collisions in one request", 4, validate(newTopic(e.Name("p.q"), 1, 1), newTopic(e.Name("p_q"), 1, 1)))
	made := create(newTopic(e.Name("r.s"), 1, 1), newTopic(e.Name("r_s"), 1, 1))
	c.Do("collisions in one request, created", 4, made)
	e.AwaitTopic(e.Name("r.s"), 1)
	c.Do("a collision and an invalid config", 4, validate(newTopic(strings.ReplaceAll(dotted.Name, ".", "_"), 0, 1, "nonsense", "1")))
	c.Do("it exists and has an invalid config", 4, validate(newTopic(bars.Name, 0, 1, "nonsense", "1")))
}

// createTopicsErrors has each error alone, and together, so that their order shows.
func createTopicsErrors(e *judge.Env) {
	c := e.Conn()
	name := e.Name("t")
	for _, v := range []int16{4, 7} {
		do := func(step string, topics ...kmsg.CreateTopicsRequestTopic) {
			c.Do(fmt.Sprintf("v%d %s", v, step), v, validate(topics...))
		}
		for _, n := range []int32{0, -2, -100, 10001, 2147483647} {
			do(fmt.Sprintf("%d partitions", n), newTopic(name, n, 1))
		}
		for _, n := range []int16{0, -2, 2, 3, 32767} {
			do(fmt.Sprintf("replication factor %d", n), newTopic(name, 1, n))
		}
		do("partitions and replication factor", newTopic(name, 0, 0))
		do("partitions and a replication factor that can't be", newTopic(name, 0, 3))
		do("a config and partitions", newTopic(name, 0, 1, "nonsense", "1"))
		do("an invalid name and a config", newTopic("a b", 1, 1, "nonsense", "1"))
		do("twice", newTopic(name, 1, 1), newTopic(name, 2, 1))
		do("twice, with others around", newTopic(e.Name("b"), 1, 0), newTopic(name, 1, 1), newTopic(e.Name("a"), 0, 1), newTopic(name, 2, 1))
		do("three times", newTopic(name, 1, 1), newTopic(name, 2, 1), newTopic(name, 2, 1))
		do("an invalid name twice", newTopic("a b", 1, 1), newTopic("a b", 1, 1))
		do("the cluster's metadata", newTopic("__cluster_metadata", 1, 1), newTopic(name, 0, 1))
		do("the cluster's metadata, with an error", newTopic("__cluster_metadata", 0, 0, "nonsense", "1"))
		do("the cluster's metadata twice", newTopic("__cluster_metadata", 1, 1), newTopic("__cluster_metadata", 1, 1))
		do("10001 partitions in two topics", newTopic(e.Name("a"), 5000, 1), newTopic(e.Name("b"), 5001, 1))
		do("10001 partitions, and a topic twice", newTopic(name, 10001, 1), newTopic(e.Name("b"), 1, 1), newTopic(e.Name("b"), 1, 1))
		do("10001 partitions of a topic that is there twice", newTopic(name, 10001, 1), newTopic(name, 1, 1))
		do("10001 partitions and an invalid name", newTopic("a b", 10001, 1))
		nulls := newTopic(name, 1, 1, "retention.ms", "1", "segment.ms", "1", "cleanup.policy", "delete")
		nulls.Configs[0].Value, nulls.Configs[1].Value = nil, nil
		do("null configs", nulls)
		null := newTopic(name, 1, 1, "nonsense", "1")
		null.Configs[0].Value = nil
		do("a null config of no name", null)
		do("a config twice", newTopic(name, 0, 1, "segment.ms", "nonsense", "segment.ms", "1"))
		do("a config twice, wrong at last", newTopic(name, 0, 1, "segment.ms", "1", "segment.ms", "nonsense"))
		do("two wrong configs", newTopic(name, 1, 1, "segment.ms", "x", "cleanup.policy", "y"))
		do("a wrong and an unknown config", newTopic(name, 1, 1, "segment.ms", "x", "nonsense", "1"))
		do("two unknown configs", newTopic(name, 1, 1, "zzz", "1", "aaa", "1"))
		do("an empty config name", newTopic(name, 1, 1, "", "1"))
		long := strings.Repeat("1:1,", 8191) + "1:1" // 32767 bytes
		do("the longest config", newTopic(name, 0, 1, "leader.replication.throttled.replicas", long))
		do("a config that is no string", newTopic(name, 0, 1, "leader.replication.throttled.replicas", long+" "))
	}
}

// createTopicsAssignments places partitions by hand.
func createTopicsAssignments(e *judge.Env) {
	c := e.Conn()
	name := e.Name("t")
	do := func(step string, t kmsg.CreateTopicsRequestTopic) { c.Do(step, 4, validate(t)) }
	do("one", assigned(name, []int32{1}))
	do("three", assigned(name, []int32{1}, []int32{1}, []int32{1}))
	do("empty list", assigned(name, []int32{}))
	do("unknown broker", assigned(name, []int32{2}))
	do("negative broker", assigned(name, []int32{-1}))
	do("this broker and an unknown one", assigned(name, []int32{1, 2}))
	do("this broker twice", assigned(name, []int32{1, 1}))
	do("unknown broker twice", assigned(name, []int32{5, 5}))
	do("lists of different lengths", assigned(name, []int32{1}, []int32{1, 2}))
	do("an empty list after one that is right", assigned(name, []int32{1}, []int32{}))
	moved := assigned(name, []int32{1}, []int32{1})
	for _, indexes := range [][2]int32{{1, 0}, {0, 0}, {1, 2}, {0, 2}, {-1, 0}, {1, 1}} {
		moved.ReplicaAssignment[0].Partition, moved.ReplicaAssignment[1].Partition = indexes[0], indexes[1]
		do(fmt.Sprintf("partitions %d and %d", indexes[0], indexes[1]), moved)
	}
	counted := assigned(name, []int32{1})
	for _, x := range []struct {
		partitions int32
		replicas   int16
	}{{1, -1}, {-1, 1}, {1, 1}, {0, 0}, {5, 5}} {
		counted.NumPartitions, counted.ReplicationFactor = x.partitions, x.replicas
		do(fmt.Sprintf("with %d partitions and replication factor %d", x.partitions, x.replicas), counted)
	}
	c.Do("created", 7, create(assigned(name, []int32{1}, []int32{1})))
	e.AwaitTopic(name, 2)
	c.Do("it is there", 12, metadataOf(name))
}

// deleteTopics asks every version to delete what is there and what is not.
func deleteTopics(e *judge.Env) {
	c := e.Conn()
	names := func(names ...string) *kmsg.DeleteTopicsRequest {
		req := kmsg.NewPtrDeleteTopicsRequest()
		req.TopicNames, req.TimeoutMillis = names, 30000
		for _, name := range names {
			t := kmsg.NewDeleteTopicsRequestTopic()
			t.Topic = &name
			req.Topics = append(req.Topics, t)
		}
		return req
	}
	sorted := judge.Sorted("Topics")
	none := e.Name("none")
	for v := int16(1); v <= 6; v++ {
		do := func(step string, req *kmsg.DeleteTopicsRequest) { c.Do(fmt.Sprintf("v%d %s", v, step), v, req, sorted) }
		a, b := e.CreateTopic(fmt.Sprintf("a%d", v), 1), e.CreateTopic(fmt.Sprintf("b%d", v), 3)
		do("nothing", names())
		do("unknown", names(none))
		do("one of two", names(a.Name, none))
		e.AwaitNoTopic(a.Name)
		do("again", names(a.Name))
		do("twice", names(b.Name, b.Name))
		do("twice, and an unknown one twice", names(b.Name, none, none, b.Name))
		do("invalid names", names("", "a b", ".", "__cluster_metadata"))
		do("the other", names(b.Name))
		e.AwaitNoTopic(b.Name)
		c.Do(fmt.Sprintf("v%d they are gone", v), 9, metadataOf(a.Name, b.Name), sorted)
		again := e.CreateTopic(fmt.Sprintf("a%d", v), 2)
		c.Do(fmt.Sprintf("v%d one is there again", v), 12, metadataOf(again.Name))
		c.Do(fmt.Sprintf("v%d and empty", v), 7, offsetsOf(again, at(0, -1), at(1, -1)), anyOrder)
		if v < 6 {
			continue
		}
		d, f := e.CreateTopic("d", 1), e.CreateTopic("f", 1)
		topics := func(topics ...kmsg.DeleteTopicsRequestTopic) *kmsg.DeleteTopicsRequest {
			req := kmsg.NewPtrDeleteTopicsRequest()
			req.Topics, req.TimeoutMillis = topics, 30000
			return req
		}
		byID := func(id [16]byte) kmsg.DeleteTopicsRequestTopic { return kmsg.DeleteTopicsRequestTopic{TopicID: id} }
		byName := func(name string) kmsg.DeleteTopicsRequestTopic {
			return kmsg.DeleteTopicsRequestTopic{Topic: &name}
		}
		both := func(name string, id [16]byte) kmsg.DeleteTopicsRequestTopic {
			return kmsg.DeleteTopicsRequestTopic{Topic: &name, TopicID: id}
		}
		do("unknown id", topics(byID(unknownID)))
		do("neither", topics(byID([16]byte{})))
		do("neither, twice", topics(byID([16]byte{}), byID([16]byte{})))
		do("both", topics(both(d.Name, d.ID)))
		do("both, of two", topics(both(d.Name, f.ID)))
		do("both, and one of them", topics(both(d.Name, d.ID), byName(none)))
		do("an id twice", topics(byID(d.ID), byID(d.ID)))
		do("an unknown id twice", topics(byID(unknownID), byID(unknownID)))
		do("a name and its id", topics(byName(d.Name), byID(d.ID)))
		do("a name twice and its id", topics(byName(d.Name), byName(d.Name), byID(d.ID)))
		do("a name and its id twice", topics(byName(d.Name), byID(d.ID), byID(d.ID)))
		c.Do("both are still there", 9, metadataOf(d.Name, f.Name), sorted)
		do("by id", topics(byID(d.ID)))
		e.AwaitNoTopic(d.Name)
		do("by id, again", topics(byID(d.ID)))
		do("a name that went, and an id", topics(byName(d.Name), byID(f.ID)))
		e.AwaitNoTopic(f.Name)
	}
}
