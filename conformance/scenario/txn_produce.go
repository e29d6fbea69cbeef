package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("txn-produce", txnProduce)
	_ = judge.Register("txn-produce-refused", txnProduceRefused)
	_ = judge.Register("txn-produce-sequences", txnProduceSequences)
	_ = judge.Register("txn-produce-several", txnProduceSeveral)
	_ = judge.Register("txn-fencing", txnFencing)
)

// txnProduce asks each version of Produce in each state of the producer's transaction.
func txnProduce(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 4)
	c := e.Conn()
	for v := int16(3); v <= 13; v++ {
		do := func(s string, req *kmsg.ProduceRequest) { c.Do(fmt.Sprintf("v%d %s", v, s), v, req) }
		p := newTxn(e, fmt.Sprint("v", v, "-not-added"))
		describe := func(s string) {
			c.Do(fmt.Sprintf("v%d described: %s", v, s), 0, describeTxn(p.name), sortedProducers)
		}
		do("unknown transactional id", p.of(p.name+"-unknown").produce(topic, 0, 0, "a"))
		do("another producer id", p.as(anotherID).produce(topic, 0, 0, "a"))
		do("epoch +1", p.later(1).produce(topic, 0, 0, "a"))
		do("epoch -1", p.later(-1).produce(topic, 0, 0, "a"))
		do("unknown topic", p.produce(judge.Topic{Name: e.Name("unknown"), ID: unknownID}, 0, 0, "a"))
		do("unknown partition", p.produce(topic, 9, 0, "a"))
		describe("nothing yet")
		do("not added", p.produce(topic, 0, 0, fmt.Sprintf("v%d not added", v)))
		describe("not added")
		p = newTxn(e, fmt.Sprint("v", v))
		p.opens(e, topic, 0, 1)
		do("added", p.produce(topic, 0, 0, fmt.Sprintf("v%d added", v)))
		do("added, from 0", p.produce(topic, 0, 0, fmt.Sprintf("v%d added", v)))
		do("added, then", p.produce(topic, 0, 1, fmt.Sprintf("v%d then", v)))
		do("added, a gap", p.produce(topic, 0, 7, "a"))
		do("added, another producer id", p.as(anotherID).produce(topic, 0, 0, "a"))
		do("added, epoch -1", p.later(-1).produce(topic, 0, 0, "a"))
		do("another partition", p.produce(topic, 2, 0, fmt.Sprintf("v%d another", v)))
		describe("another partition")
		plain := p.sends(part{topic, 0, judge.Values("plain").Idempotent(p.id, p.epoch, 2).Bytes()})
		do("a batch of no transaction inside", plain)
		plain.TransactionID = nil
		do("a batch of no transaction inside, without the id", plain)
		do("a batch of no transaction, of another partition", p.sends(part{topic, 3, judge.Values("plain").Idempotent(p.id, p.epoch, 0).Bytes()}))
		nameless := p.produce(topic, 0, 2, "a")
		nameless.TransactionID = nil
		do("without the id", nameless)
		zero := p.produce(topic, 1, 0, fmt.Sprintf("v%d acks 0", v))
		zero.Acks = 0
		do("acks 0", zero)
		c.Do(fmt.Sprintf("v%d the end of the log while it is open", v), 7, committedEnd(topic, -1))
		for _, commit := range []bool{true, false} {
			s := fmt.Sprintf("after commit %t", commit)
			before := p
			p = p.doEnd(e, c, fmt.Sprintf("v%d commit %t", v, commit), endOf(v), commit)
			do(s+", the epoch before", before.produce(topic, 0, next(endOf(v), 2), fmt.Sprintf("v%d %s", v, s)))
			awaitComplete(e, p.name)
			do(s+", not added", p.produce(topic, 0, next(endOf(v), 2), fmt.Sprintf("v%d %s", v, s)))
			do(s+", a duplicate", p.produce(topic, 0, next(endOf(v), 2), fmt.Sprintf("v%d %s", v, s)))
			describe(s)
			p.opens(e, topic, 1)
		}
		e.Quiet(newEnd, p.end(false))
		awaitComplete(e, p.name)
	}
	c.Do("the log", 13, fetchPartitions(topic, from(0, 0), from(1, 0), from(2, 0), from(3, 0)))
	c.Do("the log, committed", 13, committedFetch(topic, from(0, 0), from(1, 0), from(2, 0), from(3, 0)))
	c.Do("producers", 0, describeProducers(topic, 0, 1, 2, 3), sortedProducers)
}

// txnProduceRefused has Kafka remember the lowest sequence of what the coordinator has refused: nothing of a later one is let in before it.
func txnProduceRefused(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 2)
	c := e.Conn()
	for v := int16(9); v <= 13; v++ {
		do := func(s string, req *kmsg.ProduceRequest) { c.Do(fmt.Sprintf("v%d %s", v, s), v, req) }
		p := newTxn(e, fmt.Sprint("v", v))
		do("not added", p.produce(topic, 0, 0, fmt.Sprintf("v%d first", v)))
		p.opens(e, topic, 0, 1)
		do("added, the next sequence", p.produce(topic, 0, 1, fmt.Sprintf("v%d next", v)))
		do("added, its sequence", p.produce(topic, 0, 0, fmt.Sprintf("v%d first", v)))
		do("of a later epoch", p.later(1).produce(topic, 0, 0, fmt.Sprintf("v%d later", v)))
		do("a batch of no transaction", p.sends(part{topic, 0, judge.Values("plain").Idempotent(p.id, p.epoch, 2).Bytes()}))
		p.doEnd(e, c, fmt.Sprintf("v%d end", v), endOf(v), true)
	}
}

// endOf is the EndTxn of clients with a version of Produce.
func endOf(produce int16) int16 {
	if produce >= 12 {
		return newEnd
	}
	return oldEnd
}

// txnProduceSequences is about sequences across transactions, of clients of before transaction version 2 and of it.
func txnProduceSequences(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 2)
	c := e.Conn()
	for _, v := range []int16{oldProduce, newProduce} {
		n := 0
		p := newTxn(e, fmt.Sprint("v", v))
		do := func(s string, sequence int32) {
			if n++; v == oldProduce {
				p.opens(e, topic, 0)
			}
			c.Do(fmt.Sprintf("v%d %s", v, s), v, p.produce(topic, 0, sequence, fmt.Sprintf("v%d %d", v, n)))
		}
		do("starts at 5", 5)
		do("starts at 0", 0)
		do("1", 1)
		do("1 again", 1)
		do("3", 3)
		p = p.doEnd(e, c, fmt.Sprintf("v%d first commit", v), endOf(v), true)
		do("after a commit, 2", 2)
		do("after a commit, 0", 0)
		do("after a commit, 1", 1)
		p = p.doEnd(e, c, fmt.Sprintf("v%d first abort", v), endOf(v), false)
		do("after an abort, 2", 2)
		do("after an abort, 3", 3)
		do("after an abort, 0", 0)
		p = again(e, p)
		do("a new instance, 1", 1)
		do("a new instance, 0", 0)
		c.Do(fmt.Sprintf("v%d producers", v), 0, describeProducers(topic, 0), sortedProducers)
		p = p.doEnd(e, c, fmt.Sprintf("v%d last commit", v), endOf(v), true)
		c.Do(fmt.Sprintf("v%d the log", v), 13, committedFetch(topic, from(0, 0)))
	}
}

// txnProduceSeveral is about requests of several partitions, of which not all are right.
func txnProduceSeveral(e *judge.Env) {
	awaitTransactions(e)
	topic, other := e.CreateTopic("t", 3), e.CreateTopic("other", 1)
	c := e.Conn()
	for _, v := range []int16{9, oldProduce, 12, newProduce} {
		p, q := newTxn(e, fmt.Sprint("p", v)), newTxn(e, fmt.Sprint("q", v))
		do := func(s string, req *kmsg.ProduceRequest) { c.Do(fmt.Sprintf("v%d %s", v, s), v, req) }
		to := func(p txnProducer, t judge.Topic, partition, sequence int32) part {
			return part{t, partition, p.batch(sequence, fmt.Sprintf("v%d", v)).Bytes()}
		}
		p.opens(e, topic, 0)
		do("added and not", p.sends(to(p, topic, 0, 0), to(p, topic, 1, 0), to(p, other, 0, 0)))
		c.Do(fmt.Sprintf("v%d described", v), 0, describeTxn(p.name), sortedProducers)
		do("two producers", p.sends(to(p, topic, 0, 1), to(q, topic, 1, 0)))
		do("two epochs", p.sends(to(p, topic, 0, 1), to(p.later(1), topic, 1, 0)))
		do("one in a transaction, one not", p.sends(to(p, topic, 0, 1), part{topic, 2, judge.Values("plain").Bytes()}))
		do("one in a transaction, one of an idempotent producer", p.sends(to(p, topic, 0, 2), part{topic, 2, judge.Values("plain").Idempotent(4000+int64(v), 0, 0).Bytes()}))
		do("one unknown", p.sends(to(p, topic, 0, 3), to(p, topic, 7, 0)))
		do("one corrupt", p.sends(to(p, topic, 0, 4), part{topic, 1, p.batch(1, "a").With(func(b *judge.Batch) { b.CRCXor = 1 }).Bytes()}))
		do("one corrupt that was not added", q.sends(part{topic, 2, q.batch(0, "a").With(func(b *judge.Batch) { b.CRCXor = 1 }).Bytes()}))
		c.Do(fmt.Sprintf("v%d described after a corrupt one", v), 0, describeTxn(q.name), sortedProducers)
		do("a control batch", p.sends(part{topic, 0, p.batch(5, "a").With(func(b *judge.Batch) { b.Attributes |= 0x20 }).Bytes()}))
		do("no producer id", p.sends(part{topic, 0, p.as(-1).batch(-1, "a").Bytes()}))
		p.doEnd(e, c, fmt.Sprintf("v%d end", v), endOf(v), true)
		if v >= 12 {
			q.doEnd(e, c, fmt.Sprintf("v%d end of the other", v), endOf(v), true)
		}
		c.Do(fmt.Sprintf("v%d the log", v), 13, committedFetch(topic, from(0, 0), from(1, 0), from(2, 0)))
	}
}

// txnFencing lets a second instance come while the first has a transaction, and the first go on with everything that it can do.
func txnFencing(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 2)
	g := named(e, "group")
	c := e.Conn()
	for v := int16(3); v <= 5; v++ {
		p := newTxn(e, fmt.Sprint("v", v))
		p.writes(e, topic, 0, 0, fmt.Sprintf("v%d of the first", v))
		second := initTxn(p.name)
		c.Do(fmt.Sprintf("v%d the second comes", v), v, second)
		awaitTxn(e, p.name, "CompleteAbort")
		zombie := func(when string, inits bool) {
			for _, pv := range []int16{9, 10, 11, 12, 13} {
				c.Do(fmt.Sprintf("v%d %s: Produce v%d", v, when, pv), pv, p.produce(topic, 0, 0, "zombie"))
				c.Do(fmt.Sprintf("v%d %s: Produce v%d to another partition", v, when, pv), pv, p.produce(topic, 1, 0, "zombie"))
			}
			for _, av := range []int16{0, 1, 2, 3} {
				c.Do(fmt.Sprintf("v%d %s: AddPartitionsToTxn v%d", v, when, av), av, p.add(topic, 0))
				c.Do(fmt.Sprintf("v%d %s: AddOffsetsToTxn v%d", v, when, av), av, p.addGroup(g))
			}
			for _, cv := range []int16{3, 4, 5} {
				c.Do(fmt.Sprintf("v%d %s: TxnOffsetCommit v%d", v, when, cv), cv, p.commitOffsets(g, topic, offsetOf(0, 1, "zombie")))
			}
			for _, ev := range []int16{0, 1, 2, 3, 4, 5} {
				for _, commit := range []bool{true, false} {
					c.Do(fmt.Sprintf("v%d %s: EndTxn v%d, commit %t", v, when, ev, commit), ev, p.end(commit))
				}
			}
			if inits {
				c.Do(fmt.Sprintf("v%d %s: InitProducerId v3", v, when), 3, p.init())
				awaitComplete(e, p.name)
			}
			c.Do(fmt.Sprintf("v%d %s: described", v, when), 0, describeTxn(p.name))
		}
		if v == 5 {
			zombie("aborted", false)
		}
		q := initiated(p, c.Do(fmt.Sprintf("v%d the second comes again", v), v, second))
		zombie("fenced", true)
		q.writes(e, topic, 0, 0, fmt.Sprintf("v%d of the second", v))
		zombie("fenced, the second writes", false)
		q.doEnd(e, c, fmt.Sprintf("v%d the second commits", v), newEnd, true)
		zombie("fenced, the second has committed", true)
		c.Do(fmt.Sprintf("v%d the log", v), 13, committedFetch(topic, from(0, 0), from(1, 0)))
		c.Do(fmt.Sprintf("v%d offsets", v), 8, stableOffsets(g, nil))
	}
}
