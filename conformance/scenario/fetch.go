package scenario

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("fetch-versions", fetchVersions)
	_ = judge.Register("fetch-offsets", fetchOffsets)
	_ = judge.Register("fetch-limits", fetchLimits)
	_ = judge.Register("fetch-wait", fetchWait)
	_ = judge.Register("fetch-epochs", fetchEpochs)
	_ = judge.Register("fetch-segments", fetchSegments)
	_ = judge.Register("fetch-codecs", fetchCodecs)
	_ = judge.Register("fetch-max-bytes", fetchMaxBytes)
)

// fetchVersions asks every version for what is there and for what is not.
func fetchVersions(e *judge.Env) {
	topic := e.CreateTopic("t", 2)
	produced(e, topic, 0, judge.Values("a", "b"), judge.Values("c"))
	unknown := judge.Topic{Name: e.Name("none"), ID: unknownID}
	c := e.Conn()
	for v := int16(4); v <= 18; v++ {
		c.Do(fmt.Sprintf("v%d", v), v, fetchPartitions(topic, from(0, 0), from(1, 0)))
		committed := fetchPartitions(topic, from(0, 2), from(1, 0))
		committed.IsolationLevel = 1
		c.Do(fmt.Sprintf("v%d read_committed", v), v, committed)
		c.Do(fmt.Sprintf("v%d out of range", v), v, fetchPartitions(topic, from(0, 4)))
		c.Do(fmt.Sprintf("v%d unknown topic", v), v, fetchPartitions(unknown, from(0, 0)))
		c.Do(fmt.Sprintf("v%d unknown partition", v), v, fetchPartitions(topic, from(2, 0)))
		c.Do(fmt.Sprintf("v%d one of each", v), v, andFetch(fetchPartitions(unknown, from(0, 0)), topic, from(7, 0), from(0, 2), from(0, 9), from(-1, 0)))
		none := kmsg.NewPtrFetchRequest()
		none.SessionEpoch = -1
		c.Do(fmt.Sprintf("v%d nothing", v), v, none)
		for _, x := range []struct {
			as string
			id int32
		}{{"this broker", 1}, {"another broker", 5}, {"a debugging consumer", -2}} {
			replica := fetchPartitions(topic, from(0, 0))
			if replica.ReplicaID = x.id; v >= 15 { // the tag is an error before
				replica.ReplicaState.ID = x.id
			}
			c.Do(fmt.Sprintf("v%d as %s", v, x.as), v, replica)
		}
	}
	zero := judge.Topic{}
	c.Do("empty name", 12, fetchPartitions(zero, from(0, 0)))
	c.Do("zero id", 13, fetchPartitions(zero, from(0, 0)))
	c.Do("invalid name", 12, fetchPartitions(judge.Topic{Name: "a b"}, from(0, 0)))
	for _, level := range []int8{-1, 2, 127} {
		req := fetchPartitions(topic, from(0, 0))
		req.IsolationLevel = level
		c.Do(fmt.Sprintf("isolation level %d", level), 12, req)
	}
	tagged := fetchPartitions(topic, from(0, 0))
	tagged.ReplicaID, tagged.ReplicaState.ID = 5, 5
	c.Do("v14 with a tag of v15", 14, tagged)
	cluster := fetchPartitions(topic, from(0, 0))
	cluster.ClusterID = kmsg.StringPtr("AAAAAAAAAAAAAAAAAAAAAA")
	c.Do("with another cluster's id", 12, cluster)
	rack := fetchPartitions(topic, from(0, 0))
	rack.Rack = "somewhere"
	c.Do("with a rack", 12, rack)
}

// fetchOffsets reads from before, in, between and after batches.
func fetchOffsets(e *judge.Env) {
	topic := e.CreateTopic("t", 2)
	produced(e, topic, 0, judge.Values("a", "b", "c"), judge.Values("d"), judge.Values("e", "f"))
	c := e.Conn()
	for offset := int64(-2); offset <= 8; offset++ {
		c.Do(fmt.Sprintf("offset %d", offset), 12, fetchPartitions(topic, from(0, offset)))
	}
	for _, offset := range []int64{-1, 0, 1} {
		c.Do(fmt.Sprintf("of an empty log, offset %d", offset), 12, fetchPartitions(topic, from(1, offset)))
	}
	twice := fetchPartitions(topic, from(0, 0), from(0, 4))
	c.Do("the same partition twice", 12, twice)
	c.Do("the same partition twice, in two entries", 12, andFetch(fetchPartitions(topic, from(0, 0), from(1, 0)), topic, from(0, 5)))
	c.Do("the same partition twice, by id", 13, twice)
}

// fetchLimits reads with limits below, at and above the sizes of batches (KIP-74).
func fetchLimits(e *judge.Env) {
	topic := e.CreateTopic("t", 3)
	big := strings.Repeat("x", 1000)
	for p := int32(1); p < 3; p++ {
		produced(e, topic, p, judge.Values(big), judge.Values(big), judge.Values("small"))
	}
	one := batchSize(judge.Values(big))
	c := e.Conn()
	type limit struct {
		step         string
		maxBytes     int32
		partitionMax int32
	}
	for _, x := range []limit{
		{"enough", 1 << 20, 1 << 20},
		{"max bytes 0", 0, 1 << 20},
		{"max bytes 1", 1, 1 << 20},
		{"max bytes -1", -1, 1 << 20},
		{"max bytes of a batch less one", one - 1, 1 << 20},
		{"max bytes of a batch", one, 1 << 20},
		{"max bytes of a batch and ten bytes", one + 10, 1 << 20},
		{"max bytes of a batch and a header", one + 61, 1 << 20},
		{"max bytes of three batches", 3 * one, 1 << 20},
		{"max bytes of three and a half batches", 3*one + one/2, 1 << 20},
		{"max bytes of a partition and ten bytes", 2*one + batchSize(judge.Values("small")) + 10, 1 << 20},
		{"max bytes of a partition and 100 bytes", 2*one + batchSize(judge.Values("small")) + 100, 1 << 20},
		{"partition max bytes 0", 1 << 20, 0},
		{"partition max bytes 1", 1 << 20, 1},
		{"partition max bytes -1", 1 << 20, -1},
		{"partition max bytes of a batch less one", 1 << 20, one - 1},
		{"partition max bytes of a batch", 1 << 20, one},
		{"partition max bytes of a batch and ten bytes", 1 << 20, one + 10},
		{"partition max bytes of two batches", 1 << 20, 2 * one},
		{"both 0", 0, 0},
		{"both -1", -1, -1},
	} {
		parts := []kmsg.FetchRequestTopicPartition{from(0, 0), from(1, 0), from(2, 0)}
		for i := range parts {
			parts[i].PartitionMaxBytes = x.partitionMax
		}
		req := fetchPartitions(topic, parts...)
		req.MaxBytes = x.maxBytes
		c.Do(x.step, 12, req)
		req.IsolationLevel = 1
		c.Do(x.step+", read_committed", 12, req)
	}
	small, first := from(1, 1), from(2, 0)
	small.PartitionMaxBytes = one + 5
	c.Do("each with its own limit", 12, fetchPartitions(topic, small, first))
	req := fetchPartitions(topic, from(2, 3), from(1, 9), from(2, 1))
	req.MaxBytes = 1
	c.Do("an end, an error and a small limit", 12, req)
	inside := fetchPartitions(topic, from(1, 2))
	inside.MaxBytes = 20
	c.Do("the last batch is larger than the limit", 12, inside)
}

func batchSize(b *judge.Batch) int32 { return int32(len(b.Bytes())) }

// fetchWait has fetches wait for data that comes, and for data that does not. A wait that has to end by itself is short, one that has to be ended is long.
func fetchWait(e *judge.Env) {
	topic := e.CreateTopic("t", 3)
	produced(e, topic, 0, judge.Values("a"))
	one := batchSize(judge.Values("a"))
	c := e.Conn()
	wait := func(millis, minBytes int32, parts ...kmsg.FetchRequestTopicPartition) *kmsg.FetchRequest {
		req := fetchPartitions(topic, parts...)
		req.MaxWaitMillis, req.MinBytes = millis, minBytes
		return req
	}
	const short, least = 500, 400 * time.Millisecond
	for _, x := range []struct {
		step string
		req  *kmsg.FetchRequest
	}{
		{"at the end", wait(short, 1, from(0, 1))},
		{"at the end, min bytes 0", wait(short, 0, from(0, 1))},
		{"at the end, min bytes -1", wait(short, -1, from(0, 1))},
		{"at the end, max wait 0", wait(0, 1, from(0, 1))},
		{"at the end, max wait -1", wait(-1, 1, from(0, 1))},
		{"min bytes are there", wait(short, one, from(0, 0))},
		{"one byte is missing", wait(short, one+1, from(0, 0))},
		{"an error", wait(short, 1, from(0, 1), from(0, 5), from(1, 0))},
		{"out of range alone", wait(short, 1, from(0, 5))},
		{"an unknown partition beside an end", wait(short, 1, from(9, 0), from(0, 1))},
		{"an unknown partition alone", wait(short, 1, from(9, 0))},
		{"nothing", wait(short, 1)},
	} {
		waited(e, c, x.step, x.step, least, x.req)
	}
	limited := wait(short, one+1, from(0, 0))
	limited.MaxBytes = one
	waited(e, c, "min bytes above max bytes", "min bytes above max bytes", least, limited)
	capped := wait(short, one, from(0, 0))
	capped.Topics[0].Partitions[0].PartitionMaxBytes = one / 2
	waited(e, c, "min bytes above the limit of the partition", "min bytes above the limit of the partition", least, capped)
	committed := wait(short, 1, from(0, 1))
	committed.IsolationLevel = 1
	waited(e, c, "read_committed at the end", "read_committed at the end", least, committed)

	const long = 30_000
	ended := func(step string, version int16, req *kmsg.FetchRequest, by int16, end kmsg.Request) {
		during(e, c, step, version, req, by, end)
	}
	ended("woken by an append", 12, wait(long, 1, from(1, 0)), 13, one1(topic, 1, "b"))
	ended("woken by an append to another of its partitions", 18, wait(long, 1, from(0, 1), from(1, 1), from(2, 0)), 13, one1(topic, 2, "c"))
	ended("woken by the bytes that were missing", 12, wait(long, 2*one, from(2, 0)), 13, one1(topic, 2, "d"))
	del := kmsg.NewPtrDeleteTopicsRequest()
	doomed := e.CreateTopic("doomed", 1)
	del.TopicNames, del.TimeoutMillis = []string{doomed.Name}, 30000
	atDoomed := fetchPartitions(doomed, from(0, 0))
	atDoomed.MaxWaitMillis, atDoomed.MinBytes = long, 1
	ended("ended by the end of the topic", 12, atDoomed, 4, del)

	c.Pipeline("a fetch that waits before one that does not", 12, wait(short, 1, from(0, 1)), wait(0, 0, from(0, 0)), nothing())
	e.Await("end of the log", func() bool {
		resp := e.Quiet(12, atDoomed).(*kmsg.FetchResponse)
		return resp.Topics[0].Partitions[0].ErrorCode == 3
	})
	c.Do("of a topic that is gone", 12, atDoomed)
	c.Do("of a topic that is gone, by id", 13, atDoomed)
}

func one1(topic judge.Topic, index int32, value string) *kmsg.ProduceRequest {
	return produce(1, part{topic, index, judge.Values(value).Bytes()})
}

// fetchEpochs has epochs that are right, past and future (KIP-320, KIP-595).
func fetchEpochs(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	produced(e, topic, 0, judge.Values("a", "b"))
	c := e.Conn()
	for _, v := range []int16{9, 12, 16, 18} {
		for _, epoch := range []int32{-2, -1, 0, 1, 99} {
			p := from(0, 1)
			p.CurrentLeaderEpoch = epoch
			c.Do(fmt.Sprintf("v%d current leader epoch %d", v, epoch), v, fetchPartitions(topic, p))
			p.FetchOffset = 99
			c.Do(fmt.Sprintf("v%d current leader epoch %d, out of range", v, epoch), v, fetchPartitions(topic, p))
		}
	}
	for _, v := range []int16{12, 18} {
		for _, epoch := range []int32{-2, -1, 0, 1} {
			for _, offset := range []int64{-1, 0, 2, 3} {
				p := from(0, offset)
				p.LastFetchedEpoch = epoch
				c.Do(fmt.Sprintf("v%d last fetched epoch %d, offset %d", v, epoch, offset), v, fetchPartitions(topic, p))
			}
		}
	}
	empty := e.CreateTopic("empty", 1)
	for _, epoch := range []int32{0, 1} {
		p := from(0, 0)
		p.LastFetchedEpoch = epoch
		c.Do(fmt.Sprintf("of an empty log, last fetched epoch %d", epoch), 12, fetchPartitions(empty, p))
	}
}

// fetchSegments reads over the boundaries of segments: a read ends with its segment.
func fetchSegments(e *judge.Env) {
	topic := e.CreateTopic("t", 2, "segment.bytes", "1048576")
	big := strings.Repeat("y", 400_000)
	produced(e, topic, 0, judge.Values(big), judge.Values(big), judge.Values(big), judge.Values("after"))
	produced(e, topic, 1, judge.Values("other"))
	c := e.Conn()
	read := func(step string, offset int64, parts ...kmsg.FetchRequestTopicPartition) {
		p := from(0, offset)
		p.PartitionMaxBytes = 10 << 20
		req := fetchPartitions(topic, append([]kmsg.FetchRequestTopicPartition{p}, parts...)...)
		req.MaxBytes = 10 << 20
		c.Do(step, 12, req)
		req.MaxWaitMillis, req.MinBytes = 500, 1<<20
		waited(e, c, step, step+", of a MiB at least", 400*time.Millisecond, req)
	}
	read("from the start", 0)
	read("from the end of the first segment", 1)
	read("from the second segment", 2)
	read("from the start, with another partition", 0, from(1, 0))
}

// fetchCodecs reads what was produced with every codec at the oldest and the newest version.
func fetchCodecs(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	for codec := range int16(5) {
		produced(e, topic, 0, judge.Values("a", "b").Codec(codec))
	}
	c := e.Conn()
	for _, v := range []int16{4, 9, 10, 18} {
		c.Do(fmt.Sprintf("v%d", v), v, fetchPartitions(topic, from(0, 0)))
	}
}

// fetchMaxBytes asks for more than a broker sends at once (fetch.max.bytes).
func fetchMaxBytes(e *judge.Env) {
	topic := e.CreateTopic("t", 2)
	big := strings.Repeat("z", 1_000_000)
	for range 60 {
		produced(e, topic, 0, judge.Values(big))
	}
	produced(e, topic, 1, judge.Values("other"))
	all, other := from(0, 0), from(1, 0)
	all.PartitionMaxBytes = math.MaxInt32
	req := fetchPartitions(topic, all, other)
	req.MaxBytes = math.MaxInt32
	c := e.Conn()
	c.Do("all", 12, req)
	req.MinBytes, req.MaxWaitMillis = math.MaxInt32, 30_000
	c.Do("more than there may be, and a long wait", 12, req)
	req.Topics[0].Partitions[0].FetchOffset = 59
	c.Do("the last and the other", 12, fetchPartitions(topic, req.Topics[0].Partitions...))
}
