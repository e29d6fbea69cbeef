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

// during sends a request, which the broker parks, and another one on a connection of its own once there was time for that. What comes of the
// first is recorded. The order does not depend on how long the scenario itself is held up.
func during(e *judge.Env, c *judge.Conn, step string, version int16, parked kmsg.Request, otherVersion int16, other kmsg.Request) {
	other.SetVersion(otherVersion)
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("soon")).AppendRequest(nil, other, 1)
	p := c.Send(step, version, parked)
	time.Sleep(200 * time.Millisecond)
	if err := send(e.Addr, frame); err != nil {
		e.Fatalf("%s: %v", step, err)
	}
	p.Done()
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
	tell(c, step, time.Since(start) < least)
}

// waited tells, as the name of a step, whether a Fetch, which is a step too, waited at least so long. One that did is sent once more,
// unrecorded: a machine that was slow for a moment makes no wait of what is answered at once.
func waited(e *judge.Env, c *judge.Conn, step, fetch string, least time.Duration, req *kmsg.FetchRequest) {
	start := time.Now()
	c.Do(fetch, 12, req)
	for again := 0; time.Since(start) >= least && again < 1; again++ {
		start = time.Now()
		e.Quiet(12, req)
	}
	tell(c, step, time.Since(start) < least)
}

func tell(c *judge.Conn, step string, atOnce bool) {
	how := "not at once"
	if atOnce {
		how = "at once"
	}
	c.Do(fmt.Sprintf("%s: it was answered %s", step, how), 4, metadataNone())
}
