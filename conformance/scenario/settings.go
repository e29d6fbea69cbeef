package scenario

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// settings has the settings that both brokers know by other values than the default.
var _ = judge.RegisterOwn("broker-settings", target.Options{
	Flags: []string{"--num-partitions", "3", "--segment-bytes", "2097152", "--segment-ms", "3600000", "--retention-ms", "7200000", "--retention-bytes", "1000000000",
		"--index-interval-bytes", "1000", "--message-max-bytes", "5000", "--socket-request-max-bytes", "20000", "--strict-replication"},
	Properties: map[string]string{"num.partitions": "3", "log.segment.bytes": "2097152", "log.roll.ms": "3600000", "log.retention.ms": "7200000",
		"log.retention.bytes": "1000000000", "log.index.interval.bytes": "1000", "message.max.bytes": "5000", "socket.request.max.bytes": "20000"},
}, settings)

// settings shows where settings of the broker are seen: as defaults of topics, in DescribeConfigs, as limits.
func settings(e *judge.Env) {
	c := e.Conn()
	name := e.Name("defaults")
	for v := int16(4); v <= 7; v++ {
		c.Do(fmt.Sprintf("v%d validate only", v), v, validate(newTopic(name, -1, -1)))
	}
	c.Do("with configs", 7, validate(newTopic(name, 2, 1, "retention.ms", "5", "segment.bytes", "1048576")))
	c.Do("created", 4, create(newTopic(name, -1, -1, "retention.ms", "5", "max.message.bytes", "4000")))
	e.AwaitTopic(name, 3)
	c.Do("it is there", 9, metadataOf(name))
	auto := metadataOf(e.Name("auto"))
	auto.AllowAutoTopicCreation = true
	e.Quiet(9, auto)
	e.AwaitTopic(e.Name("auto"), 3)
	c.Do("created by Metadata", 9, auto)
	keys := []string{"retention.ms", "retention.bytes", "segment.bytes", "segment.ms", "index.interval.bytes", "max.message.bytes", "segment.jitter.ms"}
	brokerKeys := []string{"log.retention.ms", "log.retention.minutes", "log.retention.hours", "log.retention.bytes", "log.segment.bytes", "log.roll.ms", "log.roll.hours",
		"log.index.interval.bytes", "message.max.bytes", "num.partitions", "socket.request.max.bytes", "log.roll.jitter.ms", "log.roll.jitter.hours"}
	for _, v := range []int16{1, 4} {
		c.Do(fmt.Sprintf("v%d configs of a topic", v), v, everything(describe(resource(topicResource, name, keys...))), asListed()...)
		c.Do(fmt.Sprintf("v%d configs of another topic", v), v, everything(describe(resource(topicResource, e.Name("auto"), keys...))), asListed()...)
		c.Do(fmt.Sprintf("v%d configs of the broker", v), v, everything(describe(resource(brokerResource, "1", brokerKeys...))), asListed()...)
	}
	for _, n := range []int16{2, 3, 32767} {
		c.Do(fmt.Sprintf("replication factor %d", n), 7, validate(newTopic(e.Name("replicas"), 1, n)))
	}
	c.Do("a partition too many", 4, validate(newTopic(e.Name("a"), 9998, 1), newTopic(e.Name("b"), -1, 1)))
	c.Do("as many as there may be", 4, validate(newTopic("a b", 9997, 1), newTopic(e.Name("b"), -1, 1)))
	limits(e, c, judge.Topic{Name: name}, 4000)
	limits(e, c, judge.Topic{Name: e.Name("auto")}, 5000)
	c.Raw("a request of the largest size", frameOf(20000))
	c.Raw("a request too large", frameOf(20001))
}

// limits appends batches at the limit of the topic and above.
func limits(e *judge.Env, c *judge.Conn, topic judge.Topic, limit int) {
	overhead := len(judge.Values(strings.Repeat("x", 3000)).Bytes()) - 3000
	for _, n := range []int{limit, limit + 1} {
		batch := judge.Values(strings.Repeat("x", n-overhead))
		c.Do(fmt.Sprintf("a batch of %d bytes where %d may be", len(batch.Bytes()), limit), 9, one(1, topic, batch))
	}
	c.Do(fmt.Sprintf("end offset where %d may be", limit), 7, listOffsets(topic, -1))
}

// frameOf is an ApiVersions request of a version that is not there, whose frame has so many bytes after its size.
func frameOf(n int) []byte {
	header := len(judge.Frame(kmsg.ApiVersions.Int16(), 6, 1, true, nil)) - 4
	return judge.Frame(kmsg.ApiVersions.Int16(), 6, 1, true, make([]byte, n-header))
}
