package scenario

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var (
	_ = judge.RegisterOwn("txn-list", target.Options{}, txnList)
	_ = judge.Register("txn-describe-producers", txnDescribeProducers)
	_ = judge.Register("txn-markers", txnMarkers)
)

// txnList asks each version of ListTransactions, with each filter, of transactions in all states that last.
func txnList(e *judge.Env) {
	c := e.Conn()
	list := func(s string, v int16, change func(*kmsg.ListTransactionsRequest)) {
		req := kmsg.NewPtrListTransactionsRequest()
		if change != nil {
			change(req)
		}
		c.Do(fmt.Sprintf("v%d %s", v, s), v, req, sortedProducers)
	}
	awaitTransactions(e) // makes x, y and z
	topic := e.CreateTopic("t", 2)
	empty, open, committed, aborted := newTxn(e, "empty"), newTxn(e, "open"), newTxn(e, "committed"), newTxn(e, "aborted")
	open.opens(e, topic, 1, 0)
	committed.opens(e, topic, 0)
	committed.ends(e, true)
	aborted.opens(e, topic, 0)
	aborted.ends(e, false)
	time.Sleep(50 * time.Millisecond)
	for v := range int16(3) {
		list("all", v, nil)
		for _, states := range [][]string{{"Empty"}, {"Ongoing"}, {"CompleteCommit", "CompleteAbort"}, {"Ongoing", "Nonsense"}, {"Nonsense", "Nonsense", ""},
			{"ongoing"}, {"PrepareCommit", "PrepareAbort", "PrepareEpochFence", "Dead"}, {"Ongoing", "Ongoing"}} {
			list(fmt.Sprintf("states %q", states), v, func(r *kmsg.ListTransactionsRequest) { r.StateFilters = states })
		}
		list("producer", v, func(r *kmsg.ListTransactionsRequest) { r.ProducerIDFilters = []int64{open.id} })
		list("producers", v, func(r *kmsg.ListTransactionsRequest) {
			r.ProducerIDFilters = []int64{open.id, empty.id, anotherID, -1, open.id}
		})
		list("producers and states", v, func(r *kmsg.ListTransactionsRequest) {
			r.ProducerIDFilters, r.StateFilters = []int64{open.id, empty.id}, []string{"Ongoing", "Other"}
		})
		list("producer and unknown state", v, func(r *kmsg.ListTransactionsRequest) {
			r.ProducerIDFilters, r.StateFilters = []int64{open.id}, []string{"Other"}
		})
		for _, d := range []int64{-1, -5, 0, 1, 600000} {
			if v >= 1 {
				list(fmt.Sprintf("duration %d", d), v, func(r *kmsg.ListTransactionsRequest) { r.DurationFilterMillis = d })
			}
		}
		for _, pattern := range []string{"", "txn-list-.*", "txn-list-open", "list", ".*", "txn-list-(open|empty)", "[", "(?=a)b", "TXN.*", "(?i)TXN.*", "a{5,2}", "x|y", "\\Qx\\E"} {
			if v >= 2 {
				list(fmt.Sprintf("pattern %q", pattern), v, func(r *kmsg.ListTransactionsRequest) { r.TransactionalIDPattern = &pattern })
			}
		}
	}
	list("pattern and state", 2, func(r *kmsg.ListTransactionsRequest) {
		r.TransactionalIDPattern, r.StateFilters = kmsg.StringPtr("txn-list-.*"), []string{"Empty"}
	})
	for _, names := range [][]string{{}, {""}, {e.Name("nobody")}, {empty.name, open.name, committed.name, aborted.name}, {open.name, open.name}, {open.name, e.Name("nobody"), ""}} {
		c.Do(fmt.Sprintf("described %q", names), 0, describeTxn(names...), judge.Sorted("Topics", "Partitions"))
	}
}

// txnDescribeProducers asks what is known of producers.
func txnDescribeProducers(e *judge.Env) {
	awaitTransactions(e)
	topic, other := e.CreateTopic("t", 3), e.CreateTopic("other", 1)
	c := e.Conn()
	look := func(s string) { c.Do(s, 0, describeProducers(topic, 0, 1, 2), sortedProducers) }
	look("none")
	produced(e, topic, 0, judge.Values("plain"))
	look("records of none")
	produced(e, topic, 0, judge.Values("a", "b").Idempotent(600, 3, 0))
	produced(e, topic, 0, judge.Values("c").Idempotent(601, 0, 7))
	look("idempotent ones")
	p := newTxn(e, "p")
	p.opens(e, topic, 0, 1)
	look("a transaction without records")
	p.writes(e, topic, 0, 0, "a")
	p.writes(e, topic, 0, 1, "b", "c")
	look("a transaction")
	p = p.doEnd(e, c, "it commits", oldEnd, true)
	look("committed")
	p.opens(e, topic, 1)
	p = p.doEnd(e, c, "it aborts", newEnd, false)
	look("aborted")
	p.writes(e, topic, 2, 0, "d")
	look("the next")
	p.ends(e, true)
	look("the next committed")
	req := describeProducers(topic, 0, 5, -1)
	t := kmsg.NewDescribeProducersRequestTopic()
	t.Topic, t.Partitions = e.Name("unknown"), []int32{0}
	o := kmsg.NewDescribeProducersRequestTopic()
	o.Topic, o.Partitions = other.Name, []int32{0}
	n := kmsg.NewDescribeProducersRequestTopic()
	n.Topic = topic.Name
	none := kmsg.NewDescribeProducersRequestTopic()
	none.Topic, none.Partitions = "", []int32{0}
	invalid := kmsg.NewDescribeProducersRequestTopic()
	invalid.Topic, invalid.Partitions = "a b", []int32{0}
	req.Topics = append(req.Topics, t, o)
	c.Do("some unknown", 0, req, sortedProducers)
	req.Topics = append(req.Topics[:0], n)
	c.Do("no partitions", 0, req, sortedProducers)
	req.Topics = append(req.Topics[:0], none, invalid)
	c.Do("names that can't be", 0, req, sortedProducers)
	req.Topics = nil
	c.Do("no topics", 0, req)
	c.Do("one twice", 0, describeProducers(topic, 2, 2), sortedProducers)
}

// txnMarkers writes markers past the coordinator, as kafka-transactions does to abort a transaction that hangs.
func txnMarkers(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 3)
	c := e.Conn()
	for v := int16(1); v <= 2; v++ {
		for version := range int8(4) {
			if v == 1 && version > 0 {
				continue
			}
			n := fmt.Sprintf("v%d transaction version %d", v, version)
			marker := func(p txnProducer, commit bool, coordinator int32, partitions ...int32) *kmsg.WriteTxnMarkersRequest {
				req := kmsg.NewPtrWriteTxnMarkersRequest()
				m := kmsg.NewWriteTxnMarkersRequestMarker()
				m.ProducerID, m.ProducerEpoch, m.Committed, m.CoordinatorEpoch, m.TransactionVersion = p.id, p.epoch, commit, coordinator, version
				t := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
				t.Topic, t.Partitions = topic.Name, partitions
				m.Topics = append(m.Topics, t)
				req.Markers = append(req.Markers, m)
				return req
			}
			do := func(s string, req *kmsg.WriteTxnMarkersRequest) {
				c.Do(n+" "+s, v, req, judge.Sorted("Topics", "Partitions", "Markers"))
				c.Do(n+" "+s+": producers", 0, describeProducers(topic, 0, 1), sortedProducers)
				c.Do(n+" "+s+": the end", 7, committedEnd(topic, -1))
			}
			p := newTxn(e, fmt.Sprintf("v%d-%d", v, version))
			p.writes(e, topic, 0, 0, n)
			do("unknown partition", marker(p, false, 0, 7))
			do("epoch -1", marker(p.later(-1), false, 0, 0))
			do("coordinator epoch -1", marker(p, false, -1, 0))
			do("coordinator epoch 0", marker(p, false, 0, 0))
			do("again", marker(p, false, 0, 0))
			do("commit after that", marker(p, true, 0, 0))
			c.Do(n+" described", 0, describeTxn(p.name), sortedProducers)
			c.Do(n+" it goes on", 12, p.produce(topic, 0, 1, n+" goes on"))
			c.Do(n+" it goes on from 0", 12, p.produce(topic, 0, 0, n+" goes on from 0"))
			p = p.doEnd(e, c, n+" it commits", newEnd, true)
			c.Do(n+" described after its commit", 0, describeTxn(p.name), sortedProducers)
			p.writes(e, topic, 0, 0, n+" second")
			do("epoch +1", marker(p.later(1), false, 0, 0))
			c.Do(n+" it goes on as if nothing were", 12, p.produce(topic, 0, 1, n+" zombie"))
			p = p.doEnd(e, c, n+" it commits as if nothing were", newEnd, true)
			p = again(e, p)
			p.writes(e, topic, 0, 0, n+" third")
			do("coordinator epoch 5", marker(p, true, 5, 0))
			do("coordinator epoch 4", marker(p, true, 4, 0))
			do("of a producer that nobody knows", marker(txnProducer{"", 700 + int64(v)*10 + int64(version), 0}, false, 0, 1))
			do("of it again, epoch 1, commit", marker(txnProducer{"", 700 + int64(v)*10 + int64(version), 1}, true, 0, 1))
			do("of a producer without id", marker(txnProducer{"", -1, -1}, false, 0, 1))
		}
		none := kmsg.NewPtrWriteTxnMarkersRequest()
		c.Do(fmt.Sprintf("v%d none", v), v, none)
		m := kmsg.NewWriteTxnMarkersRequestMarker()
		m.ProducerID = anotherID
		none.Markers = append(none.Markers, m)
		c.Do(fmt.Sprintf("v%d no topics", v), v, none)
		t := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
		t.Topic, t.Partitions = e.Name("unknown"), []int32{0, 1}
		none.Markers[0].Topics = append(none.Markers[0].Topics, t)
		c.Do(fmt.Sprintf("v%d unknown topic", v), v, none, judge.Sorted("Topics", "Partitions", "Markers"))
	}
	c.Do("the log", 13, committedFetch(topic, from(0, 0), from(1, 0)))
}
