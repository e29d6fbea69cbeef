package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// A restart of Kafka that is not told otherwise removes records of the past half a minute later.
var _ = judge.RegisterOwn("restart", target.Options{Properties: map[string]string{"log.initial.task.delay.ms": "86400000"}}, restart)

// restart stops the broker in order and looks at what it remembers.
func restart(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	appendTime := e.CreateTopic("append-time", 1, "message.timestamp.type", "LogAppendTime")
	c := e.Conn()
	send := func(step string, id int64, epoch int16, sequence int32) {
		// Of now: a producer whose last record is older than producer.id.expiration.ms is forgotten.
		c.Do(step, 9, one(-1, topic, judge.Values("a").Idempotent(id, epoch, sequence).At(e.Now(0))))
	}
	for i := range int32(7) {
		send(fmt.Sprintf("before: sequence %d", i), 20000, 1, i)
	}
	send("before: another producer", 20001, 0, 5)
	send("before: a third producer", 20002, 0, 0)
	send("before: a new epoch of it", 20002, 1, 0)
	c.Do("before: a producer whose records are old", 9, one(-1, topic, judge.Values("a").Idempotent(20003, 0, 0)))
	c.Do("before: old records, again", 9, one(-1, topic, judge.Values("a").Idempotent(20003, 0, 0)))
	c.Do("before: LogAppendTime", 8, one(1, appendTime, judge.Values("a").Idempotent(20000, 0, 0)))
	c.Do("before: not idempotent", 9, one(-1, topic, judge.Values("b").Codec(1)))
	session := fetch(topic, 9)
	session.SessionEpoch = 0
	opened := c.Do("before: a fetch session", 13, session).(*kmsg.FetchResponse).SessionID
	awaitProducerIDs(e)
	last := c.Do("before: a producer id", 4, newProducer(-1, -1, 60000)).(*kmsg.InitProducerIDResponse)

	e.Restart()
	e.AwaitTopic(topic.Name, 1)
	e.AwaitTopic(appendTime.Name, 1)
	c.Do("start", 7, listOffsets(topic, -2))
	c.Do("end", 7, listOffsets(topic, -1))
	c.Do("the log", 13, fetch(topic, 0))
	c.Do("the log by name", 12, fetch(topic, 0))
	c.Do("the log of LogAppendTime", 13, fetch(appendTime, 0))
	session = fetch(topic, 9)
	session.SessionID, session.SessionEpoch = opened, 1
	c.Do("the session", 13, session)
	awaitProducerIDs(e)
	c.Do("another producer id", 4, newProducer(-1, -1, 60000))
	c.Do("the epoch of an idempotent producer", 4, newProducer(last.ProducerID, 0, 60000))
	for i := range int32(7) {
		send(fmt.Sprintf("sequence %d again", i), 20000, 1, i)
	}
	send("the old epoch", 20000, 0, 0)
	send("a gap", 20000, 1, 8)
	send("the next", 20000, 1, 7)
	send("the other producer again", 20001, 0, 5)
	send("the other producer, next", 20001, 0, 6)
	send("the epoch before the last", 20002, 0, 1)
	send("the last epoch, next", 20002, 1, 1)
	c.Do("old records, a gap", 9, one(-1, topic, judge.Values("a").Idempotent(20003, 0, 5)))
	c.Do("old records, the sequence before", 9, one(-1, topic, judge.Values("a").Idempotent(20003, 0, 1)))
	c.Do("LogAppendTime again", 8, one(1, appendTime, judge.Values("a").Idempotent(20000, 0, 0)))
	c.Do("end after all that", 7, listOffsets(topic, -1))
}

// awaitProducerIDs returns once the broker gives out producer ids, for which Kafka needs its controller.
func awaitProducerIDs(e *judge.Env) {
	e.Await("producer ids", func() bool {
		return e.Quiet(4, newProducer(-1, -1, 60000)).(*kmsg.InitProducerIDResponse).ErrorCode == 0
	})
}
