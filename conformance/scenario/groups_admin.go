package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.RegisterOwn("groups-list", groupsBroker, groupsList)
	_ = judge.RegisterOwn("groups-describe", groupsBroker, groupsDescribe)
	_ = judge.RegisterOwn("groups-delete", groupsBroker, groupsDelete)
	_ = judge.RegisterOwn("groups-offset-delete", groupsBroker, groupsOffsetDelete)
)

// sortedGroups is for responses in the order of Kafka's hash maps.
var sortedGroups = judge.Sorted("Groups")

// listGroups picks by states and types, nil for all.
func listGroups(states, types []string) *kmsg.ListGroupsRequest {
	req := kmsg.NewPtrListGroupsRequest()
	req.StatesFilter, req.TypesFilter = states, types
	return req
}

// groupsList asks each version of ListGroups for groups in every state.
func groupsList(e *judge.Env) {
	c := e.Conn()
	groupsReady(e, "anything")
	for v := range int16(6) {
		c.Do(fmt.Sprintf("v%d none", v), v, listGroups(nil, nil))
	}
	topic := e.CreateTopic("topic", 1)
	e.Quiet(9, commit(named(e, "simple"), topic.Name, 0, 1))
	emptied(e, named(e, "empty"))
	completing(e, named(e, "completing"))
	stable(e, named(e, "stable"))
	connect := join(named(e, "connect"), "")
	connect.ProtocolType = "connect"
	e.Quiet(3, connect)
	_, _, other := preparing(e, "preparing", named(e, "preparing"))
	c.Do("a group of a pending member alone", 4, join(named(e, "pending"), ""))
	awaitState(e, e.Name("pending"), "Empty")
	c.Do("a group whose offsets are all deleted: commit", 9, commit(named(e, "bare"), topic.Name, 0, 1))
	e.Quiet(0, offsetDelete(e.Name("bare"), topic, 0))
	for v := range int16(6) {
		c.Do(fmt.Sprintf("v%d all", v), v, listGroups(nil, nil), sortedGroups)
		if v < 4 {
			continue
		}
		for i, states := range [][]string{{"Stable"}, {"stable", "EMPTY"}, {" Stable "}, {"PreparingRebalance", "CompletingRebalance"}, {"Dead"}, {"Unknown"}, {"nonsense"},
			{"nonsense", "Stable"}, {""}, {"Assigning", "Reconciling"}, {"preparing_rebalance"}, {}} {
			c.Do(fmt.Sprintf("v%d states %d %q", v, i, states), v, listGroups(states, nil), sortedGroups)
		}
		if v < 5 {
			continue
		}
		for i, types := range [][]string{{"classic"}, {"Classic"}, {"CLASSIC", "consumer"}, {"consumer"}, {"share"}, {"streams"}, {"nonsense"}, {"nonsense", "classic"}, {""}, {" classic"}, {"unknown"}} {
			c.Do(fmt.Sprintf("v%d types %d %q", v, i, types), v, listGroups(nil, types), sortedGroups)
		}
		c.Do(fmt.Sprintf("v%d a state and a type", v), v, listGroups([]string{"Empty"}, []string{"classic"}), sortedGroups)
		c.Do(fmt.Sprintf("v%d a state and another type", v), v, listGroups([]string{"Empty"}, []string{"consumer"}), sortedGroups)
	}
	other.Parked()
}

// groupsDescribe asks each version of DescribeGroups for groups in every state.
func groupsDescribe(e *judge.Env) {
	c := e.Conn()
	topic := e.CreateTopic("topic", 1)
	simple, empty, completes, stays, pending, missing := named(e, "simple"), named(e, "empty"), named(e, "completing"), named(e, "stable"), named(e, "pending"), named(e, "missing")
	e.Quiet(9, commit(simple, topic.Name, 0, 1))
	emptied(e, empty)
	completing(e, completes)
	stable(e, stays)
	c.Do("a pending member", 4, join(pending, ""))
	awaitState(e, pending, "Empty")
	static := named(e, "static")
	r := joined(e, e.Quiet(5, joinStatic(static, "one", "", protocol{"range", "\x00\xff"})))
	e.Quiet(2, syncGroup(static, r.MemberID, r.Generation, r.MemberID, "\x00\xfe"))
	prepares := named(e, "preparing")
	_, _, other := preparing(e, "preparing", prepares)
	anonymous := named(e, "anonymous")
	p := e.ConnAs("").Park("a client without a name joins", 3, join(anonymous, ""))
	p.Done()
	for v := range int16(7) {
		all := describeGroups(simple, empty, completes, stays, static, prepares, pending, anonymous)
		c.Do(fmt.Sprintf("v%d all", v), v, all, judge.Sorted("Groups", "Members"))
		c.Do(fmt.Sprintf("v%d missing", v), v, describeGroups(missing))
		c.Do(fmt.Sprintf("v%d no name", v), v, describeGroups(""))
		c.Do(fmt.Sprintf("v%d some missing, some twice", v), v, describeGroups(stays, missing, stays, "", missing), judge.Sorted("Groups"))
		c.Do(fmt.Sprintf("v%d none", v), v, describeGroups())
		if v >= 3 {
			operations := describeGroups(stays, missing)
			operations.IncludeAuthorizedOperations = true
			c.Do(fmt.Sprintf("v%d with operations", v), v, operations, judge.Sorted("Groups"))
		}
	}
	other.Parked()
}

func deleteGroups(groups ...string) *kmsg.DeleteGroupsRequest {
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Groups = groups
	return req
}

// groupsDelete asks each version of DeleteGroups for groups in every state.
func groupsDelete(e *judge.Env) {
	c := e.Conn()
	topic := e.CreateTopic("topic", 1)
	for v := range int16(4) {
		g := func(label string) string { return named(e, fmt.Sprintf("v%d-%s", v, label)) }
		do := func(s string, groups ...string) {
			c.Do(fmt.Sprintf("v%d: %s", v, s), v, deleteGroups(groups...), sortedGroups)
		}
		do("missing", g("missing"))
		do("no name", "")
		do("none")
		simple := g("simple")
		e.Quiet(9, commit(simple, topic.Name, 0, 1))
		do("simple", simple)
		c.Do(fmt.Sprintf("v%d: its offsets are gone", v), 8, committed(simple, nil))
		c.Do(fmt.Sprintf("v%d: it is gone", v), 6, describeGroups(simple))
		do("simple, again", simple)
		empty := g("empty")
		emptied(e, empty)
		do("empty", empty)
		completes, stays := g("completing"), g("stable")
		completing(e, completes)
		member, generation := stable(e, stays)
		e.Quiet(9, commitAs(stays, member, generation, topic.Name, 0, 1))
		do("completing", completes)
		do("stable", stays)
		pending := g("pending")
		c.Do(fmt.Sprintf("v%d: a pending member", v), 4, join(pending, ""))
		awaitState(e, pending, "Empty")
		do("pending", pending)
		prepares := g("preparing")
		member, _, other := preparing(e, fmt.Sprintf("v%d", v), prepares)
		do("preparing", prepares)
		e.Quiet(2, leave(prepares, leaver{member: member}))
		other.Done(sortedMembers)
		e.Quiet(9, commit(simple, topic.Name, 0, 1))
		do("many", simple, stays, simple, prepares, "nothing", "")
		c.Do(fmt.Sprintf("v%d: the stable one is as it was", v), 6, describeGroups(stays))
	}
}

func offsetDelete(group string, topic judge.Topic, partitions ...int32) *kmsg.OffsetDeleteRequest {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	return andDelete(req, topic, partitions...)
}

func andDelete(req *kmsg.OffsetDeleteRequest, topic judge.Topic, partitions ...int32) *kmsg.OffsetDeleteRequest {
	t := kmsg.NewOffsetDeleteRequestTopic()
	t.Topic = topic.Name
	for _, p := range partitions {
		partition := kmsg.NewOffsetDeleteRequestTopicPartition()
		partition.Partition = p
		t.Partitions = append(t.Partitions, partition)
	}
	req.Topics = append(req.Topics, t)
	return req
}

// subscription is what a consumer says of itself in a JoinGroup.
func subscription(topics ...string) string {
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = topics
	return string(meta.AppendTo(nil))
}

// groupsOffsetDelete asks OffsetDelete for groups in every state, subscribed to the topic and not.
func groupsOffsetDelete(e *judge.Env) {
	c := e.Conn()
	topic, other := e.CreateTopic("topic", 2), e.CreateTopic("other", 1)
	unknown := judge.Topic{Name: e.Name("unknown")}
	n := 0
	do := func(s string, req *kmsg.OffsetDeleteRequest) {
		n++
		c.Do(fmt.Sprintf("%d: %s", n, s), 0, req, allOffsets)
	}
	fetched := func(when, group string) {
		c.Do("fetched: "+when, 8, committed(group, nil), allOffsets)
	}
	commits := func(group, member string, generation int32) {
		e.Quiet(9, andCommit(commitOf(group, member, generation, topic, offsetOf(0, 5, ""), offsetOf(1, 6, "")), other, offsetOf(0, 7, "")))
	}
	do("no group id", offsetDelete("", topic, 0))
	missing := named(e, "missing")
	do("no group", offsetDelete(missing, topic, 0))
	do("no group, no topics", &kmsg.OffsetDeleteRequest{Group: missing})
	do("no group, unknown topic", offsetDelete(missing, unknown, 0))
	simple := named(e, "simple")
	commits(simple, "", -1)
	do("simple", offsetDelete(simple, topic, 0))
	fetched("simple", simple)
	do("again", offsetDelete(simple, topic, 0))
	do("unknown partition", offsetDelete(simple, topic, 2, -1, 1))
	do("unknown topic", andDelete(offsetDelete(simple, unknown, 0), other, 0))
	fetched("simple, nothing left", simple)
	c.Do("described with nothing left", 6, describeGroups(simple))
	do("one partition twice", offsetDelete(simple, topic, 0, 0))
	do("one topic twice", andDelete(offsetDelete(simple, topic, 0), topic, 1))
	do("no partitions", offsetDelete(simple, topic))
	do("no topics", &kmsg.OffsetDeleteRequest{Group: simple})
	empty := named(e, "empty")
	emptied(e, empty)
	commits(empty, "", -1)
	do("empty", andDelete(offsetDelete(empty, topic, 0), other, 0))
	fetched("empty", empty)

	// Members that say what they subscribe to.
	for _, state := range []string{"completing", "stable", "preparing"} {
		group := named(e, "subscribed-"+state)
		member, generation := stable(e, group, protocol{"range", subscription(topic.Name)})
		commits(group, member, generation)
		second := e.ConnAs("second")
		var parked *judge.Pending
		switch state {
		case "completing":
			e.Quiet(3, join(group, member, protocol{"range", subscription(topic.Name)}))
		case "preparing":
			parked = second.Park(state+": another joins", 3, join(group, "", protocol{"range", subscription(other.Name)}))
			awaitState(e, group, "PreparingRebalance")
		}
		do("subscribed while "+state, andDelete(offsetDelete(group, topic, 0), other, 0))
		do("unknown ones while "+state, andDelete(offsetDelete(group, topic, 9), unknown, 0))
		fetched(state, group)
		if parked != nil {
			e.Quiet(2, leave(group, leaver{member: member}))
			parked.Done(sortedMembers)
			do("when the subscriber left", andDelete(offsetDelete(group, topic, 1), other, 0))
		}
	}
	// Metadata that is not a consumer's, and another protocol type.
	garbled := named(e, "garbled")
	member, generation := stable(e, garbled)
	commits(garbled, member, generation)
	do("metadata that is not a consumer's", offsetDelete(garbled, topic, 0))
	nothing := named(e, "no-metadata")
	member, generation = stable(e, nothing, protocol{"range", ""})
	commits(nothing, member, generation)
	do("no metadata", offsetDelete(nothing, topic, 0))
	connect := named(e, "connect")
	req := join(connect, "", protocol{"range", "x"})
	req.ProtocolType = "connect"
	r := joined(e, e.Quiet(3, req))
	commits(connect, r.MemberID, r.Generation)
	do("another protocol type", offsetDelete(connect, topic, 0))
	do("another protocol type, unknown topic", offsetDelete(connect, unknown, 0))
	e.Quiet(2, leave(connect, leaver{member: r.MemberID}))
	do("another protocol type, empty", offsetDelete(connect, topic, 0))
}
