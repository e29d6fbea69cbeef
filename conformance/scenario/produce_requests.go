package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("produce-requests", produceRequests)
	_ = judge.Register("produce-acks", produceAcks)
	_ = judge.Register("produce-transactional", produceTransactional)
	_ = judge.Register("produce-segments", produceSegments)
)

// produceRequests is about the request as a whole: topics and partitions that are unknown, repeated, or wrong beside right ones.
func produceRequests(e *judge.Env) {
	a, b := e.CreateTopic("a", 3), e.CreateTopic("b", 1)
	none := judge.Topic{Name: e.Name("none"), ID: unknownID}
	good := judge.Values("x").Bytes()
	wrong := judge.Values("x").With(func(b *judge.Batch) { b.CRCXor = 1 }).Bytes()
	c := e.Conn()
	for _, v := range []int16{3, 9, 12, 13} {
		do := func(step string, req *kmsg.ProduceRequest) { c.Do(fmt.Sprintf("v%d %s", v, step), v, req) }
		do("no topic", produce(1))
		do("topic without partitions", withoutPartitions(produce(1, part{a, 0, good})))
		do("two topics", produce(-1, part{a, 0, good}, part{a, 1, good}, part{b, 0, good}))
		do("one partition wrong", produce(-1, part{a, 0, good}, part{a, 1, wrong}, part{b, 0, good}))
		do("one partition unknown", produce(1, part{a, 0, good}, part{a, 3, good}, part{a, -1, good}))
		do("one topic unknown", produce(1, part{a, 0, good}, part{none, 0, good}))
		do("one partition of magic 0", produce(1, part{a, 0, good}, part{a, 1, judge.MessageSet(0, "x")}))
		do("one partition empty", produce(1, part{a, 0, good}, part{a, 1, []byte{}}))
		if v == 9 {
			c.Do("one partition null", v, produce(1, part{a, 0, good}, part{a, 1, nil}), judge.MayHang())
			c.Do("one partition null, of an unknown topic", v, produce(1, part{a, 0, good}, part{none, 0, nil}), judge.MayHang())
		}
		do("one partition of a length below 14", produce(1, part{a, 0, good}, part{a, 1, judge.Values("x").With(func(b *judge.Batch) { b.LengthDelta = -50 }).Bytes()}))
		do("one partition of magic 3, of an unknown topic", produce(1, part{a, 0, good}, part{none, 1, judge.Values("x").With(func(b *judge.Batch) { b.Magic = 3 }).Bytes()}))
		do("one partition transactional", produce(1, part{a, 0, good}, part{a, 1, judge.Values("x").With(func(b *judge.Batch) { b.Attributes |= 0x10 }).Bytes()}))
		do("one partition with two batches", produce(1, part{a, 0, good}, part{a, 1, append(append([]byte{}, good...), good...)}))
		do("acks=0, one partition wrong", produce(0, part{a, 0, good}, part{a, 1, wrong}))
		do("acks=0, no topic", produce(0))
		do("timeout 0", withTimeout(produce(-1, part{a, 0, good}), 0))
		do("timeout -1", withTimeout(produce(-1, part{a, 0, good}), -1))
		for p := range int32(3) {
			c.Do(fmt.Sprintf("v%d end of partition %d", v, p), 7, ofPartition(listOffsets(a, -1), p))
		}
	}
	for _, name := range []string{"", ".", "..", "a b", "ä", "__consumer_offsets"} {
		c.Do(fmt.Sprintf("topic %q", name), 9, one(1, judge.Topic{Name: name}, judge.Values("x")))
	}
	c.Do("topic id 0", 13, one(1, judge.Topic{}, judge.Values("x")))
	c.Do("topic id 1", 13, one(1, judge.Topic{ID: [16]byte{15: 1}}, judge.Values("x")))
}

func withoutPartitions(req *kmsg.ProduceRequest) *kmsg.ProduceRequest {
	req.Topics[0].Partitions = nil
	return req
}

func withTimeout(req *kmsg.ProduceRequest, ms int32) *kmsg.ProduceRequest {
	req.TimeoutMillis = ms
	return req
}

func ofPartition(req *kmsg.ListOffsetsRequest, p int32) *kmsg.ListOffsetsRequest {
	req.Topics[0].Partitions[0].Partition = p
	return req
}

// produceAcks sends every number of acks with right and wrong batches.
func produceAcks(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	strict := e.CreateTopic("strict", 1, "min.insync.replicas", "2")
	none := judge.Topic{Name: e.Name("none")}
	c := e.Conn()
	for _, acks := range []int16{-1, 0, 1, 2, -2, 32767, -32768} {
		step := fmt.Sprintf("acks=%d", acks)
		c.Do(step, 9, one(acks, topic, judge.Values("a")))
		c.Do(step+" wrong checksum", 9, one(acks, topic, judge.Values("a").With(func(b *judge.Batch) { b.CRCXor = 1 })))
		c.Do(step+" empty records", 9, produce(acks, part{topic, 0, []byte{}}))
		c.Do(step+" unknown topic", 9, one(acks, none, judge.Values("a")))
		c.Do(step+" min.insync.replicas=2", 9, one(acks, strict, judge.Values("a")))
		c.Do(step+" sequence gap", 9, one(acks, topic, judge.Values("a").Idempotent(12000, 0, int32(100+acks))))
		c.Do(step+" end", 7, listOffsets(topic, -1))
	}
	c.Pipeline("acks=2 among right ones", 9, one(1, topic, judge.Values("a")), one(2, topic, judge.Values("a")), one(1, topic, judge.Values("a")))
}

// produceTransactional sends transactional batches that belong to no transaction.
func produceTransactional(e *judge.Env) {
	topic := e.CreateTopic("t", 2)
	awaitTransactions(e)
	c := e.Conn()
	transactional := func(id int64, epoch int16, sequence int32) []byte {
		return judge.Values("a").Idempotent(id, epoch, sequence).With(func(b *judge.Batch) { b.Attributes |= 0x10 }).Bytes()
	}
	for _, v := range []int16{3, 9, 10, 11, 12, 13} {
		req := produce(-1, part{topic, 0, transactional(13000, 0, 0)})
		req.TransactionID = kmsg.StringPtr(e.Name("unknown"))
		c.Do(fmt.Sprintf("v%d unknown transactional id", v), v, req)
		req = produce(-1, part{topic, 0, transactional(13000, 0, 0)})
		req.TransactionID = kmsg.StringPtr("")
		c.Do(fmt.Sprintf("v%d empty transactional id", v), v, req)
		req = produce(-1, part{topic, 0, transactional(13000, 0, 0)}, part{topic, 1, transactional(13001, 0, 0)})
		req.TransactionID = kmsg.StringPtr(e.Name("unknown"))
		c.Do(fmt.Sprintf("v%d two producers", v), v, req)
		req = one(-1, topic, judge.Values("a"))
		req.TransactionID = kmsg.StringPtr(e.Name("unknown"))
		c.Do(fmt.Sprintf("v%d transactional id, batch of no transaction", v), v, req)
		c.Do(fmt.Sprintf("v%d no transactional id", v), v, produce(-1, part{topic, 0, transactional(13000, 0, 0)}))
		c.Do(fmt.Sprintf("v%d end", v), 7, listOffsets(topic, -1))
	}
}

// awaitTransactions returns once the broker coordinates transactions, for which Kafka first makes a topic.
func awaitTransactions(e *judge.Env) {
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKey, find.CoordinatorType = "x", 1
	e.Await("a transaction coordinator", func() bool { return e.Quiet(3, find).(*kmsg.FindCoordinatorResponse).ErrorCode == 0 })
	for _, id := range []string{"x", "y", "z"} {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = kmsg.StringPtr(id), 60000
		e.Await("transactional id "+id, func() bool {
			code := e.Quiet(4, req).(*kmsg.InitProducerIDResponse).ErrorCode
			return code < 14 || code > 16
		})
	}
}

// produceSegments is about segment.bytes, which bounds a request too.
func produceSegments(e *judge.Env) {
	topic := e.CreateTopic("t", 1, "segment.bytes", "1048576", "max.message.bytes", "3000000")
	c := e.Conn()
	large := func(n int) *judge.Batch { return judge.NewBatch(judge.Record{Value: make([]byte, n)}) }
	const overhead = 61 + 3 + 1 + 1 + 1 + 1 + 3 + 1 // header; length, attributes, deltas, key, value's length, headers
	c.Do("as large as a segment", 10, one(1, topic, large(1048576-overhead)))
	c.Do("one byte larger", 10, one(1, topic, large(1048576-overhead+1)))
	c.Do("twice as large", 10, one(1, topic, large(2097152)))
	c.Do("larger than max.message.bytes", 10, one(1, topic, large(3000000)))
	c.Do("end", 7, listOffsets(topic, -1))
}
