package scenario

import (
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

// from reads a partition of a topic from an offset on, a MiB at most.
func from(index int32, offset int64) kmsg.FetchRequestTopicPartition {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = index, offset, 1<<20
	return p
}

// fetchPartitions reads partitions of one topic, a MiB at most, without waiting and without a session.
func fetchPartitions(topic judge.Topic, partitions ...kmsg.FetchRequestTopicPartition) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.MinBytes, req.MaxBytes, req.SessionEpoch = 0, 1<<20, -1
	return andFetch(req, topic, partitions...)
}

// andFetch adds partitions of another topic.
func andFetch(req *kmsg.FetchRequest, topic judge.Topic, partitions ...kmsg.FetchRequestTopicPartition) *kmsg.FetchRequest {
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID, t.Partitions = topic.Name, topic.ID, partitions
	req.Topics = append(req.Topics, t)
	return req
}

// produced appends batches, unrecorded, and fails if they are not taken.
func produced(e *judge.Env, topic judge.Topic, index int32, batches ...*judge.Batch) {
	for _, b := range batches {
		resp := e.Quiet(13, produce(1, part{topic, index, b.Bytes()})).(*kmsg.ProduceResponse)
		if code := resp.Topics[0].Partitions[0].ErrorCode; code != 0 {
			e.Fatalf("produce to %s: %s", topic.Name, judge.ErrorName(code))
		}
	}
}

// soon sends a request at a version on a connection of its own, a moment from now: long enough for a fetch sent in between to be parked.
// What comes is told by the channel.
func soon(e *judge.Env, version int16, req kmsg.Request) <-chan error {
	req.SetVersion(version)
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("soon")).AppendRequest(nil, req, 1)
	done := make(chan error, 1)
	time.AfterFunc(200*time.Millisecond, func() { done <- send(e.Addr, frame) })
	return done
}

func send(addr string, frame []byte) error {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer nc.Close() //nolint:errcheck // it was answered
	if _, err := nc.Write(frame); err != nil {
		return err
	}
	_, err = nc.Read(make([]byte, 4))
	return err
}

// took tells, as the name of a step, whether an answer took at least so long.
func took(c *judge.Conn, step string, least time.Duration, ask func()) {
	start := time.Now()
	ask()
	how := "not at once"
	if time.Since(start) < least {
		how = "at once"
	}
	c.Do(fmt.Sprintf("%s: it was answered %s", step, how), 4, metadataNone())
}
