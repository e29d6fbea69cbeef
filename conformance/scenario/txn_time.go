package scenario

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var (
	_ = judge.RegisterOwn("txn-timeouts", target.Options{Properties: map[string]string{
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
		"log.initial.task.delay.ms":                                   "86400000", // as in shortOfRetention
	}}, txnTimeouts)
	_ = judge.RegisterOwn("txn-max-timeout", target.Options{
		Flags:      []string{"--transaction-max-timeout-ms", "1000"},
		Properties: map[string]string{"transaction.max.timeout.ms": "1000"},
	}, txnMaxTimeout)
	_ = judge.RegisterOwn("txn-restart", target.Options{}, txnRestart)
)

// txnTimeouts lets transactions run out of time, and their producers go on.
func txnTimeouts(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 2)
	g := named(e, "group")
	c := e.Conn()
	short := func(label string, millis int32) txnProducer {
		p := txnProducer{name: e.Name(label)}
		r := e.Quiet(4, timeout(initTxn(p.name), millis)).(*kmsg.InitProducerIDResponse)
		p.id, p.epoch = r.ProducerID, r.ProducerEpoch
		return p
	}
	for _, v := range []int16{oldProduce, newProduce} {
		run := func(label string, then func(p txnProducer, s string)) {
			s := fmt.Sprintf("v%d %s", v, label)
			p := short(fmt.Sprintf("v%d-%s", v, label), 3000)
			within(c, s, 2900*time.Millisecond, 15*time.Second, func() {
				p.opens(e, topic, 0)
				c.Do(s+": produces", v, p.produce(topic, 0, 0, s))
				e.Quiet(3, p.addGroup(g))
				e.Quiet(3, p.commitOffsets(g, topic, offsetOf(0, 1, s)))
				awaitTxn(e, p.name, "CompleteAbort")
			})
			c.Do(s+": described", 0, describeTxn(p.name))
			then(p, s)
			c.Do(s+": described at last", 0, describeTxn(p.name), judge.Hidden("Topics"))
		}
		run("produce", func(p txnProducer, s string) {
			c.Do(s+": goes on", v, p.produce(topic, 0, 1, "late"))
			c.Do(s+": another partition", v, p.produce(topic, 1, 0, "late"))
		})
		run("end", func(p txnProducer, s string) { c.Do(s+": commits", endOf(v), p.end(true)) })
		run("abort", func(p txnProducer, s string) { c.Do(s+": aborts", endOf(v), p.end(false)) })
		run("add", func(p txnProducer, s string) { c.Do(s+": adds", 3, p.add(topic, 1)) })
		run("offsets", func(p txnProducer, s string) {
			c.Do(s+": adds a group", 3, p.addGroup(g))
			c.Do(s+": commits offsets", 5, p.commitOffsets(g, topic, offsetOf(0, 2, "late")))
		})
		run("init", func(p txnProducer, s string) {
			q := initiated(p, c.Do(s+": knows its epoch", 4, p.init()))
			c.Do(s+": knows its epoch, again", 4, p.init())
			q.opens(e, topic, 0)
			c.Do(s+": goes on from 0", v, q.produce(topic, 0, 0, s+" again"))
			q.doEnd(e, c, s+": commits", endOf(v), true)
		})
		run("fence", func(p txnProducer, s string) { c.Do(s+": another instance", 4, initTxn(p.name)) })
	}
	c.Do("the log", 13, committedFetch(topic, from(0, 0), from(1, 0)))
	c.Do("producers", 0, describeProducers(topic, 0, 1), sortedProducers)
	c.Do("offsets", 8, stableOffsets(g, nil))
	// What is done in a transaction does not make it longer.
	p := short("busy", 3500)
	within(c, "busy", 3400*time.Millisecond, 15*time.Second, func() {
		for i := range int32(6) {
			p.writes(e, topic, 1, i, fmt.Sprint("busy ", i))
			time.Sleep(150 * time.Millisecond)
		}
		awaitTxn(e, p.name, "CompleteAbort")
	})
	// One that has ended in time does not time out, nor does one without a transaction.
	p = short("in-time", 2500)
	p.writes(e, topic, 1, 0, "in time")
	p = p.ends(e, true)
	time.Sleep(3500 * time.Millisecond)
	c.Do("in time: described", 0, describeTxn(p.name))
	c.Do("in time: goes on", newProduce, p.produce(topic, 1, 0, "in time again"))
}

// txnMaxTimeout has a broker whose transaction.max.timeout.ms is another.
func txnMaxTimeout(e *judge.Env) {
	awaitTransactions(e)
	c := e.Conn()
	for _, millis := range []int32{1, 999, 1000, 1001, 60000} {
		name := e.Name(fmt.Sprint(millis))
		e.Await("coordinator of "+name, func() bool {
			code := e.Quiet(4, timeout(initTxn(name), millis)).(*kmsg.InitProducerIDResponse).ErrorCode
			return code < 14 || code > 16
		})
		c.Do(fmt.Sprintf("timeout %d", millis), 4, timeout(initTxn(name), millis))
		c.Do(fmt.Sprintf("timeout %d of no transactional id", millis), 4, newProducer(-1, -1, millis))
	}
}

// txnRestart stops and starts the broker with transactions in all states that last.
func txnRestart(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 2)
	g := named(e, "group")
	c := e.Conn()
	empty, open, committed, aborted := newTxn(e, "empty"), newTxn(e, "open"), newTxn(e, "committed"), newTxn(e, "aborted")
	committed.writes(e, topic, 0, 0, "committed")
	open.writes(e, topic, 0, 0, "open")
	e.Quiet(3, open.addGroup(g))
	e.Quiet(3, open.commitOffsets(g, topic, offsetOf(0, 1, "open")))
	aborted.writes(e, topic, 0, 0, "aborted")
	committed = committed.doEnd(e, c, "committed", newEnd, true)
	aborted = aborted.doEnd(e, c, "aborted", newEnd, false)
	epochs := judge.Hidden("LeaderEpoch", "CoordinatorEpoch") // Kafka has one or two more with each start
	look := func(s string) {
		c.Do(s+": described", 0, describeTxn(empty.name, open.name, committed.name, aborted.name), judge.Hidden("Topics"))
		c.Do(s+": the log", 13, committedFetch(topic, from(0, 0)), epochs)
		c.Do(s+": the log, uncommitted", 13, fetch(topic, 0), epochs)
		c.Do(s+": the end", 7, committedEnd(topic, -1), epochs)
		c.Do(s+": producers", 0, describeProducers(topic, 0), sortedProducers, epochs)
		c.Do(s+": offsets", 8, stableOffsets(g, nil), allOffsets)
	}
	look("before")
	e.Restart()
	awaitTransactions(e)
	groupsReady(e, g)
	e.AwaitTopic(topic.Name, 2)
	for _, name := range []string{empty.name, open.name, committed.name, aborted.name} {
		awaitTxn(e, name, "Empty", "Ongoing", "CompleteCommit", "CompleteAbort") // Kafka loads them one partition after the other
	}
	look("after")
	c.Do("empty goes on", newProduce, empty.produce(topic, 1, 0, "empty"))
	c.Do("open goes on", newProduce, open.produce(topic, 0, 1, "open goes on"))
	c.Do("committed goes on", newProduce, committed.produce(topic, 0, 0, "committed goes on"))
	c.Do("aborted goes on", newProduce, aborted.produce(topic, 1, 0, "aborted goes on"))
	open.doEnd(e, c, "open commits", newEnd, true)
	committed.doEnd(e, c, "committed aborts", newEnd, false)
	empty.doEnd(e, c, "empty commits", newEnd, true)
	aborted.doEnd(e, c, "aborted commits", newEnd, true)
	look("at last")
	c.Do("the other partition", 13, committedFetch(topic, from(1, 0)), epochs)
}
