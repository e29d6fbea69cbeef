package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var (
	_ = judge.RegisterOwn("alter-configs-broker", target.Options{}, alterBrokerConfigs)
	_ = judge.RegisterOwn("alter-configs-broker-static", target.Options{
		Flags:      []string{"--segment-bytes", "2097152", "--retention-ms", "7200000"},
		Properties: map[string]string{"log.segment.bytes": "2097152", "log.retention.ms": "7200000"},
	}, alterBrokerConfigsStatic)
	_ = judge.RegisterOwn("alter-configs-broker-lists", target.Options{}, alterBrokerConfigsLists)
	_ = judge.RegisterOwn("alter-configs-broker-effect", target.Options{}, alterBrokerConfigsEffect)
	_ = judge.Register("alter-configs-broker-values", alterBrokerConfigsValues)
)

// dynamicNames are the configs of a broker that can be altered while it runs and are the defaults of topics.
var dynamicNames = []string{"compression.gzip.level", "compression.lz4.level", "compression.type", "compression.zstd.level", "log.cleaner.delete.retention.ms",
	"log.cleaner.max.compaction.lag.ms", "log.cleaner.min.cleanable.ratio", "log.cleaner.min.compaction.lag.ms", "log.cleanup.policy", "log.flush.interval.messages",
	"log.flush.interval.ms", "log.index.interval.bytes", "log.index.size.max.bytes", "log.local.retention.bytes", "log.local.retention.ms",
	"log.message.timestamp.after.max.ms", "log.message.timestamp.before.max.ms", "log.message.timestamp.type", "log.preallocate", "log.remote.copy.lag.bytes",
	"log.remote.copy.lag.ms", "log.retention.bytes", "log.retention.ms", "log.roll.jitter.ms", "log.roll.ms", "log.segment.bytes", "log.segment.delete.delay.ms",
	"max.decompressed.message.bytes", "message.max.bytes", "min.insync.replicas", "unclean.leader.election.enable"}

// A brokerConfigurer alters configs of the broker or of the cluster and records what came of it.
type brokerConfigurer struct {
	e     *judge.Env
	c     *judge.Conn
	topic judge.Topic // without configs of its own
	set   judge.Topic // with some
}

// brokerKeys and topicKeys are what is recorded of the broker and of topics.
var (
	brokerKeys = []string{"log.retention.ms", "log.retention.minutes", "log.retention.hours", "log.segment.bytes", "log.roll.ms", "log.roll.hours", "message.max.bytes",
		"log.cleanup.policy", "min.insync.replicas", "compression.type", "log.flush.interval.ms", "log.flush.scheduler.interval.ms", "x.custom"}
	topicKeys = []string{"retention.ms", "segment.bytes", "segment.ms", "max.message.bytes", "cleanup.policy", "min.insync.replicas", "compression.type", "flush.ms"}
)

func newBrokerConfigurer(e *judge.Env) *brokerConfigurer {
	b := &brokerConfigurer{e: e, c: e.Conn(), topic: e.CreateTopic("plain", 1)}
	b.set = e.CreateTopic("set", 1, "retention.ms", "5000", "segment.bytes", "3145728")
	return b
}

// settle waits until Kafka's broker has what its controller answered: another config is set, seen, and deleted.
func (b *brokerConfigurer) settle() {
	const name = "log.segment.delete.delay.ms"
	mark := fmt.Sprint(time.Now().UnixNano() % 1e12)
	seen := func(want string) func() bool {
		return func() bool {
			resp := b.e.Quiet(4, describe(resource(brokerResource, "1", name))).(*kmsg.DescribeConfigsResponse)
			return *resp.Resources[0].Configs[0].Value == want
		}
	}
	b.e.Quiet(1, incremental(false, ops(brokerResource, "", op(opSet, name, mark))))
	b.e.Await("the broker's configs", seen(mark))
	b.e.Quiet(1, incremental(false, ops(brokerResource, "", op(opDelete, name, null))))
	b.e.Await("the broker's configs to be as they were", seen("60000"))
}

// show records all that is set for the cluster, some of the broker's, and of topics.
func (b *brokerConfigurer) show(step string) {
	b.settle()
	do := func(of string, r kmsg.DescribeConfigsRequestResource) {
		b.c.Do(step+": "+of, 4, everything(describe(r)), asListed()...)
	}
	do("cluster", resource(brokerResource, ""))
	do("broker", resource(brokerResource, "1", brokerKeys...))
	do("topic", resource(topicResource, b.topic.Name, topicKeys...))
	do("topic with configs", resource(topicResource, b.set.Name, topicKeys...))
}

// alter records an IncrementalAlterConfigs of the broker ("1") or the cluster ("").
func (b *brokerConfigurer) alter(step, name string, all ...kmsg.IncrementalAlterConfigsRequestResourceConfig) {
	b.c.Do(step, 1, incremental(false, ops(brokerResource, name, all...)))
}

// replace records an AlterConfigs.
func (b *brokerConfigurer) replace(step, name string, configs ...string) {
	b.c.Do(step, 2, alter(false, configured(brokerResource, name, configs...)))
}

// alterBrokerConfigs alters the broker's configs in both APIs, at both levels, and looks at them after a restart.
func alterBrokerConfigs(e *judge.Env) {
	b := newBrokerConfigurer(e)
	b.show("at first")
	b.alter("cluster", "", op(opSet, "log.retention.ms", "100000"), op(opSet, "log.segment.bytes", "1048577"))
	b.show("cluster")
	b.alter("broker", "1", op(opSet, "log.retention.ms", "200000"), op(opSet, "compression.type", "gzip"), op(opSet, "log.roll.ms", " 77 "))
	b.show("broker over cluster")
	b.c.Do("validate only", 1, incremental(true, ops(brokerResource, "1", op(opSet, "log.retention.ms", "300000")), ops(brokerResource, "", op(opSet, "log.flush.interval.ms", "3"))))
	b.show("it is as it was")
	b.alter("one is bad", "1", op(opSet, "log.flush.interval.ms", "5"), op(opSet, "message.max.bytes", "x"))
	b.alter("one is read-only", "", op(opSet, "log.flush.interval.ms", "5"), op(opSet, "log.retention.hours", "1"))
	b.alter("read-only ones", "1", op(opSet, "num.partitions", "5"), op(opSet, "node.id", "1"), op(opSet, "log.dirs", "/x"), op(opDelete, "broker.id", null))
	b.alter("one for a broker alone", "", op(opSet, "listeners", "PLAINTEXT://:1"))
	b.alter("one of TLS", "1", op(opSet, "ssl.keystore.location", "/x"))
	b.alter("several of TLS, for the cluster", "", op(opSet, "ssl.keystore.location", "/x"), op(opSet, "message.max.bytes", "x"))
	b.alter("min.insync.replicas of a broker", "1", op(opSet, "min.insync.replicas", "1"))
	b.alter("min.insync.replicas deleted of a broker", "1", op(opDelete, "min.insync.replicas", null))
	b.alter("min.insync.replicas deleted", "", op(opDelete, "min.insync.replicas", null))
	b.alter("min.insync.replicas", "", op(opSet, "min.insync.replicas", "2"))
	b.alter("what is not set is deleted", "", op(opDelete, "message.max.bytes", null), op(opDelete, "x.none", null), op(opDelete, "node.id", null))
	b.show("more")
	b.alter("a custom one", "1", op(opSet, "x.custom", "5"))
	b.show("a custom one")
	b.alter("a custom one of the cluster", "", op(opSet, "x.custom", "6"))
	b.show("a custom one of the cluster")
	b.alter("the custom ones go", "1", op(opDelete, "x.custom", null))
	b.alter("the custom ones go, of the cluster", "", op(opDelete, "x.custom", null))
	b.c.Do("several", 1, incremental(false, ops(brokerResource, "", op(opSet, "log.flush.interval.ms", "9")), ops(brokerResource, "1", op(opSet, "message.max.bytes", "5000000")),
		ops(brokerResource, "2", op(opSet, "message.max.bytes", "6000000")), ops(topicResource, b.set.Name, op(opSet, "flush.ms", "8"))))
	b.show("several")
	e.Restart()
	b.c = e.Conn()
	e.AwaitTopic(b.topic.Name, 1)
	b.show("after a restart")
	b.replace("replaced for the broker", "1", "log.retention.ms", "400000")
	b.show("replaced for the broker")
	b.replace("the cluster's without min.insync.replicas", "", "log.retention.ms", "500000")
	b.replace("replaced for the cluster", "", "min.insync.replicas", "1", "log.cleanup.policy", "compact")
	b.show("replaced for the cluster")
	b.replace("a bad one", "1", "log.retention.ms", "0")
	b.replace("a read-only one", "1", "node.id", "1")
	b.replace("nothing for the broker", "1")
	b.show("nothing for the broker")
	b.replace("nothing for the cluster", "")
	name := e.Name("made")
	for v := int16(5); v <= 7; v++ {
		b.c.Do(fmt.Sprintf("v%d a topic would have", v), v, validate(newTopic(name, 1, 1, "retention.ms", "5")), judge.Sorted("Configs"))
	}
	b.c.Do("configs that do not fit the cluster's", 7, validate(newTopic(name, 1, 1, "min.compaction.lag.ms", "10", "max.compaction.lag.ms", "5")))
	b.alter("a lag", "", op(opSet, "log.cleaner.min.compaction.lag.ms", "1000"))
	b.settle()
	b.c.Do("a topic's config does not fit the cluster's", 7, validate(newTopic(name, 1, 1, "max.compaction.lag.ms", "5")))
	b.alter("lags that do not fit", "", op(opSet, "log.cleaner.max.compaction.lag.ms", "999"))
	b.show("lags that do not fit")
}

// alterBrokerConfigsStatic alters what server.properties sets too.
func alterBrokerConfigsStatic(e *judge.Env) {
	b := newBrokerConfigurer(e)
	b.show("at first")
	b.alter("cluster", "", op(opSet, "log.retention.ms", "-1"), op(opSet, "log.segment.bytes", "1048578"))
	b.show("cluster")
	b.alter("broker", "1", op(opSet, "log.retention.ms", "-5"), op(opSet, "log.segment.bytes", "1048579"))
	b.show("broker")
	b.alter("the cluster's go", "", op(opDelete, "log.retention.ms", null), op(opDelete, "log.segment.bytes", null))
	b.show("the cluster's are gone")
	b.alter("the broker's go", "1", op(opDelete, "log.retention.ms", null), op(opDelete, "log.segment.bytes", null))
	b.show("all are gone")
}

// alterBrokerConfigsLists appends to lists of the broker and takes away from them.
func alterBrokerConfigsLists(e *judge.Env) {
	c := e.Conn()
	b := &brokerConfigurer{e: e, c: c}
	n := 0
	do := func(name string, all ...kmsg.IncrementalAlterConfigsRequestResourceConfig) {
		n++
		b.alter(fmt.Sprintf("%d", n), name, all...)
		b.settle()
		c.Do(fmt.Sprintf("%d, described", n), 4, everything(describe(resource(brokerResource, "1", "log.cleanup.policy"))), asListed()...)
	}
	const policy = "log.cleanup.policy"
	do("", op(opAppend, policy, "compact"))
	do("", op(opAppend, policy, "compact"))
	do("", op(opAppend, policy, "nonsense"))
	do("", op(opSubtract, policy, "nonsense"))
	do("", op(opSubtract, policy, "delete"))
	do("1", op(opSubtract, policy, "compact"))
	do("1", op(opAppend, policy, "compact,compact,delete"))
	do("1", op(opSubtract, policy, "compact,delete"))
	do("", op(opSubtract, policy, "compact"))
	do("1", op(opDelete, policy, null))
	do("", op(opAppend, policy, ""))
	do("", op(opSet, policy, "delete,delete"))
	do("", op(opSet, policy, " compact , delete "))
	do("1", op(opAppend, "message.max.bytes", "5"))
	do("1", op(opSubtract, "message.max.bytes", "5"))
	do("", op(opAppend, "x.custom", "5"))
	do("", op(opSubtract, "x.custom", "5"))
	do("1", op(opAppend, "num.partitions", "5"))
	do("1", op(5, policy, "delete"))
	do("1", op(opSet, "x.long", strings.Repeat("x", 32767)))
}

// alterBrokerConfigsEffect shows that logs that are open act on what was altered, and those of topics made later.
func alterBrokerConfigsEffect(e *judge.Env) {
	b := newBrokerConfigurer(e)
	c := b.c
	own := e.CreateTopic("own", 1, "max.message.bytes", "3000")
	large := judge.Values(strings.Repeat("x", 2000))
	send := func(step string) {
		c.Do(step, 9, produce(1, part{b.topic, 0, large.Bytes()}))
		c.Do(step+", a topic with its own limit", 9, produce(1, part{own, 0, large.Bytes()}))
	}
	send("a large batch")
	b.alter("less is taken", "", op(opSet, "message.max.bytes", "1000"))
	b.settle()
	send("a large batch is too large")
	later := e.CreateTopic("later", 1)
	c.Do("a topic made later", 9, produce(1, part{later, 0, large.Bytes()}))
	b.alter("the broker takes more", "1", op(opSet, "message.max.bytes", "100000"))
	b.settle()
	send("a large batch again")
	b.alter("the broker takes as much as the others", "1", op(opDelete, "message.max.bytes", null))
	b.settle()
	e.Restart()
	e.AwaitTopic(b.topic.Name, 1)
	e.AwaitTopic(own.Name, 1)
	c = e.Conn()
	send("a large batch after a restart")
	b.c = c
	b.alter("appended", "", op(opSet, "log.message.timestamp.type", "LogAppendTime"), op(opDelete, "message.max.bytes", null))
	b.settle()
	send("LogAppendTime")
	b.alter("compacted", "", op(opSet, "log.cleanup.policy", "compact"))
	b.settle()
	send("records without a key")
}

// alterBrokerConfigsValues asks for every config of the broker that can be altered whether values would do. Nothing is altered.
func alterBrokerConfigsValues(e *judge.Env) {
	c := e.Conn()
	for _, name := range dynamicNames {
		values := append(append([]string{}, numbers...), odd...)
		values = append(values, "0.5", "-0.1", "1.1", "compact", "delete", "compact,delete", "compact,nonsense", "gzip", "none", "producer", "CreateTime", "LogAppendTime", "createtime")
		for _, value := range values {
			c.Do(fmt.Sprintf("%s=%q", name, value), 1, incremental(true, ops(brokerResource, "", op(opSet, name, value))))
		}
	}
}
