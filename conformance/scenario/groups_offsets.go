package scenario

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.RegisterOwn("groups-offset-commit", groupsBroker, groupsOffsetCommit)
	_ = judge.RegisterOwn("groups-offset-commit-states", groupsBroker, groupsOffsetCommitStates)
	_ = judge.RegisterOwn("groups-offset-fetch", groupsBroker, groupsOffsetFetch)
	_ = judge.RegisterOwn("groups-offsets-of-deleted-topics", groupsBroker, groupsDeletedTopics)
)

// commit is an OffsetCommit of one partition by nobody's member.
func commit(group, topic string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	return commitAs(group, "", -1, topic, partition, offset)
}

// commitAs is one by a member.
func commitAs(group, member string, generation int32, topic string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	return commitOf(group, member, generation, judge.Topic{Name: topic}, offsetOf(partition, offset, "note"))
}

func commitOf(group, member string, generation int32, topic judge.Topic, offsets ...kmsg.OffsetCommitRequestTopicPartition) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	return andCommit(req, topic, offsets...)
}

// andCommit adds partitions of another topic.
func andCommit(req *kmsg.OffsetCommitRequest, topic judge.Topic, offsets ...kmsg.OffsetCommitRequestTopicPartition) *kmsg.OffsetCommitRequest {
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID, t.Partitions = topic.Name, topic.ID, offsets
	req.Topics = append(req.Topics, t)
	return req
}

func offsetOf(partition int32, offset int64, metadata string) kmsg.OffsetCommitRequestTopicPartition {
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.Metadata, p.LeaderEpoch = partition, offset, &metadata, 3
	return p
}

// committed asks for offsets of a group: before v8 of its one, from v8 on of a list. topic nil asks for all.
func committed(group string, topic *judge.Topic, partitions ...int32) *kmsg.OffsetFetchRequest {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	if topic != nil {
		t := kmsg.NewOffsetFetchRequestTopic()
		t.Topic, t.Partitions = topic.Name, partitions
		req.Topics = []kmsg.OffsetFetchRequestTopic{t}
	}
	return andCommitted(req, group, topic, partitions...)
}

// andCommitted adds another group, for v8 and later.
func andCommitted(req *kmsg.OffsetFetchRequest, group string, topic *judge.Topic, partitions ...int32) *kmsg.OffsetFetchRequest {
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.MemberEpoch = group, -1
	if topic != nil {
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.TopicID, t.Partitions = topic.Name, topic.ID, partitions
		g.Topics = []kmsg.OffsetFetchRequestGroupTopic{t}
	}
	req.Groups = append(req.Groups, g)
	return req
}

// allOffsets is for responses in the order of Kafka's hash maps.
var allOffsets = judge.Sorted("Topics", "Partitions")

// groupsOffsetCommit asks each version of OffsetCommit what does not depend on a group's state.
func groupsOffsetCommit(e *judge.Env) {
	c := e.Conn()
	topic, other := e.CreateTopic("topic", 2), e.CreateTopic("other", 1)
	unknown := judge.Topic{Name: e.Name("unknown"), ID: unknownID}
	for v := int16(2); v <= 10; v++ {
		g := named(e, fmt.Sprintf("v%d", v))
		do := func(s string, req *kmsg.OffsetCommitRequest) {
			c.Do(fmt.Sprintf("v%d: %s", v, s), v, req, allOffsets)
		}
		ok := offsetOf(0, 5, "note")
		do("nothing", commitOf(g, "", -1, judge.Topic{}, ok))
		none := commitOf(g, "", -1, topic)
		do("no partitions", none)
		none.Topics = nil
		do("no topics", none)
		none.Generation = 5
		do("no topics, generation 5", none)
		do("unknown topic", commitOf(g, "", -1, unknown, ok))
		do("unknown topic, generation 5", commitOf(g, "", 5, unknown, ok))
		do("unknown partitions", commitOf(g, "", -1, topic, offsetOf(2, 1, ""), offsetOf(-1, 1, "")))
		c.Do(fmt.Sprintf("v%d: no group yet", v), 6, describeGroups(g))
		do("no group, generation 0", commitOf(g, "", 0, topic, ok))
		do("no group, generation 5 and member", commitOf(g, "somebody", 5, topic, ok))
		do("no group, member", commitOf(g+"-member", "somebody", -1, topic, ok))
		do("no group id", commitOf("", "", -1, topic, ok))
		do("no group, some good", andCommit(andCommit(commitOf(g, "", 5, topic, ok, offsetOf(7, 1, "")), unknown, ok), other, ok))
		do("simple", commitOf(g, "", -1, topic, ok))
		c.Do(fmt.Sprintf("v%d: the group", v), 6, describeGroups(g))
		do("generation -2", commitOf(g, "", -2, topic, ok))
		do("generation 0 of a simple group", commitOf(g, "", 0, topic, ok))
		do("member of a simple group", commitOf(g, "somebody", -1, topic, ok))
		do("member and generation of a simple group", commitOf(g, "somebody", 1, topic, ok))
		noMetadata := offsetOf(1, 6, "")
		noMetadata.Metadata = nil
		do("some good", andCommit(andCommit(commitOf(g, "", -1, topic, offsetOf(0, 7, "x"), offsetOf(7, 1, ""), noMetadata), unknown, ok), other, offsetOf(0, 9, "é")))
		long := strings.Repeat("x", 4096)
		do("metadata of 4096 and 4097 characters", commitOf(g, "", -1, topic, offsetOf(0, 11, long), offsetOf(1, 11, long+"x")))
		do("metadata of 4096 characters, 8192 bytes", commitOf(g, "", -1, topic, offsetOf(1, 12, strings.Repeat("é", 4096))))
		c.Do(fmt.Sprintf("v%d: fetched", v), 8, committed(g, nil), allOffsets)
		do("negative offsets", commitOf(g, "", -1, topic, offsetOf(0, -1, "minus one"), offsetOf(1, -7, "")))
		do("one partition twice", commitOf(g, "", -1, topic, offsetOf(0, 21, "first"), offsetOf(0, 20, "second")))
		twice := andCommit(commitOf(g, "", -1, topic, offsetOf(0, 31, "first")), topic, offsetOf(0, 30, "second"))
		do("one topic twice", twice)
		noEpoch := offsetOf(1, 40, "no epoch")
		noEpoch.LeaderEpoch = -1
		minusTwo := offsetOf(0, 1<<62, "epoch -2")
		minusTwo.LeaderEpoch = -2
		do("leader epochs", commitOf(g, "", -1, topic, noEpoch, minusTwo))
		c.Do(fmt.Sprintf("v%d: fetched at last", v), 8, committed(g, nil), allOffsets)
		if v <= 4 {
			kept := commitOf(g, "", -1, topic, offsetOf(0, 50, "kept"))
			kept.RetentionTimeMillis = 3600000
			do("with a retention time", kept)
		}
		if v >= 7 {
			static := commitOf(g, "", -1, topic, ok)
			static.InstanceID = kmsg.StringPtr("one")
			do("an instance of a simple group", static)
			static.Generation = 3
			do("an instance and generation of a simple group", static)
		}
	}
}

// groupsOffsetCommitStates asks each version of OffsetCommit in each state of a group.
func groupsOffsetCommitStates(e *judge.Env) {
	c := e.Conn()
	topic := e.CreateTopic("topic", 1)
	for v := int16(2); v <= 10; v++ {
		n := int64(0)
		states := func(group, when, member string, generation int32) {
			ask := func(s, member string, generation int32, instance ...string) {
				n++
				req := commitOf(group, member, generation, topic, offsetOf(0, n, s))
				if len(instance) > 0 {
					req.InstanceID = &instance[0]
				}
				c.Do(fmt.Sprintf("v%d: %s, %s", v, when, s), v, req)
			}
			ask("member", member, generation)
			ask("nobody", "", -1)
			ask("member without generation", member, -1)
			ask("no member", "", generation)
			ask("unknown member", "somebody", generation)
			ask("generation +1", member, generation+1)
			ask("generation -1", member, generation-1)
			if v >= 7 {
				ask("an unknown instance", member, generation, "one")
				ask("nothing but an unknown instance", "", -1, "one")
			}
			c.Do(fmt.Sprintf("v%d: fetched, %s", v, when), 8, committed(group, nil), allOffsets)
		}
		throughStates(e, v, states)
	}
}

// throughStates brings a group of its own into each state that lasts, for one version of a request, and calls ask in each.
func throughStates(e *judge.Env, v int16, ask func(group, when, member string, generation int32)) {
	group := named(e, fmt.Sprintf("v%d", v))
	member, generation := completing(e, group)
	ask(group, "completing", member, generation)
	e.Quiet(2, syncGroup(group, member, generation, member, "all"))
	ask(group, "stable", member, generation)
	second := e.ConnAs("second")
	other := second.Park(fmt.Sprintf("v%d: another member joins", v), 3, join(group, ""))
	awaitState(e, group, "PreparingRebalance")
	ask(group, "preparing", member, generation)
	e.Quiet(2, leave(group, leaver{member: member}))
	r := joined(e, other.Done(sortedMembers))
	second.Do(fmt.Sprintf("v%d: it leaves", v), 2, leave(group, leaver{member: r.MemberID}))
	ask(group, "empty", member, generation)
}

// groupsOffsetFetch asks each version of OffsetFetch.
func groupsOffsetFetch(e *judge.Env) {
	c := e.Conn()
	topic, other := e.CreateTopic("topic", 3), e.CreateTopic("other", 1)
	unknown := judge.Topic{Name: e.Name("unknown"), ID: unknownID}
	g, second, missing := named(e, "group"), named(e, "second"), named(e, "missing")
	for v := int16(1); v <= 10; v++ {
		do := func(s string, req *kmsg.OffsetFetchRequest) {
			c.Do(fmt.Sprintf("v%d before any commit: %s", v, s), v, req, allOffsets)
		}
		do("one", committed(g, &topic, 0))
		do("all", committed(g, nil))
	}
	plain := offsetOf(1, 8, "")
	plain.Metadata, plain.LeaderEpoch = nil, -1
	e.Quiet(9, andCommit(commitOf(g, "", -1, topic, offsetOf(0, 5, "note"), plain), other, offsetOf(0, 7, "other")))
	e.Quiet(9, commitOf(second, "", -1, other, offsetOf(0, 9, "second")))
	for v := int16(1); v <= 10; v++ {
		do := func(s string, req *kmsg.OffsetFetchRequest) {
			c.Do(fmt.Sprintf("v%d: %s", v, s), v, req, allOffsets)
		}
		do("one", committed(g, &topic, 0))
		do("some", committed(g, &topic, 2, 0, 1))
		do("unknown partitions", committed(g, &topic, 3, -1))
		do("the same twice", committed(g, &topic, 0, 0))
		do("no partitions", committed(g, &topic))
		do("unknown topic", committed(g, &unknown, 0, 5))
		do("no topic", committed(g, &judge.Topic{}, 0))
		do("all", committed(g, nil))
		none := committed(g, nil)
		none.Topics, none.Groups[0].Topics = []kmsg.OffsetFetchRequestTopic{}, []kmsg.OffsetFetchRequestGroupTopic{}
		do("no topics", none)
		do("no group", committed(missing, &topic, 0))
		do("no group, all", committed(missing, nil))
		do("no group id", committed("", &topic, 0))
		do("no group id, all", committed("", nil))
		stable := committed(g, &topic, 0)
		stable.RequireStable = true
		do("require stable", stable)
		stable = committed(g, nil)
		stable.RequireStable = true
		do("require stable, all", stable)
		if v < 8 {
			continue
		}
		many := committed(g, &topic, 0)
		andCommitted(many, second, nil)
		andCommitted(many, missing, &topic, 0)
		andCommitted(many, second, &unknown, 1)
		c.Do(fmt.Sprintf("v%d: many groups", v), v, many, judge.Sorted("Groups", "Topics", "Partitions"))
		again := committed(g, &topic, 0)
		andCommitted(again, g, &other, 0)
		c.Do(fmt.Sprintf("v%d: one group twice", v), v, again, judge.Sorted("Groups", "Topics", "Partitions"))
		nobody := committed(g, nil)
		nobody.Groups = nil
		do("no groups", nobody)
		two := committed(g, &topic, 0)
		t := kmsg.NewOffsetFetchRequestGroupTopic()
		t.Topic, t.TopicID, t.Partitions = other.Name, other.ID, []int32{0}
		two.Groups[0].Topics = append(two.Groups[0].Topics, t)
		t.Topic, t.TopicID, t.Partitions = unknown.Name, unknown.ID, []int32{0}
		two.Groups[0].Topics = append(two.Groups[0].Topics, t, two.Groups[0].Topics[0])
		do("many topics", two)
		if v >= 9 {
			for _, epoch := range []int32{-1, 0, 7} {
				member := committed(g, &topic, 0)
				member.Groups[0].MemberID, member.Groups[0].MemberEpoch = kmsg.StringPtr("somebody"), epoch
				do(fmt.Sprintf("member with epoch %d", epoch), member)
				member = committed(g, &topic, 0)
				member.Groups[0].MemberEpoch = epoch
				do(fmt.Sprintf("no member with epoch %d", epoch), member)
				member = committed(missing, &topic, 0)
				member.Groups[0].MemberID, member.Groups[0].MemberEpoch = kmsg.StringPtr("somebody"), epoch
				do(fmt.Sprintf("no group, member with epoch %d", epoch), member)
			}
		}
	}
}

// groupsDeletedTopics: offsets go with their topic.
func groupsDeletedTopics(e *judge.Env) {
	c := e.Conn()
	topic, kept := e.CreateTopic("topic", 1), e.CreateTopic("kept", 1)
	g := named(e, "group")
	c.Do("commit", 10, andCommit(commitOf(g, "", -1, topic, offsetOf(0, 5, "note")), kept, offsetOf(0, 6, "kept")), allOffsets)
	c.Do("fetched", 10, committed(g, &topic, 0))
	del := kmsg.NewPtrDeleteTopicsRequest()
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.Topic, del.TimeoutMillis = &topic.Name, 30000
	del.Topics = append(del.Topics, t)
	e.Quiet(6, del)
	e.AwaitNoTopic(topic.Name)
	e.Await("the offsets to go", func() bool {
		return len(e.Quiet(8, committed(g, nil)).(*kmsg.OffsetFetchResponse).Groups[0].Topics) == 1
	})
	for _, v := range []int16{7, 9, 10} {
		c.Do(fmt.Sprintf("v%d fetched after it was deleted", v), v, committed(g, &topic, 0))
		c.Do(fmt.Sprintf("v%d all after it was deleted", v), v, committed(g, nil), allOffsets)
		c.Do(fmt.Sprintf("v%d commit after it was deleted", min(v, 10)), v, commitOf(g, "", -1, topic, offsetOf(0, 7, "late")))
	}
	again := e.CreateTopic("topic", 1)
	for _, v := range []int16{7, 9, 10} {
		c.Do(fmt.Sprintf("v%d fetched after it was created again", v), v, committed(g, &again, 0))
	}
	c.Do("fetched by its older id", 10, committed(g, &topic, 0))
	c.Do("commit by its older id", 10, commitOf(g, "", -1, topic, offsetOf(0, 8, "older")))
	c.Do("commit by its new id", 10, commitOf(g, "", -1, again, offsetOf(0, 9, "newer")))
	c.Do("fetched by its new id", 10, committed(g, &again, 0))
	// A group that has nothing but offsets of a topic that goes.
	lost := named(e, "lost")
	e.Quiet(9, commitOf(lost, "", -1, again, offsetOf(0, 1, "")))
	e.Quiet(6, del)
	e.AwaitNoTopic(topic.Name)
	e.Await("the offsets to go", func() bool {
		return len(e.Quiet(8, committed(lost, nil)).(*kmsg.OffsetFetchResponse).Groups[0].Topics) == 0
	})
	c.Do("a group without offsets", 6, describeGroups(lost))
}
