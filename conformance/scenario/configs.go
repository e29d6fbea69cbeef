package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("describe-configs", describeConfigs)
	_ = judge.Register("describe-configs-resources", describeConfigsResources)
	_ = judge.Register("topic-configs", topicConfigs)
	_ = judge.Register("topic-configs-stored", topicConfigsStored)
)

const (
	topicResource  = kmsg.ConfigResourceTypeTopic
	brokerResource = kmsg.ConfigResourceTypeBroker
)

// resource asks for a resource's configs: those of the keys, or all.
func resource(kind kmsg.ConfigResourceType, name string, keys ...string) kmsg.DescribeConfigsRequestResource {
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kind, name, keys
	return r
}

func describe(resources ...kmsg.DescribeConfigsRequestResource) *kmsg.DescribeConfigsRequest {
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Resources = resources
	return req
}

// everything asks for synonyms and texts too.
func everything(req *kmsg.DescribeConfigsRequest) *kmsg.DescribeConfigsRequest {
	req.IncludeSynonyms, req.IncludeDocumentation = true, true
	return req
}

// asListed are the options of every answer: Kafka lists configs in the order of hash maps, and its texts are its own.
func asListed() []judge.Option {
	return []judge.Option{judge.Sorted("Configs"), judge.Texts("Documentation")}
}

// describeConfigs asks every version for topics' configs and this broker's.
func describeConfigs(e *judge.Env) {
	plain, set := e.CreateTopic("plain", 1), e.CreateTopic("set", 1, "retention.ms", "1000", "cleanup.policy", "compact", "segment.bytes", "2097152", "flush.ms", "5")
	c := e.Conn()
	keys := []string{"retention.ms", "cleanup.policy", "segment.bytes", "flush.ms", "max.message.bytes", "no.such.config", "internal.segment.bytes"}
	for v := int16(1); v <= 4; v++ {
		do := func(step string, req *kmsg.DescribeConfigsRequest) {
			c.Do(fmt.Sprintf("v%d %s", v, step), v, req, asListed()...)
		}
		do("some configs", describe(resource(topicResource, plain.Name, keys...), resource(topicResource, set.Name, keys...)))
		do("some configs with everything", everything(describe(resource(topicResource, set.Name, keys...))))
		texts := describe(resource(topicResource, plain.Name, "retention.ms"))
		texts.IncludeDocumentation = true
		do("texts alone", texts)
		do("some of the broker's", everything(describe(resource(brokerResource, "1", "log.retention.ms", "log.retention.hours", "message.max.bytes", "num.partitions", "nonsense"))))
		do("the cluster-wide ones", everything(describe(resource(brokerResource, ""))))
		do("unknown topic", describe(resource(topicResource, e.Name("none"))))
		do("invalid topic", describe(resource(topicResource, "a b")))
		do("other broker", describe(resource(brokerResource, "7")))
		do("no broker", describe(resource(brokerResource, "x")))
		do("nothing", describe())
	}
	c.Do("all of a topic", 4, everything(describe(resource(topicResource, plain.Name))), asListed()...)
	c.Do("all of a topic with configs", 4, everything(describe(resource(topicResource, set.Name))), asListed()...)
	c.Do("all of a topic, v1", 1, describe(resource(topicResource, plain.Name)), asListed()...)
	c.Do("the broker", 4, everything(describe(resource(brokerResource, "1", brokerNames...))), asListed()...)
	c.Do("the broker, v1", 1, describe(resource(brokerResource, "1", brokerNames...)), asListed()...)
	none := describe(resource(topicResource, plain.Name))
	none.Resources[0].ConfigNames = []string{}
	c.Do("an empty list of names", 4, none, asListed()...)
	c.Do("a name twice", 4, describe(resource(topicResource, plain.Name, "retention.ms", "retention.ms")), asListed()...)
	c.Do("a topic twice", 4, describe(resource(topicResource, plain.Name, "retention.ms"), resource(topicResource, plain.Name, "flush.ms")), asListed()...)
}

// describeConfigsResources asks for every type of resource that is and is not.
func describeConfigsResources(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	c := e.Conn()
	for kind := -1; kind <= 65; kind++ {
		if kind > 34 && kind < 63 {
			continue
		}
		c.Do(fmt.Sprintf("type %d, empty name", kind), 4, describe(resource(kmsg.ConfigResourceType(kind), "", "min.insync.replicas", "metrics")), asListed()...)
	}
	for _, kind := range []int{2, 4, 8, 16, 32} {
		for _, name := range []string{"1", "2", "x", "-1", " 1", "01", "+1", "a b", strings.Repeat("x", 300)} {
			keys := []string{"retention.ms", "num.partitions", "root", "metrics", "interval.ms", "match", "consumer.session.timeout.ms"}
			c.Do(fmt.Sprintf("type %d, name %.10q", kind, name), 4, everything(describe(resource(kmsg.ConfigResourceType(kind), name, keys...))), asListed()...)
		}
	}
	c.Do("all of a group", 4, everything(describe(resource(32, "g"))), asListed()...)
	c.Do("all of a client metrics subscription", 4, everything(describe(resource(16, "m"))), asListed()...)
	c.Do("a known and an unknown type", 4, describe(resource(topicResource, topic.Name, "retention.ms"), resource(77, "x")), asListed()...)
	c.Do("a known and an unknown topic", 4, describe(resource(topicResource, topic.Name, "retention.ms"), resource(topicResource, e.Name("none")), resource(brokerResource, "9")), asListed()...)
}

// brokerNames are the broker's configs that do not depend on how and where it was started, as far as ours has them too.
var brokerNames = []string{"auto.create.topics.enable", "compression.gzip.level", "compression.lz4.level", "compression.type", "compression.zstd.level",
	"default.replication.factor", "delete.topic.enable", "log.cleaner.delete.retention.ms", "log.cleaner.max.compaction.lag.ms", "log.cleaner.min.cleanable.ratio",
	"log.cleaner.min.compaction.lag.ms", "log.cleanup.policy", "log.flush.interval.messages", "log.flush.interval.ms", "log.flush.scheduler.interval.ms",
	"log.index.interval.bytes", "log.index.size.max.bytes", "log.local.retention.bytes", "log.local.retention.ms", "log.message.timestamp.after.max.ms",
	"log.message.timestamp.before.max.ms", "log.message.timestamp.type", "log.preallocate", "log.remote.copy.lag.bytes", "log.remote.copy.lag.ms", "log.retention.bytes",
	"log.retention.hours", "log.retention.minutes", "log.retention.ms", "log.roll.hours", "log.roll.jitter.hours", "log.roll.jitter.ms", "log.roll.ms",
	"log.segment.bytes", "log.segment.delete.delay.ms", "max.decompressed.message.bytes", "message.max.bytes", "min.insync.replicas", "num.partitions",
	"producer.id.expiration.ms", "socket.request.max.bytes", "unclean.leader.election.enable"}

// numbers are values around 0 and around the limits of types.
var numbers = []string{"-9223372036854775809", "-9223372036854775808", "-2147483649", "-2147483648", "-131073", "-131072", "-3", "-2", "-1", "0", "1", "3", "4", "9", "10", "17", "18", "22", "23",
	"1048575", "1048576", "2147483639", "2147483640", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808"}

// odd are values that are spelled oddly, or are of another type.
var odd = []string{"", " ", " 5", "5 ", "+5", "05", "5.0", "1e1", "0x5", "5,6", "5L", "nonsense", "true", "null", "1_000", "\u0665"}

// configNames are all topic configs, those of the past, and what looks like some.
var configNames = []string{"cleanup.policy", "compression.type", "compression.gzip.level", "compression.lz4.level", "compression.zstd.level", "delete.retention.ms",
	"file.delete.delay.ms", "flush.messages", "flush.ms", "follower.replication.throttled.replicas", "leader.replication.throttled.replicas", "index.interval.bytes",
	"local.retention.bytes", "local.retention.ms", "max.compaction.lag.ms", "max.message.bytes", "message.timestamp.after.max.ms", "message.timestamp.before.max.ms",
	"message.timestamp.type", "min.cleanable.dirty.ratio", "min.compaction.lag.ms", "min.insync.replicas", "preallocate", "remote.log.copy.disable",
	"remote.log.delete.on.disable", "remote.storage.enable", "retention.bytes", "retention.ms", "segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms",
	"unclean.leader.election.enable", "errors.deadletterqueue.group.enable", "max.decompressed.message.bytes", "remote.copy.lag.bytes", "remote.copy.lag.ms",
	"internal.segment.bytes"}

var pastNames = []string{"message.format.version", "message.timestamp.difference.max.ms", "message.downconversion.enable", "log.retention.ms", "Retention.ms", "retention.ms ",
	"retention", "num.partitions", "confluent.tier.enable"}

var ofType = map[string][]string{
	"cleanup.policy": {"compact", "delete", "compact,delete", "delete,compact", "compact, delete", " compact ", "delete,delete", "compact,delete,compact", "Compact", "DELETE", ",",
		"delete,", ",delete", "delete,,compact", "compact,nonsense", "none"},
	"compression.type":                        {"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer", "none", "GZIP", " gzip", "gzip ", "Producer"},
	"follower.replication.throttled.replicas": {"*", "0:1", "0:1,1:1", "0:1, 1:1", "*,0:1", "0:1,*", "0", ":", "0:", ":1", "a:b", "0:1:2", "0:1,", ",0:1", "-1:1", "0:1,0:1", "*,*", "none"},
	"message.timestamp.type":                  {"CreateTime", "LogAppendTime", "createtime", "LOGAPPENDTIME", "NoTimestampType", " CreateTime"},
	"min.cleanable.dirty.ratio":               {"0.0", "0.5", "1.0", "1.0001", "-0.1", "-0.0", ".5", "5e-1", "0.5f", "0.5d", "NaN", "Infinity", "0x1p-1", "0.50", "1e-400", "0,5"},
	"preallocate":                             {"false", "TRUE", "False", "yes", "on", " true ", "tru", "t"},
}

func init() {
	ofType["leader.replication.throttled.replicas"] = ofType["follower.replication.throttled.replicas"]
	for _, name := range []string{"remote.log.copy.disable", "remote.log.delete.on.disable", "remote.storage.enable", "unclean.leader.election.enable",
		"errors.deadletterqueue.group.enable"} {
		ofType[name] = ofType["preallocate"]
	}
}

// topicConfigs validates every config with every value, a topic for each.
func topicConfigs(e *judge.Env) {
	c := e.Conn()
	for _, name := range append(configNames, pastNames...) {
		values := append(append([]string{}, odd...), ofType[name]...)
		if ofType[name] == nil || name == "min.cleanable.dirty.ratio" {
			values = append(values, numbers...)
		}
		if !slices.Contains(configNames, name) {
			values = []string{"1", ""}
		}
		var topics []kmsg.CreateTopicsRequestTopic
		for _, value := range values {
			topics = append(topics, newTopic(e.Name(fmt.Sprintf("%d", len(topics))), 1, 1, name, value))
		}
		c.Do(fmt.Sprintf("%q", name), 4, validate(topics...))
	}
	for _, x := range [][]string{
		{"min.compaction.lag.ms", "10", "max.compaction.lag.ms", "5"},
		{"min.compaction.lag.ms", "5", "max.compaction.lag.ms", "5"},
		{"max.compaction.lag.ms", "5"},
		{"retention.ms", "5", "local.retention.ms", "6"},
		{"retention.ms", "-1", "local.retention.ms", "6"},
		{"retention.bytes", "5", "local.retention.bytes", "6"},
		{"retention.bytes", "5", "local.retention.bytes", "-1"},
		{"remote.storage.enable", "true", "cleanup.policy", "compact"},
		{"remote.log.copy.disable", "true", "local.retention.ms", "6"},
		{"segment.bytes", "1048576", "max.message.bytes", "2000000"},
		{"segment.jitter.ms", "10", "segment.ms", "5"},
		{"cleanup.policy", "", "retention.ms", "5"},
		{"message.timestamp.type", "LogAppendTime", "message.timestamp.before.max.ms", "0", "message.timestamp.after.max.ms", "0"},
		{"segment.bytes", "x", "segment.ms", "x", "cleanup.policy", "x"},
		{"zzz", "1", "segment.bytes", "x"},
	} {
		c.Do("together: "+strings.Join(x, " "), 4, validate(newTopic(e.Name("together"), 1, 1, x...)))
	}
}

// topicConfigsStored shows how valid values that are spelled oddly are shown.
func topicConfigsStored(e *judge.Env) {
	c := e.Conn()
	for i, x := range [][]string{
		{"cleanup.policy", "compact, delete", "compression.type", " gzip", "retention.ms", " 5", "preallocate", " TRUE ", "min.cleanable.dirty.ratio", ".5"},
		{"cleanup.policy", "delete,delete", "segment.ms", "+5", "preallocate", "False", "min.cleanable.dirty.ratio", "5e-1", "flush.ms", "007"},
		{"cleanup.policy", "", "min.cleanable.dirty.ratio", "1", "segment.bytes", "1048576 "},
		{"leader.replication.throttled.replicas", "0:1, 1:1", "follower.replication.throttled.replicas", "*", "min.cleanable.dirty.ratio", "0.50"},
		{"internal.segment.bytes", "1048576", "local.retention.ms", "-2", "retention.bytes", "-5", "compression.zstd.level", "-7"},
		{"message.timestamp.type", "LogAppendTime", "min.cleanable.dirty.ratio", "0.5f", "segment.bytes", "2147483647"},
	} {
		topic := newTopic(e.Name(fmt.Sprint(i)), 1, 1, x...)
		resp, ok := c.Do(fmt.Sprintf("%d", i), 4, create(topic)).(*kmsg.CreateTopicsResponse)
		if ok && resp.Topics[0].ErrorCode == 0 {
			e.AwaitTopic(topic.Topic, 1)
		}
		var keys []string
		for k := 0; k < len(x); k += 2 {
			keys = append(keys, x[k])
		}
		c.Do(fmt.Sprintf("%d described", i), 4, everything(describe(resource(topicResource, topic.Topic, keys...))), asListed()...)
	}
}
