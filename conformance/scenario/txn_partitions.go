package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("txn-add-partitions", txnAddPartitions)
	_ = judge.Register("txn-add-partitions-batched", txnAddPartitionsBatched)
	_ = judge.RegisterOwn("txn-add-offsets", groupsBroker, txnAddOffsets)
)

// txnAddPartitions asks each version of AddPartitionsToTxn.
func txnAddPartitions(e *judge.Env) {
	awaitTransactions(e)
	topic, other := e.CreateTopic("t", 3), e.CreateTopic("other", 1)
	unknown := judge.Topic{Name: e.Name("unknown")}
	c := e.Conn()
	for v := range int16(6) {
		do := func(s string, req *kmsg.AddPartitionsToTxnRequest) {
			c.Do(fmt.Sprintf("v%d %s", v, s), v, req, sortedProducers)
		}
		p := newTxn(e, fmt.Sprint("v", v))
		describe := func(s string) {
			c.Do(fmt.Sprintf("v%d described: %s", v, s), 0, describeTxn(p.name), sortedProducers)
		}
		do("empty id", p.of("").add(topic, 0))
		do("unknown id", p.of(p.name+"-unknown").add(topic, 0))
		do("another producer id", p.as(anotherID).add(topic, 0))
		do("producer id -1", p.as(-1).add(topic, 0))
		do("epoch +1", p.later(1).add(topic, 0))
		do("epoch -1", p.later(-1).add(topic, 0))
		do("unknown topic", p.add(unknown, 0))
		do("unknown partition", p.add(topic, 3, -1))
		do("some unknown", andAdd(andAdd(p.add(topic, 0, 3), unknown, 0), other, 0))
		do("some unknown, epoch +1", andAdd(p.later(1).add(topic, 0), unknown, 0))
		internal := newTxn(e, fmt.Sprint("internal-v", v))
		do("internal topic", internal.add(judge.Topic{Name: "__transaction_state"}, 0))
		describe("nothing yet")
		none := p.add(topic)
		do("no partitions", none)
		none.Topics, none.Transactions[0].Topics = nil, nil
		do("no topics", none)
		describe("after no topics")
		do("one", p.add(topic, 1))
		describe("one")
		do("the same", p.add(topic, 1))
		do("one twice", p.add(topic, 1, 1))
		do("more", andAdd(p.add(topic, 2, 1), other, 0))
		do("one topic twice", andAdd(p.add(topic, 0), topic, 2))
		describe("more")
		do("ongoing, some unknown", andAdd(p.add(topic, 0), unknown, 0))
		do("ongoing, another producer id", p.as(anotherID).add(topic, 0))
		do("ongoing, epoch -1", p.later(-1).add(topic, 0))
		for _, end := range []int16{oldEnd, newEnd} {
			for _, commit := range []bool{true, false} {
				s := fmt.Sprintf("after EndTxn v%d, commit %t", end, commit)
				before := p
				p = p.doEnd(e, c, fmt.Sprintf("v%d %s: the end", v, s), end, commit)
				do(s+", the epoch before", before.add(topic, 1))
				awaitComplete(e, p.name)
				describe(s + ", the epoch before")
				do(s, p.add(topic, 0))
				describe(s)
			}
		}
		do("fenced", again(e, p).later(-1).add(topic, 0))
	}
}

// txnAddPartitionsBatched sends what brokers send to one another, as any client may where there is no authorizer.
func txnAddPartitionsBatched(e *judge.Env) {
	awaitTransactions(e)
	topic, other := e.CreateTopic("t", 3), e.CreateTopic("other", 1)
	c := e.Conn()
	for v := int16(4); v < 6; v++ {
		p, q := newTxn(e, fmt.Sprint("p", v)), opened(e, fmt.Sprint("q", v), topic, 0)
		do := func(s string, reqs ...*kmsg.AddPartitionsToTxnRequest) {
			all := batched()
			for _, r := range reqs {
				all.Transactions = append(all.Transactions, r.Transactions...)
			}
			c.Do(fmt.Sprintf("v%d %s", v, s), v, all, sortedProducers)
			c.Do(fmt.Sprintf("v%d described: %s", v, s), 0, describeTxn(p.name, q.name), sortedProducers)
		}
		verify := func(req *kmsg.AddPartitionsToTxnRequest) *kmsg.AddPartitionsToTxnRequest {
			req.Transactions[0].VerifyOnly = true
			return req
		}
		c.Do(fmt.Sprintf("v%d none", v), v, batched(), judge.MayHang())
		do("verify", verify(andAdd(q.add(topic, 0, 1), other, 0)))
		do("verify, all there", verify(q.add(topic, 0)))
		do("verify, nothing there", verify(p.add(topic, 0)))
		do("verify, unknown partition", verify(q.add(topic, 0, 9)))
		do("verify, epoch +1", verify(q.later(1).add(topic, 0)))
		do("verify, epoch -1", verify(q.later(-1).add(topic, 0)))
		do("verify, another producer id", verify(q.as(anotherID).add(topic, 0)))
		do("verify, empty id", verify(q.of("").add(topic, 0)))
		do("verify, unknown id", verify(q.of(q.name+"-unknown").add(topic, 0)))
		do("verify, no topics", verify(&kmsg.AddPartitionsToTxnRequest{Transactions: []kmsg.AddPartitionsToTxnRequestTransaction{{TransactionalID: q.name, ProducerID: q.id, ProducerEpoch: q.epoch}}}))
		do("two", p.add(topic, 1), q.add(topic, 2))
		do("one of two wrong", p.add(topic, 0), q.later(1).add(topic, 1))
		do("one of two unknown", p.add(topic, 2), q.add(topic, 1, 9))
		do("add and verify", p.add(other, 0), verify(q.add(other, 0)))
	}
}

// batched is of no transactions. What is not sent from version 4 on is no producer's that the broker may give out.
func batched() *kmsg.AddPartitionsToTxnRequest {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.ProducerID = -1
	return req
}

// txnAddOffsets asks each version of AddOffsetsToTxn.
func txnAddOffsets(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 1)
	c := e.Conn()
	for v := range int16(5) {
		p := newTxn(e, fmt.Sprint("v", v))
		g := named(e, fmt.Sprint("v", v, "-group"))
		do := func(s string, req *kmsg.AddOffsetsToTxnRequest) { c.Do(fmt.Sprintf("v%d %s", v, s), v, req) }
		// Which partition of Kafka's topic of offsets it is, is not told.
		describe := func(s string) {
			c.Do(fmt.Sprintf("v%d described: %s", v, s), 0, describeTxn(p.name), judge.Hidden("Topics"))
		}
		do("empty id", p.of("").addGroup(g))
		do("unknown id", p.of(p.name+"-unknown").addGroup(g))
		do("another producer id", p.as(anotherID).addGroup(g))
		do("epoch +1", p.later(1).addGroup(g))
		do("epoch -1", p.later(-1).addGroup(g))
		describe("nothing yet")
		do("empty group", p.addGroup(""))
		describe("empty group")
		do("one", p.addGroup(g))
		do("the same", p.addGroup(g))
		do("a group that nobody knows", p.addGroup(g+"-unknown"))
		describe("one")
		c.Do(fmt.Sprintf("v%d the group", v), 6, describeGroups(g))
		p.opens(e, topic, 0)
		do("with a partition", p.addGroup(g))
		for _, end := range []int16{oldEnd, newEnd} {
			s := fmt.Sprintf("after EndTxn v%d", end)
			before := p
			p = p.doEnd(e, c, fmt.Sprintf("v%d %s: the end", v, s), end, true)
			do(s+", the epoch before", before.addGroup(g))
			awaitComplete(e, p.name)
			do(s, p.addGroup(g))
			describe(s)
		}
		do("fenced", again(e, p).later(-1).addGroup(g))
	}
}
