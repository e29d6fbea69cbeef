package scenario

import (
	"fmt"
	"math"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var (
	_ = judge.Register("delete-records", deleteRecords)
	_ = judge.Register("delete-records-requests", deleteRecordsRequests)
	_ = judge.Register("delete-records-effect", deleteRecordsEffect)
	_ = judge.Register("delete-records-segments", deleteRecordsSegments)
	_ = judge.Register("delete-records-producers", deleteRecordsProducers)
	_ = judge.RegisterOwn("delete-records-restart", target.Options{Properties: shortOfRetention}, deleteRecordsRestart)
)

// shortOfRetention keeps Kafka from looking for old records, which it would do half a minute after its start.
var shortOfRetention = map[string]string{"log.initial.task.delay.ms": "86400000"}

// upTo asks for a partition to begin at an offset.
func upTo(index int32, offset int64) kmsg.DeleteRecordsRequestTopicPartition {
	return kmsg.DeleteRecordsRequestTopicPartition{Partition: index, Offset: offset}
}

func dropTopic(name string, partitions ...kmsg.DeleteRecordsRequestTopicPartition) kmsg.DeleteRecordsRequestTopic {
	return kmsg.DeleteRecordsRequestTopic{Topic: name, Partitions: partitions}
}

func drop(topics ...kmsg.DeleteRecordsRequestTopic) *kmsg.DeleteRecordsRequest {
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics, req.TimeoutMillis = topics, 30000
	return req
}

// deleteRecords asks every version for offsets within, at and beyond the ends of a log.
func deleteRecords(e *judge.Env) {
	c := e.Conn()
	for v := int16(0); v <= 2; v++ {
		topic := e.CreateTopic(fmt.Sprintf("v%d", v), 3)
		produced(e, topic, 0, judge.Values("a", "b"), judge.Values("c", "d", "e"), judge.Values("f"))
		produced(e, topic, 1, judge.Values("a"))
		do := func(step string, topics ...kmsg.DeleteRecordsRequestTopic) {
			c.Do(fmt.Sprintf("v%d %s", v, step), v, drop(topics...), anyOrder)
		}
		for i, offset := range []int64{0, -2, -3, math.MinInt64, 7, math.MaxInt64, 1, 1, 0, 3, 2, -2, 5, 6, 6, 0, 7, -1} {
			step := fmt.Sprintf("move %d, to %d", i+1, offset)
			do(step, dropTopic(topic.Name, upTo(0, offset)))
			c.Do(fmt.Sprintf("v%d %s: start", v, step), 7, listOffsets(topic, -2))
		}
		for _, offset := range []int64{1, -1, 0} {
			do(fmt.Sprintf("an empty log to %d", offset), dropTopic(topic.Name, upTo(2, offset)))
		}
		do("the end", dropTopic(topic.Name, upTo(1, -1)))
		produced(e, topic, 1, judge.Values("b"))
		do("the new end, and others", dropTopic(topic.Name, upTo(1, -1), upTo(0, 6), upTo(2, 9)))
	}
}

// deleteRecordsRequests has everything else of the request: topics and partitions that there are not, policies, repetitions, timeouts.
func deleteRecordsRequests(e *judge.Env) {
	c := e.Conn()
	none := e.Name("none")
	for v := int16(0); v <= 2; v++ {
		topic := e.CreateTopic(fmt.Sprintf("t%d", v), 2)
		produced(e, topic, 0, judge.Values("a", "b", "c", "d", "e", "f"))
		do := func(step string, req *kmsg.DeleteRecordsRequest) {
			c.Do(fmt.Sprintf("v%d %s", v, step), v, req, anyOrder)
		}
		do("no topics", drop())
		do("no partitions", drop(dropTopic(topic.Name)))
		do("no partitions of a topic that there is not", drop(dropTopic(none)))
		do("an unknown topic", drop(dropTopic(none, upTo(0, 1), upTo(1, -1))))
		for _, name := range []string{"", "a b", ".", strings.Repeat("x", 250), "__cluster_metadata"} {
			do(fmt.Sprintf("name %.20q", name), drop(dropTopic(name, upTo(0, 1))))
		}
		do("unknown partitions", drop(dropTopic(topic.Name, upTo(2, 0), upTo(-1, 0), upTo(math.MaxInt32, 0))))
		do("some of each", drop(dropTopic(none, upTo(0, 1)), dropTopic(topic.Name, upTo(7, 0), upTo(0, 1), upTo(1, 5))))
		do("a partition twice", drop(dropTopic(topic.Name, upTo(0, 3), upTo(0, 2))))
		do("a partition twice, the last is wrong", drop(dropTopic(topic.Name, upTo(0, 4), upTo(0, 99))))
		do("a partition twice, the first is wrong", drop(dropTopic(topic.Name, upTo(0, 99), upTo(0, 4))))
		do("a topic twice", drop(dropTopic(topic.Name, upTo(0, 5)), dropTopic(none, upTo(0, 0)), dropTopic(topic.Name, upTo(1, 0))))
		do("a partition twice, apart", drop(dropTopic(topic.Name, upTo(0, 5), upTo(1, 0)), dropTopic(topic.Name, upTo(0, 6))))
		for _, timeout := range []int32{0, 1, -1, math.MinInt32} {
			req := drop(dropTopic(topic.Name, upTo(0, 6), upTo(1, 0)))
			req.TimeoutMillis = timeout
			do(fmt.Sprintf("timeout %d", timeout), req)
		}
		for _, policy := range []string{"compact", "delete", "compact,delete", "delete,compact", ""} {
			t := e.CreateTopic(fmt.Sprintf("v%d-%s", v, strings.ReplaceAll(policy, ",", "-")), 1, "cleanup.policy", policy)
			produced(e, t, 0, judge.NewBatch(judge.KeyValue("k", "a"), judge.KeyValue("k", "b")))
			for _, offset := range []int64{-2, 3, 0, 1, -1} {
				do(fmt.Sprintf("cleanup.policy=%s to %d", policy, offset), drop(dropTopic(t.Name, upTo(0, offset), upTo(1, offset))))
			}
		}
	}
}

// deleteRecordsEffect looks at what is told of a log before and after each move of its start.
func deleteRecordsEffect(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	produced(e, topic, 0, judge.Values("a", "b").At(judge.Base+500), judge.Values("c", "d", "e").Codec(4), judge.Values("f").At(judge.Base+100), judge.Values("g", "h").At(judge.Base+50))
	c := e.Conn()
	for _, start := range []int64{0, 1, 2, 3, 5, 6, 7, 8} {
		step := func(what string) string { return fmt.Sprintf("start %d: %s", start, what) }
		c.Do(step("delete"), 2, drop(dropTopic(topic.Name, upTo(0, start))))
		seen(e, c, topic, step, start-1, start, start+1)
		for _, timestamp := range []int64{-3, -4, 0, judge.Base, judge.Base + 2, judge.Base + 51, judge.Base + 100, judge.Base + 500} {
			c.Do(step(fmt.Sprintf("timestamp %d", timestamp)), 8, listOffsets(topic, timestamp))
		}
	}
	produced(e, topic, 0, judge.Values("i", "j"))
	seen(e, c, topic, func(what string) string { return "more: " + what }, 7, 8, 9)
	c.Do("more: delete", 2, drop(dropTopic(topic.Name, upTo(0, 9))))
	seen(e, c, topic, func(what string) string { return "more is deleted: " + what }, 8, 9, 10)
	c.Do("a session", 13, func() kmsg.Request { r := fetch(topic, 9); r.SessionEpoch = 0; return r }())
}

// seen asks for all that tells where a log begins, and for records at some offsets.
func seen(e *judge.Env, c *judge.Conn, topic judge.Topic, step func(string) string, offsets ...int64) {
	c.Do(step("earliest"), 7, listOffsets(topic, -2))
	c.Do(step("latest"), 7, listOffsets(topic, -1))
	for _, offset := range offsets {
		for _, v := range []int16{4, 13, 18} {
			c.Do(step(fmt.Sprintf("fetch v%d at %d", v, offset)), v, fetch(topic, offset))
		}
	}
	for _, epoch := range []int32{-1, 0, 1} {
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.LeaderEpoch, p.CurrentLeaderEpoch = epoch, -1
		t := kmsg.NewOffsetForLeaderEpochRequestTopic()
		t.Topic, t.Partitions = topic.Name, append(t.Partitions, p)
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.ReplicaID, req.Topics = -1, append(req.Topics, t)
		c.Do(step(fmt.Sprintf("end of epoch %d", epoch)), 4, req)
	}
	logDir := kmsg.NewPtrDescribeLogDirsRequest()
	logDir.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: topic.Name, Partitions: []int32{0}}}
	c.Do(step("log dir"), 4, logDir, judge.Hidden("Dir", "TotalBytes", "UsableBytes"))
	rejected := produce(1, part{topic, 0, judge.Values("x").With(func(b *judge.Batch) { b.Count = 2 }).Bytes()})
	c.Do(step("log start of a refused batch"), 9, rejected)
}

// deleteRecordsSegments moves the start over whole segments.
func deleteRecordsSegments(e *judge.Env) {
	topic := e.CreateTopic("t", 1, "segment.bytes", "1048576")
	big := strings.Repeat("z", 700_000)
	for range 4 {
		produced(e, topic, 0, judge.Values("small", big))
	}
	c := e.Conn()
	for _, start := range []int64{1, 2, 5, 8} {
		c.Do(fmt.Sprintf("start %d", start), 2, drop(dropTopic(topic.Name, upTo(0, start))))
		c.Do(fmt.Sprintf("start %d: earliest", start), 7, listOffsets(topic, -2))
		c.Do(fmt.Sprintf("start %d: greatest", start), 7, listOffsets(topic, -3))
		c.Do(fmt.Sprintf("start %d: by time", start), 7, listOffsets(topic, judge.Base))
		below := fetch(topic, start-1)
		c.Do(fmt.Sprintf("start %d: fetch below", start), 13, below)
		first := fetch(topic, start)
		first.MaxBytes, first.Topics[0].Partitions[0].PartitionMaxBytes = 200, 100
		c.Do(fmt.Sprintf("start %d: fetch", start), 13, first)
	}
	produced(e, topic, 0, judge.Values("after"))
	c.Do("after: fetch", 13, fetch(topic, 8))
}

// deleteRecordsProducers looks at what is remembered of producers whose records were deleted.
func deleteRecordsProducers(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	c := e.Conn()
	send := func(step string, id int64, sequence int32) {
		c.Do(step, 9, one(-1, topic, judge.Values("a").Idempotent(id, 0, sequence).At(e.Now(0))))
	}
	for i := range int32(3) {
		send(fmt.Sprintf("sequence %d", i), 20000, i)
	}
	send("another producer", 20001, 5)
	for _, start := range []int64{1, 3, -1} {
		c.Do(fmt.Sprintf("delete to %d", start), 2, drop(dropTopic(topic.Name, upTo(0, start))))
		for i := range int32(3) {
			send(fmt.Sprintf("after %d: sequence %d again", start, i), 20000, i)
		}
		send(fmt.Sprintf("after %d: the other producer again", start), 20001, 5)
		send(fmt.Sprintf("after %d: a gap", start), 20000, 9)
	}
	send("the next", 20000, 3)
	send("the other producer, next", 20001, 6)
	c.Do("end", 7, listOffsets(topic, -1))
}

// deleteRecordsRestart looks at a log whose start was moved after a restart.
func deleteRecordsRestart(e *judge.Env) {
	some, all, never := e.CreateTopic("some", 1), e.CreateTopic("all", 1), e.CreateTopic("never", 1)
	for _, t := range []judge.Topic{some, all, never} {
		produced(e, t, 0, judge.Values("a", "b"), judge.Values("c", "d", "e"))
	}
	c := e.Conn()
	c.Do("delete", 2, drop(dropTopic(some.Name, upTo(0, 3)), dropTopic(all.Name, upTo(0, -1))), anyOrder)
	e.Restart()
	for _, t := range []judge.Topic{some, all, never} {
		e.AwaitTopic(t.Name, 1)
		c.Do(t.Name+": earliest", 1, listOffsets(t, -2)) // a version without the epoch
		c.Do(t.Name+": latest", 1, listOffsets(t, -1))
		for _, offset := range []int64{0, 2, 3, 5, 6} {
			c.Do(fmt.Sprintf("%s: fetch at %d", t.Name, offset), 13, fetch(t, offset))
		}
		c.Do(t.Name+": to 2", 2, drop(dropTopic(t.Name, upTo(0, 2))))
	}
	produced(e, all, 0, judge.Values("f"))
	c.Do("all: fetch what came after", 11, fetch(all, 5))
}
