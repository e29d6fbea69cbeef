package scenario

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("txn-read", txnRead)
	_ = judge.Register("txn-read-segments", txnReadSegments)
	_ = judge.Register("txn-read-wait", txnReadWait)
	_ = judge.Register("txn-delete-records", txnDeleteRecords)
)

// txnRead looks at a log by every version of Fetch and ListOffsets, for both kinds of consumer, as transactions come and go.
func txnRead(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 1)
	c := e.Conn()
	look := func(s string, end int64) {
		for v := int16(4); v <= 18; v++ {
			c.Do(fmt.Sprintf("%s: Fetch v%d", s, v), v, fetch(topic, 0))
			c.Do(fmt.Sprintf("%s: Fetch v%d, committed", s, v), v, committedFetch(topic, from(0, 0)))
		}
		for offset := range end + 2 {
			c.Do(fmt.Sprintf("%s: from %d", s, offset), 13, committedFetch(topic, from(0, offset)))
		}
		for v := int16(1); v <= 11; v++ {
			for _, timestamp := range []int64{-1, -2, -3, judge.Base + 1} {
				if timestamp == -3 && v < 7 {
					continue
				}
				c.Do(fmt.Sprintf("%s: ListOffsets v%d %d", s, v, timestamp), v, listOffsets(topic, timestamp))
				if v >= 2 {
					c.Do(fmt.Sprintf("%s: ListOffsets v%d %d, committed", s, v, timestamp), v, committedEnd(topic, timestamp))
				}
			}
		}
		c.Do(s+": producers", 0, describeProducers(topic, 0), sortedProducers)
	}
	p, q, r := newTxn(e, "p"), newTxn(e, "q"), newTxn(e, "r")
	produced(e, topic, 0, judge.Values("plain"))
	p.writes(e, topic, 0, 0, "p1", "p2")
	look("one open", 3)
	q.writes(e, topic, 0, 0, "q1")
	produced(e, topic, 0, judge.Values("plain"))
	p = p.doEnd(e, c, "p commits", newEnd, true)
	look("p has committed, q is open", 6)
	r.writes(e, topic, 0, 0, "r1")
	p.writes(e, topic, 0, 0, "p3")
	q = q.doEnd(e, c, "q aborts", newEnd, false)
	look("q has aborted, r and p are open", 9)
	r.writes(e, topic, 0, 1, "r2")
	r.doEnd(e, c, "r aborts", newEnd, false)
	p.writes(e, topic, 0, 1, "p4")
	p = p.doEnd(e, c, "p aborts", newEnd, false)
	produced(e, topic, 0, judge.Values("plain"))
	look("all ended", 14)
	p.doEnd(e, c, "p aborts nothing", newEnd, false)
	q.opens(e, topic, 0)
	q.doEnd(e, c, "q commits a partition without records", newEnd, true)
	look("ended without records", 16)
}

// txnReadSegments has transactions over many segments.
func txnReadSegments(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 1, "segment.bytes", "1048576")
	c := e.Conn()
	big := string(make([]byte, 400_000))
	p, q := newTxn(e, "p"), newTxn(e, "q")
	produced(e, topic, 0, judge.Values("first"))
	sequence := map[string]int32{}
	write := func(p txnProducer) {
		p.writes(e, topic, 0, sequence[p.name], big)
		sequence[p.name]++
	}
	finish := func(p txnProducer, commit bool) txnProducer {
		sequence[p.name] = 0
		return p.ends(e, commit)
	}
	write(p)
	for range 4 {
		write(q)
		write(q)
		q = finish(q, false)
	}
	c.Do("p is open over all of them", 13, committedFetch(topic, from(0, 0)))
	c.Do("the end", 7, committedEnd(topic, -1))
	finish(p, false)
	for offset := range int64(17) {
		req := committedFetch(topic, from(0, offset))
		req.MaxBytes = 1000
		c.Do(fmt.Sprintf("from %d", offset), 13, req, judge.Hidden("RecordBatches"))
		c.Do(fmt.Sprintf("much from %d", offset), 13, committedFetch(topic, from(0, offset)), judge.Hidden("RecordBatches"))
	}
	write(q)
	c.Do("open again", 13, committedFetch(topic, from(0, 14)), judge.Hidden("RecordBatches"))
	c.Do("the end while it is open again", 7, committedEnd(topic, -1))
	finish(q, true)
	c.Do("committed", 13, committedFetch(topic, from(0, 14)), judge.Hidden("RecordBatches"))
}

// txnReadWait has a consumer of read_committed wait while a transaction is open.
func txnReadWait(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 1)
	c, other := e.Conn(), e.ConnAs("other")
	wait := func(offset int64, millis int32) *kmsg.FetchRequest {
		req := committedFetch(topic, from(0, offset))
		req.MaxWaitMillis, req.MinBytes = millis, 1
		return req
	}
	p := newTxn(e, "p")
	for i, commit := range []bool{true, false} {
		offset := int64(2 * i)
		parked := c.Park(fmt.Sprintf("waits, commit %t", commit), 13, wait(offset, 15000))
		p.writes(e, topic, 0, 0, "a")
		parked.Parked()
		p = p.ends(e, commit)
		parked.Done()
	}
	p.writes(e, topic, 0, 0, "b")
	took(c, "an open transaction is waited for in vain", 300*time.Millisecond, func() { c.Do("in vain", 13, wait(4, 400)) })
	parked := c.Park("waits at the last stable offset", 13, wait(4, 15000))
	other.Do("another sees it at once", 13, fetch(topic, 4))
	produced(e, topic, 0, judge.Values("plain"))
	parked.Parked()
	p.ends(e, true)
	parked.Done()
}

// txnDeleteRecords deletes records of open and ended transactions.
func txnDeleteRecords(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 1)
	c := e.Conn()
	p, q := newTxn(e, "p"), newTxn(e, "q")
	p.writes(e, topic, 0, 0, "p1")
	p.writes(e, topic, 0, 1, "p2")
	q.writes(e, topic, 0, 0, "q1")
	look := func(s string) {
		for offset := range int64(8) {
			c.Do(fmt.Sprintf("%s: from %d", s, offset), 13, committedFetch(topic, from(0, offset)))
		}
		c.Do(s+": the end", 7, committedEnd(topic, -1))
		c.Do(s+": producers", 0, describeProducers(topic, 0), sortedProducers)
	}
	remove := func(offset int64) {
		req := kmsg.NewPtrDeleteRecordsRequest()
		t := kmsg.NewDeleteRecordsRequestTopic()
		t.Topic = topic.Name
		t.Partitions = append(t.Partitions, kmsg.DeleteRecordsRequestTopicPartition{Partition: 0, Offset: offset})
		req.Topics, req.TimeoutMillis = append(req.Topics, t), 10000
		c.Do(fmt.Sprintf("delete up to %d", offset), 2, req)
	}
	remove(1)
	look("the first of p is gone")
	q = q.doEnd(e, c, "q aborts", newEnd, false)
	p.writes(e, topic, 0, 2, "p3")
	look("q has aborted")
	p = p.doEnd(e, c, "p aborts", newEnd, false)
	look("p has aborted")
	remove(3)
	look("the first three are gone")
	remove(-1)
	look("all are gone")
	p.writes(e, topic, 0, 0, "p4")
	q.writes(e, topic, 0, 0, "q2")
	look("and new ones")
}
