package scenario

import (
	"fmt"
	"math"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("list-offsets", listOffsetsVersions)
	_ = judge.Register("list-offsets-timestamps", listOffsetsTimestamps)
	_ = judge.Register("list-offsets-append-time", listOffsetsAppendTime)
	_ = judge.Register("list-offsets-requests", listOffsetsRequests)
	_ = judge.Register("offset-for-leader-epoch", offsetForLeaderEpoch)
)

// anyOrder is for the answers of ListOffsets, which Kafka collects in hash maps.
var anyOrder = judge.Sorted("Topics", "Partitions")

// at asks for a timestamp of a partition.
func at(index int32, timestamp int64) kmsg.ListOffsetsRequestTopicPartition {
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = index, timestamp
	return p
}

func offsetsOf(topic judge.Topic, partitions ...kmsg.ListOffsetsRequestTopicPartition) *kmsg.ListOffsetsRequest {
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = topic.Name, partitions
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.Topics = -1, append(req.Topics, t)
	return req
}

// listOffsetsVersions asks every version for each special timestamp of a log with records and of an empty one.
func listOffsetsVersions(e *judge.Env) {
	topic := e.CreateTopic("t", 2)
	produced(e, topic, 0, judge.Values("a", "b"), judge.Values("c").At(judge.Base+500), judge.Values("d").At(judge.Base+10))
	unknown := judge.Topic{Name: e.Name("none")}
	c := e.Conn()
	for v := int16(1); v <= 11; v++ {
		for _, timestamp := range []int64{-1, -2, -3, -4, -5, -6, -7, math.MinInt64, 0, judge.Base, judge.Base + 1, judge.Base + 501, math.MaxInt64} {
			c.Do(fmt.Sprintf("v%d timestamp %d", v, timestamp), v, offsetsOf(topic, at(0, timestamp), at(1, timestamp)), anyOrder)
		}
		committed := offsetsOf(topic, at(0, -1), at(0, judge.Base))
		committed.IsolationLevel = 1
		committed.Topics[0].Partitions[1].Partition = 1
		c.Do(fmt.Sprintf("v%d read_committed", v), v, committed, anyOrder)
		c.Do(fmt.Sprintf("v%d unknown topic", v), v, offsetsOf(unknown, at(0, -1)), anyOrder)
		c.Do(fmt.Sprintf("v%d unknown partitions", v), v, offsetsOf(topic, at(2, -1), at(-1, -1), at(0, -1)), anyOrder)
		c.Do(fmt.Sprintf("v%d a partition twice", v), v, offsetsOf(topic, at(0, -1), at(1, -1), at(0, -2)), anyOrder)
	}
}

// listOffsetsTimestamps looks for timestamps before, at, between and after those of records, in and out of order, compressed and not.
func listOffsetsTimestamps(e *judge.Env) {
	c := e.Conn()
	for _, codec := range []int16{0, 1, 4} {
		topic := e.CreateTopic(fmt.Sprintf("codec%d", codec), 1)
		spread := judge.Values("a", "b", "c", "d").Codec(codec).With(func(b *judge.Batch) {
			for i, delta := range []int64{0, 10, 10, 5} { // two with the greatest, and one that is earlier than the one before
				b.Records[i].TimestampDelta = delta
			}
			b.MaxTimestamp = b.BaseTimestamp + 10
		})
		produced(e, topic, 0, spread, judge.Values("e", "f").Codec(codec).At(judge.Base+100), judge.Values("g").Codec(codec).At(judge.Base+50),
			judge.Values("h").Codec(codec).At(judge.Base+101))
		for _, delta := range []int64{-1, 0, 1, 5, 6, 9, 10, 11, 49, 50, 51, 99, 100, 101, 102} {
			c.Do(fmt.Sprintf("codec %d, %+d", codec, delta), 7, offsetsOf(topic, at(0, judge.Base+delta)), anyOrder)
		}
		c.Do(fmt.Sprintf("codec %d, greatest", codec), 7, offsetsOf(topic, at(0, -3)), anyOrder)
	}
	zero := e.CreateTopic("zero", 1)
	produced(e, zero, 0, judge.Values("a").At(0), judge.Values("b").At(0).With(func(b *judge.Batch) { b.BaseTimestamp, b.MaxTimestamp = -1, -1 }))
	for _, timestamp := range []int64{-1, -2, -3, 0, 1} {
		c.Do(fmt.Sprintf("records at 0 and -1, timestamp %d", timestamp), 7, offsetsOf(zero, at(0, timestamp)), anyOrder)
	}
	segments := e.CreateTopic("segments", 1, "segment.bytes", "1048576")
	big := strings.Repeat("z", 700_000)
	produced(e, segments, 0, judge.Values(big).At(judge.Base+10), judge.Values(big).At(judge.Base+30), judge.Values(big).At(judge.Base+20), judge.Values("last").At(judge.Base+5))
	for _, delta := range []int64{0, 5, 10, 11, 20, 21, 30, 31} {
		c.Do(fmt.Sprintf("segments, %+d", delta), 7, offsetsOf(segments, at(0, judge.Base+delta)), anyOrder)
	}
	c.Do("segments, greatest", 7, offsetsOf(segments, at(0, -3)), anyOrder)
}

// listOffsetsAppendTime looks for times in a log that has the broker's own.
func listOffsetsAppendTime(e *judge.Env) {
	topic := e.CreateTopic("t", 1, "message.timestamp.type", "LogAppendTime")
	produced(e, topic, 0, judge.Values("a", "b"))
	c := e.Conn()
	for _, v := range []int16{1, 7, 11} {
		for _, timestamp := range []int64{-1, -2, 0, judge.Base, judge.Base + 1} {
			c.Do(fmt.Sprintf("v%d timestamp %d", v, timestamp), v, offsetsOf(topic, at(0, timestamp)), anyOrder)
		}
		c.Do(fmt.Sprintf("v%d an hour ago", v), v, offsetsOf(topic, at(0, e.Now(-1))), anyOrder)
		c.Do(fmt.Sprintf("v%d in an hour", v), v, offsetsOf(topic, at(0, e.Now(1))), anyOrder)
		if v >= 7 {
			c.Do(fmt.Sprintf("v%d greatest", v), v, offsetsOf(topic, at(0, -3)), anyOrder)
		}
	}
}

// listOffsetsRequests has everything else of the request: epochs, replicas, isolation levels, timeouts, topics.
func listOffsetsRequests(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	produced(e, topic, 0, judge.Values("a"))
	c := e.Conn()
	for _, v := range []int16{4, 11} {
		for _, epoch := range []int32{-2, -1, 0, 1, 99} {
			for _, timestamp := range []int64{-1, -2, 0, -9} {
				p := at(0, timestamp)
				p.CurrentLeaderEpoch = epoch
				c.Do(fmt.Sprintf("v%d epoch %d, timestamp %d", v, epoch, timestamp), v, offsetsOf(topic, p), anyOrder)
			}
		}
	}
	for _, replica := range []int32{-2, -3, 0, 1, 5} {
		for _, v := range []int16{1, 11} {
			req := offsetsOf(topic, at(0, -1), at(3, -1))
			req.ReplicaID = replica
			c.Do(fmt.Sprintf("v%d replica %d", v, replica), v, req, anyOrder)
		}
	}
	for _, level := range []int8{-1, 2} {
		req := offsetsOf(topic, at(0, -1))
		req.IsolationLevel = level
		c.Do(fmt.Sprintf("isolation level %d", level), 5, req, anyOrder)
	}
	for _, timeout := range []int32{-1, 1} {
		req := offsetsOf(topic, at(0, -1))
		req.TimeoutMillis = timeout
		c.Do(fmt.Sprintf("timeout %d", timeout), 10, req, anyOrder)
	}
	none := kmsg.NewPtrListOffsetsRequest()
	none.ReplicaID = -1
	c.Do("no topics", 7, none, anyOrder)
	twice := offsetsOf(topic, at(0, -1))
	twice.Topics = append(twice.Topics, offsetsOf(topic, at(0, -2)).Topics...)
	c.Do("a topic twice", 7, twice, anyOrder)
	c.Do("no partitions", 7, offsetsOf(topic), anyOrder)
	for _, name := range []string{"", "a b", ".", strings.Repeat("x", 250)} {
		c.Do(fmt.Sprintf("name %.10q", name), 7, offsetsOf(judge.Topic{Name: name}, at(0, -1)), anyOrder)
	}
	mixed := offsetsOf(topic, at(9, -1), at(0, -2))
	mixed.Topics = append(offsetsOf(judge.Topic{Name: e.Name("none")}, at(0, -1)).Topics, mixed.Topics...)
	c.Do("known and unknown", 7, mixed, anyOrder)
}

// offsetForLeaderEpoch asks every version for epochs past, present and future.
func offsetForLeaderEpoch(e *judge.Env) {
	topic, empty := e.CreateTopic("t", 1), e.CreateTopic("empty", 1)
	produced(e, topic, 0, judge.Values("a", "b"))
	ask := func(name string, index, epoch, current, replica int32) *kmsg.OffsetForLeaderEpochRequest {
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.Partition, p.LeaderEpoch, p.CurrentLeaderEpoch = index, epoch, current
		t := kmsg.NewOffsetForLeaderEpochRequestTopic()
		t.Topic, t.Partitions = name, append(t.Partitions, p)
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.ReplicaID, req.Topics = replica, append(req.Topics, t)
		return req
	}
	c := e.Conn()
	for v := int16(2); v <= 4; v++ {
		for _, epoch := range []int32{-2, -1, 0, 1, 99} {
			c.Do(fmt.Sprintf("v%d epoch %d", v, epoch), v, ask(topic.Name, 0, epoch, -1, -1))
			c.Do(fmt.Sprintf("v%d empty log, epoch %d", v, epoch), v, ask(empty.Name, 0, epoch, -1, -1))
			c.Do(fmt.Sprintf("v%d current epoch %d", v, epoch), v, ask(topic.Name, 0, 0, epoch, -1))
		}
		c.Do(fmt.Sprintf("v%d both epochs wrong", v), v, ask(topic.Name, 0, 5, 5, -1))
		c.Do(fmt.Sprintf("v%d as replica 5", v), v, ask(topic.Name, 0, 0, -1, 5))
		c.Do(fmt.Sprintf("v%d as a debugging consumer", v), v, ask(topic.Name, 0, 0, -1, -2))
		c.Do(fmt.Sprintf("v%d unknown topic", v), v, ask(e.Name("none"), 0, 0, -1, -1))
		c.Do(fmt.Sprintf("v%d invalid topic", v), v, ask("a b", 0, 0, -1, -1))
		c.Do(fmt.Sprintf("v%d unknown partition", v), v, ask(topic.Name, 1, 0, -1, -1))
		twice := ask(topic.Name, 0, 0, -1, -1)
		twice.Topics[0].Partitions = append(twice.Topics[0].Partitions, ask(topic.Name, 0, 1, -1, -1).Topics[0].Partitions...)
		twice.Topics[0].Partitions = append(twice.Topics[0].Partitions, ask(topic.Name, 7, 0, -1, -1).Topics[0].Partitions...)
		c.Do(fmt.Sprintf("v%d a partition twice, and an unknown one", v), v, twice)
		mixed := ask(e.Name("none"), 0, 0, -1, -1)
		mixed.Topics = append(mixed.Topics, twice.Topics...)
		c.Do(fmt.Sprintf("v%d an unknown topic first", v), v, mixed)
		c.Do(fmt.Sprintf("v%d no topics", v), v, kmsg.NewPtrOffsetForLeaderEpochRequest())
	}
}
