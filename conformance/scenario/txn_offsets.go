package scenario

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.RegisterOwn("txn-offset-commit", groupsBroker, txnOffsetCommit)
	_ = judge.RegisterOwn("txn-offset-commit-states", groupsBroker, txnOffsetCommitStates)
	_ = judge.RegisterOwn("txn-staged-offsets", groupsBroker, txnStagedOffsets)
)

// stableOffsets asks for offsets that no transaction is about to change.
func stableOffsets(group string, topic *judge.Topic, partitions ...int32) *kmsg.OffsetFetchRequest {
	req := committed(group, topic, partitions...)
	req.RequireStable = true
	return req
}

// txnOffsetCommit asks each version of TxnOffsetCommit what does not depend on a group's members.
func txnOffsetCommit(e *judge.Env) {
	awaitTransactions(e)
	c := e.Conn()
	topic, other := e.CreateTopic("topic", 2), e.CreateTopic("other", 1)
	unknown := judge.Topic{Name: e.Name("unknown"), ID: unknownID}
	for v := range int16(7) {
		g := named(e, fmt.Sprintf("v%d", v))
		p := newTxn(e, fmt.Sprintf("v%d", v))
		do := func(s string, req *kmsg.TxnOffsetCommitRequest) {
			c.Do(fmt.Sprintf("v%d %s", v, s), v, req, allOffsets)
		}
		look := func(s string) {
			c.Do(fmt.Sprintf("v%d fetched: %s", v, s), 8, committed(g, nil), allOffsets)
			c.Do(fmt.Sprintf("v%d fetched stable: %s", v, s), 8, stableOffsets(g, nil), allOffsets)
			c.Do(fmt.Sprintf("v%d described: %s", v, s), 0, describeTxn(p.name), judge.Hidden("Topics"))
		}
		ok := offsetOf(0, 5, "note")
		do("empty transactional id", p.of("").commitOffsets(g, topic, ok))
		do("unknown transactional id", p.of(p.name+"-unknown").commitOffsets(g, topic, ok))
		do("another producer id", p.as(anotherID).commitOffsets(g, topic, ok))
		do("epoch +1", p.later(1).commitOffsets(g, topic, ok))
		do("epoch -1", p.later(-1).commitOffsets(g, topic, ok))
		do("empty group", p.commitOffsets("", topic, ok))
		do("no topics", &kmsg.TxnOffsetCommitRequest{TransactionalID: p.name, ProducerID: p.id, ProducerEpoch: p.epoch, Group: g, Generation: -1})
		do("unknown topic", p.commitOffsets(g, unknown, ok))
		do("unknown partitions", p.commitOffsets(g, topic, offsetOf(2, 1, ""), offsetOf(-1, 1, "")))
		look("nothing yet")
		do("not added", p.commitOffsets(g, topic, ok))
		look("not added")
		e.Quiet(3, p.addGroup(g))
		do("added", p.commitOffsets(g, topic, ok))
		look("added")
		do("again", p.commitOffsets(g, topic, offsetOf(0, 6, "again")))
		noMetadata := offsetOf(1, 7, "")
		noMetadata.Metadata = nil
		do("some good", andOffsets(andOffsets(p.commitOffsets(g, topic, noMetadata, offsetOf(7, 1, "")), unknown, ok), other, offsetOf(0, 9, "é")))
		long := strings.Repeat("x", 4096)
		do("metadata of 4096 and 4097 characters", p.commitOffsets(g, topic, offsetOf(0, 11, long), offsetOf(1, 11, long+"x")))
		do("negative offset", p.commitOffsets(g, other, offsetOf(0, -1, "minus one")))
		do("one partition twice", p.commitOffsets(g, topic, offsetOf(0, 21, "first"), offsetOf(0, 20, "second")))
		if v >= 3 {
			req := p.commitOffsets(g, topic, offsetOf(0, 30, "generation 3"))
			req.Generation = 3
			do("a generation of no group", req)
			req = p.commitOffsets(g, topic, offsetOf(0, 31, "member"))
			req.MemberID = "somebody"
			do("a member of no group", req)
			req = p.commitOffsets(g, topic, offsetOf(0, 32, "instance"))
			req.InstanceID = kmsg.StringPtr("one")
			do("an instance of no group", req)
		}
		look("before the end")
		before := p
		p = p.doEnd(e, c, fmt.Sprintf("v%d committed", v), newEnd, true)
		look("committed")
		do("after its end, the epoch before", before.commitOffsets(g, topic, offsetOf(0, 40, "late")))
		look("after its end, the epoch before")
		do("after its end", p.commitOffsets(g, topic, offsetOf(0, 41, "not added")))
		look("after its end")
		p = again(e, p)
		e.Quiet(3, p.addGroup(g))
		do("to be aborted", p.commitOffsets(g, topic, offsetOf(0, 50, "aborted")))
		p = p.doEnd(e, c, fmt.Sprintf("v%d aborted", v), oldEnd, false)
		look("aborted")
	}
}

// txnOffsetCommitStates asks the versions that have a member in each state of a group.
func txnOffsetCommitStates(e *judge.Env) {
	awaitTransactions(e)
	c := e.Conn()
	topic := e.CreateTopic("topic", 1)
	for v := int16(2); v < 7; v++ {
		n := int64(0)
		p := newTxn(e, fmt.Sprintf("v%d", v))
		states := func(group, when, member string, generation int32) {
			e.Quiet(3, p.addGroup(group))
			ask := func(s, member string, generation int32, instance ...string) {
				n++
				req := p.commitOffsets(group, topic, offsetOf(0, n, s))
				req.MemberID, req.Generation = member, generation
				if len(instance) > 0 {
					req.InstanceID = &instance[0]
				}
				c.Do(fmt.Sprintf("v%d: %s, %s", v, when, s), v, req)
			}
			ask("nobody", "", -1)
			if v >= 3 {
				ask("member", member, generation)
				ask("member without generation", member, -1)
				ask("no member", "", generation)
				ask("unknown member", "somebody", generation)
				ask("generation +1", member, generation+1)
				ask("generation -1", member, generation-1)
				ask("an unknown instance", member, generation, "one")
				ask("nothing but an unknown instance", "", -1, "one")
			}
			p = p.doEnd(e, c, fmt.Sprintf("v%d: %s, committed", v, when), newEnd, true)
			c.Do(fmt.Sprintf("v%d: fetched, %s", v, when), 8, stableOffsets(group, nil), allOffsets)
		}
		throughStates(e, v, states)
	}
}

// txnStagedOffsets looks at offsets of transactions that are open, by every version of OffsetFetch, and what else touches them.
func txnStagedOffsets(e *judge.Env) {
	awaitTransactions(e)
	c := e.Conn()
	topic := e.CreateTopic("topic", 3)
	g := named(e, "group")
	p, q := newTxn(e, "p"), newTxn(e, "q")
	look := func(s string) {
		for v := int16(1); v <= 10; v++ {
			c.Do(fmt.Sprintf("%s: v%d", s, v), v, committed(g, &topic, 0, 1, 2), allOffsets)
			if v >= 2 {
				c.Do(fmt.Sprintf("%s: v%d all", s, v), v, committed(g, nil), allOffsets)
			}
			if v >= 7 {
				c.Do(fmt.Sprintf("%s: v%d stable", s, v), v, stableOffsets(g, &topic, 0, 1, 2), allOffsets)
				c.Do(fmt.Sprintf("%s: v%d stable, all", s, v), v, stableOffsets(g, nil), allOffsets)
			}
		}
		c.Do(s+": the group", 6, describeGroups(g))
	}
	stage := func(s string, p txnProducer, partition int32, offset int64) {
		e.Quiet(3, p.addGroup(g))
		c.Do(s, 5, p.commitOffsets(g, topic, offsetOf(partition, offset, s)))
	}
	e.Quiet(8, commit(g, topic.Name, 0, 1))
	look("none staged")
	stage("p stages 0", p, 0, 10)
	look("one staged")
	stage("q stages 0", q, 0, 20)
	stage("q stages 1", q, 1, 21)
	look("two staged")
	c.Do("a plain commit in between", 8, commit(g, topic.Name, 0, 2))
	c.Do("a plain commit in between, fetched", 8, committed(g, nil), allOffsets)
	p = p.doEnd(e, c, "p commits", newEnd, true)
	look("p committed")
	q = q.doEnd(e, c, "q commits", newEnd, true)
	look("q committed")
	// A commit that is older than a plain one of later.
	stage("p stages 0 again", p, 0, 30)
	c.Do("a plain commit after that", 8, commit(g, topic.Name, 0, 40))
	p = p.doEnd(e, c, "p commits after the plain one", newEnd, true)
	look("p committed after a plain one")
	// Two of one partition: the later commit wins, whichever was staged first.
	stage("p stages 2", p, 2, 50)
	stage("q stages 2", q, 2, 60)
	q.doEnd(e, c, "q commits first", newEnd, true)
	p = p.doEnd(e, c, "p commits second", newEnd, true)
	look("both committed")
	stage("p stages what it aborts", p, 1, 70)
	p = p.doEnd(e, c, "p aborts", newEnd, false)
	look("aborted")
	// Other requests, while offsets are staged.
	stage("p stages what is deleted", p, 1, 80)
	del := kmsg.NewPtrOffsetDeleteRequest()
	t := kmsg.NewOffsetDeleteRequestTopic()
	t.Topic = topic.Name
	t.Partitions = []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}, {Partition: 1}}
	del.Group, del.Topics = g, append(del.Topics, t)
	c.Do("OffsetDelete meanwhile", 0, del, allOffsets)
	c.Do("fetched after OffsetDelete", 8, stableOffsets(g, nil), allOffsets)
	p = p.doEnd(e, c, "p commits what was deleted", newEnd, true)
	c.Do("fetched after that", 8, stableOffsets(g, nil), allOffsets)
	stage("p stages before its group is deleted", p, 1, 90)
	groups := kmsg.NewPtrDeleteGroupsRequest()
	groups.Groups = []string{g}
	c.Do("DeleteGroups meanwhile", 2, groups)
	c.Do("fetched after DeleteGroups", 8, stableOffsets(g, nil), allOffsets)
	p.doEnd(e, c, "p commits to a deleted group", newEnd, true)
	c.Do("fetched at last", 8, stableOffsets(g, nil), allOffsets)
	c.Do("the group at last", 6, describeGroups(g))
	// A group that only a transaction knows.
	g = named(e, "fresh")
	p = again(e, p)
	stage("p stages in a fresh group", p, 0, 1)
	c.Do("the fresh group", 6, describeGroups(g))
	p.doEnd(e, c, "p aborts in the fresh group", newEnd, false)
	c.Do("the fresh group, aborted", 6, describeGroups(g))
	c.Do("the fresh group, fetched", 8, stableOffsets(g, nil), allOffsets)
}
