package scenario

import (
	"fmt"
	"math"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("produce-sequences", produceSequences)
	_ = judge.Register("produce-epochs", produceEpochs)
	_ = judge.Register("produce-sequence-wrap", produceSequenceWrap)
)

// produceSequences is one producer with right sequences, duplicates and gaps.
func produceSequences(e *judge.Env) {
	topic := e.CreateTopic("t", 2)
	c := e.Conn()
	send := func(name string, batch *judge.Batch) {
		c.Do(name, 9, one(-1, topic, batch))
		c.Do("end after "+name, 7, listOffsets(topic, -1))
	}
	const id = 7000
	for i := range int32(7) {
		send(fmt.Sprintf("sequence %d", 2*i), judge.Values("a", "b").Idempotent(id, 0, 2*i))
	}
	for i := range int32(7) {
		send(fmt.Sprintf("sequence %d again", 2*i), judge.Values("a", "b").Idempotent(id, 0, 2*i))
	}
	send("sequence 12 again, other records", judge.Values("c", "d").Idempotent(id, 0, 12))
	send("sequence 12 again, one record", judge.Values("a").Idempotent(id, 0, 12))
	send("sequence 12 again, three records", judge.Values("a", "b", "c").Idempotent(id, 0, 12))
	send("sequence 13, the middle of a batch", judge.Values("b").Idempotent(id, 0, 13))
	send("sequences 10 to 13, two batches in one", judge.Values("a", "b", "c", "d").Idempotent(id, 0, 10))
	send("a gap of one", judge.Values("a").Idempotent(id, 0, 15))
	send("a large gap", judge.Values("a").Idempotent(id, 0, 1000))
	send("sequence 0 of the same epoch", judge.Values("a").Idempotent(id, 0, 0))
	send("the next, 14", judge.Values("a").Idempotent(id, 0, 14))
	send("14 again, of another producer", judge.Values("a").Idempotent(id+1, 0, 14))
	send("15 of the other", judge.Values("a").Idempotent(id+1, 0, 15))
	send("an unknown producer at the largest sequence", judge.Values("a").Idempotent(id+2, 0, math.MaxInt32))
	send("an unknown producer with a new epoch and a sequence", judge.Values("a").Idempotent(id+3, 5, 77))
	send("without a producer in between", judge.Values("a"))
	c.Do("the same sequence on another partition", 9, produce(1, part{topic, 1, judge.Values("a").Idempotent(id, 0, 14).Bytes()}))
	c.Do("acks=1 duplicate", 9, one(1, topic, judge.Values("a").Idempotent(id, 0, 14)))
	c.Do("acks=0 duplicate", 9, one(0, topic, judge.Values("a").Idempotent(id, 0, 14)))
	c.Do("acks=0 gap", 9, one(0, topic, judge.Values("a").Idempotent(id, 0, 99)))
	c.Pipeline("pipelined", 9, one(-1, topic, judge.Values("a").Idempotent(id, 0, 15)), one(-1, topic, judge.Values("a").Idempotent(id, 0, 16)),
		one(-1, topic, judge.Values("a").Idempotent(id, 0, 18)), one(-1, topic, judge.Values("a").Idempotent(id, 0, 17)), one(-1, topic, judge.Values("a").Idempotent(id, 0, 16)))
	c.Do("the log", 13, fetch(topic, 0))
}

// produceEpochs bumps the epoch of a producer, and goes back.
func produceEpochs(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	c := e.Conn()
	send := func(name string, id int64, epoch int16, sequence int32) {
		c.Do(name, 9, one(-1, topic, judge.Values("a").Idempotent(id, epoch, sequence)))
		c.Do("end after "+name, 7, listOffsets(topic, -1))
	}
	send("epoch 2", 8000, 2, 0)
	send("epoch 1 is old", 8000, 1, 0)
	send("epoch 1 is old, next sequence", 8000, 1, 1)
	send("epoch 3 from sequence 1", 8000, 3, 1)
	send("epoch 2 goes on", 8000, 2, 1)
	send("epoch 3 from sequence 0", 8000, 3, 0)
	send("epoch 2 is old, a duplicate", 8000, 2, 1)
	send("epoch 3 duplicate", 8000, 3, 0)
	send("epoch 9 skips some", 8000, 9, 0)
	send("largest epoch", 8000, math.MaxInt16, 0)
	send("epoch 0 after the largest", 8000, 0, 0)
	send("epoch -1", 8001, -1, 0)
	send("epoch -1, next", 8001, -1, 1)
	send("epoch -1 then 0 from sequence 5", 8001, 0, 5)
	send("epoch -2", 8002, -2, 0)
	send("producer 0", 0, 0, 0)
	send("producer 0 duplicate", 0, 0, 0)
	send("largest producer id", math.MaxInt64, 0, 0)
}

// produceSequenceWrap goes over the largest sequence, after which 0 comes.
func produceSequenceWrap(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	c := e.Conn()
	send := func(name string, id int64, sequence int32, values ...string) {
		c.Do(name, 9, one(-1, topic, judge.Values(values...).Idempotent(id, 0, sequence)))
	}
	send("largest", 9000, math.MaxInt32, "a")
	send("1 after the largest", 9000, 1, "a")
	send("0 after the largest", 9000, 0, "a")
	send("largest again", 9000, math.MaxInt32, "a")
	send("largest but one", 9001, math.MaxInt32-1, "a")
	send("over the largest in one batch", 9001, math.MaxInt32, "a", "b", "c")
	send("over the largest in one batch again", 9001, math.MaxInt32, "a", "b", "c")
	send("1 is used", 9001, 1, "a")
	send("2 is next", 9001, 2, "a")
	c.Do("end", 7, listOffsets(topic, -1))
	c.Do("the log", 13, fetch(topic, 0))
}
