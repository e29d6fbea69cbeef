package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("alter-configs", alterConfigs)
	_ = judge.Register("alter-configs-resources", alterConfigsResources)
	_ = judge.Register("incremental-alter-configs", incrementalAlterConfigs)
	_ = judge.Register("incremental-alter-configs-lists", incrementalAlterConfigsLists)
	_ = judge.Register("incremental-alter-configs-effect", incrementalAlterConfigsEffect)
)

// The operations of IncrementalAlterConfigs.
const (
	opSet      = kmsg.IncrementalAlterConfigOpSet
	opDelete   = kmsg.IncrementalAlterConfigOpDelete
	opAppend   = kmsg.IncrementalAlterConfigOpAppend
	opSubtract = kmsg.IncrementalAlterConfigOpSubtract
)

// null is the value that stands for null in the requests made here.
const null = "\x00null"

func orNull(value string) *string {
	if value == null {
		return nil
	}
	return &value
}

// op is one operation on one config.
func op(o kmsg.IncrementalAlterConfigOp, name, value string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Op, c.Name, c.Value = o, name, orNull(value)
	return c
}

// ops are operations on a resource's configs.
func ops(kind kmsg.ConfigResourceType, name string, ops ...kmsg.IncrementalAlterConfigsRequestResourceConfig) kmsg.IncrementalAlterConfigsRequestResource {
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.Configs = kind, name, ops
	return r
}

func incremental(validateOnly bool, resources ...kmsg.IncrementalAlterConfigsRequestResource) *kmsg.IncrementalAlterConfigsRequest {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources, req.ValidateOnly = resources, validateOnly
	return req
}

// configured are all configs that a resource is to have, as pairs of name and value.
func configured(kind kmsg.ConfigResourceType, name string, configs ...string) kmsg.AlterConfigsRequestResource {
	r := kmsg.NewAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	for i := 0; i < len(configs); i += 2 {
		c := kmsg.NewAlterConfigsRequestResourceConfig()
		c.Name, c.Value = configs[i], orNull(configs[i+1])
		r.Configs = append(r.Configs, c)
	}
	return r
}

func alter(validateOnly bool, resources ...kmsg.AlterConfigsRequestResource) *kmsg.AlterConfigsRequest {
	req := kmsg.NewPtrAlterConfigsRequest()
	req.Resources, req.ValidateOnly = resources, validateOnly
	return req
}

// alteredNames are the configs that are altered here.
var alteredNames = []string{"retention.ms", "cleanup.policy", "segment.bytes", "flush.ms", "max.message.bytes", "min.compaction.lag.ms", "preallocate",
	"leader.replication.throttled.replicas"}

// altered records those of a topic's configs that are altered here.
func altered(e *judge.Env, c *judge.Conn, step, topic string) {
	settled(e, topic)
	c.Do(step, 4, everything(describe(resource(topicResource, topic, alteredNames...))), asListed()...)
}

// settled waits until Kafka's broker has what its controller answered: another config is altered last, to another value each time.
func settled(e *judge.Env, topic string) {
	mark := fmt.Sprint(time.Now().UnixNano())
	e.Quiet(1, incremental(false, ops(topicResource, topic, op(opSet, "delete.retention.ms", mark))))
	e.Await("the configs of "+topic, func() bool {
		resp := e.Quiet(4, describe(resource(topicResource, topic, "delete.retention.ms"))).(*kmsg.DescribeConfigsResponse)
		return *resp.Resources[0].Configs[0].Value == mark
	})
}

// alterConfigs replaces a topic's configs in every version.
func alterConfigs(e *judge.Env) {
	c := e.Conn()
	none := e.Name("none")
	for v := int16(0); v <= 2; v++ {
		t := e.CreateTopic(fmt.Sprintf("v%d", v), 1, "retention.ms", "1000", "cleanup.policy", "compact")
		other := e.CreateTopic(fmt.Sprintf("other%d", v), 1)
		do := func(step string, configs ...string) {
			c.Do(fmt.Sprintf("v%d %s", v, step), v, alter(false, configured(topicResource, t.Name, configs...)))
		}
		show := func(step string) { altered(e, c, fmt.Sprintf("v%d %s", v, step), t.Name) }
		c.Do(fmt.Sprintf("v%d nothing", v), v, alter(false))
		c.Do(fmt.Sprintf("v%d validate only", v), v, alter(true, configured(topicResource, t.Name, "flush.ms", "7")))
		show("it is as it was")
		do("replaced", "flush.ms", "7", "segment.bytes", "2097152")
		show("what is not named is gone")
		do("the same again", "flush.ms", "7", "segment.bytes", "2097152")
		do("an unknown name", "flush.ms", "8", "nonsense", "1")
		do("a wrong value", "flush.ms", "8", "retention.ms", "x")
		do("values that do not fit", "min.compaction.lag.ms", "10", "max.compaction.lag.ms", "5")
		do("null", "flush.ms", null)
		do("two nulls, and an unknown name", "flush.ms", null, "nonsense", "1", "retention.ms", null)
		do("a name twice", "flush.ms", "8", "flush.ms", "8")
		do("a name twice, and null", "flush.ms", "8", "flush.ms", null)
		show("it is as it was again")
		c.Do(fmt.Sprintf("v%d several", v), v, alter(false, configured(topicResource, none, "flush.ms", "8"), configured(topicResource, t.Name, "flush.ms", "8"),
			configured(topicResource, none+"2", "flush.ms", "x"), configured(topicResource, other.Name, "flush.ms", "x")))
		show("one of several")
		c.Do(fmt.Sprintf("v%d names of topics", v), v, alter(false, configured(topicResource, "", "flush.ms", "9"), configured(topicResource, "a b", "flush.ms", "9")))
		c.Do(fmt.Sprintf("v%d no name", v), v, alter(false, configured(topicResource, "", "flush.ms", "x")))
		e.Conn().Do(fmt.Sprintf("v%d a topic twice", v), v, alter(false, configured(topicResource, t.Name, "flush.ms", "9"),
			configured(topicResource, t.Name, "flush.ms", "9")), judge.MayHang())
		do("nothing is left")
		show("all are gone")
	}
}

// alterConfigsResources alters what is no topic, in both APIs. Nothing here changes Kafka's own configs.
func alterConfigsResources(e *judge.Env) {
	c := e.Conn()
	for i, x := range []struct {
		kind    kmsg.ConfigResourceType
		name    string
		configs []string
	}{
		{brokerResource, "1", []string{"node.id", "5"}},
		{brokerResource, "1", []string{"num.partitions", "5", "node.id", "1", "auto.create.topics.enable", "false"}},
		{brokerResource, "", []string{"auto.create.topics.enable", "false"}},
		{brokerResource, "", []string{"log.dirs", "/x"}},
		{brokerResource, "", []string{"message.max.bytes", "x"}},
		{brokerResource, "1", []string{"message.max.bytes", "1000000"}},
		{brokerResource, "", []string{"log.retention.ms", "1000"}},
		{brokerResource, "1", []string{"nonsense", "1"}},
		{brokerResource, "1", nil},
		{brokerResource, "", nil},
		{brokerResource, "7", []string{"node.id", "5"}},
		{brokerResource, "x", []string{"node.id", "5"}},
		{brokerResource, "x", []string{"node.id", null}},
		{kmsg.ConfigResourceTypeBrokerLogger, "1", []string{"root", "nonsense"}},
		{kmsg.ConfigResourceTypeBrokerLogger, "7", []string{"root", "INFO"}},
		{kmsg.ConfigResourceTypeBrokerLogger, "x", []string{"root", "INFO"}},
		{kmsg.ConfigResourceTypeBrokerLogger, "", nil},
		{kmsg.ConfigResourceTypeBrokerLogger, "1", nil},
		{kmsg.ConfigResourceTypeClientMetrics, "m", nil},
		{kmsg.ConfigResourceTypeGroupConfig, "g", nil},
		{kmsg.ConfigResourceTypeBrokerLogger, "1", []string{"root", "INFO"}},
		{kmsg.ConfigResourceTypeClientMetrics, "", []string{"interval.ms", "1000"}},
		{kmsg.ConfigResourceTypeClientMetrics, "m", []string{"interval.ms", "1000"}},
		{kmsg.ConfigResourceTypeClientMetrics, "m", []string{"nonsense", "1000"}},
		{kmsg.ConfigResourceTypeGroupConfig, "", []string{"consumer.session.timeout.ms", "50000"}},
		{kmsg.ConfigResourceTypeGroupConfig, "g", []string{"consumer.session.timeout.ms", "50000"}},
		{kmsg.ConfigResourceTypeGroupConfig, "g", []string{"nonsense", "1"}},
		{0, "x", []string{"a", "1"}},
		{1, "x", []string{"a", "1"}},
		{3, "x", nil},
		{77, "x", []string{"a", "1"}},
		{-1, "x", []string{"a", "1"}},
	} {
		var set []kmsg.IncrementalAlterConfigsRequestResourceConfig
		for k := 0; k < len(x.configs); k += 2 {
			set = append(set, op(opSet, x.configs[k], x.configs[k+1]))
		}
		step := fmt.Sprintf("%d: type %d, %q", i, x.kind, x.name)
		c.Do(step+", incremental", 1, incremental(true, ops(x.kind, x.name, set...)))
		c.Do(step+", all", 2, alter(true, configured(x.kind, x.name, x.configs...)))
	}
	t := e.CreateTopic("t", 1)
	c.Do("several, incremental", 1, incremental(true, ops(77, "x", op(opSet, "a", "1")), ops(topicResource, t.Name, op(opSet, "flush.ms", "1")),
		ops(brokerResource, "7", op(opSet, "a", "1")), ops(topicResource, e.Name("none"), op(opSet, "flush.ms", "1"))))
	c.Do("several, all", 2, alter(true, configured(77, "x", "a", "1"), configured(topicResource, t.Name, "flush.ms", "1"),
		configured(brokerResource, "7", "a", "1"), configured(topicResource, e.Name("none"), "flush.ms", "1")))
}

// incrementalAlterConfigs alters a topic's configs one by one, in every version.
func incrementalAlterConfigs(e *judge.Env) {
	c := e.Conn()
	none := e.Name("none")
	for v := int16(0); v <= 1; v++ {
		t := e.CreateTopic(fmt.Sprintf("v%d", v), 1, "retention.ms", "1000", "cleanup.policy", "compact")
		other := e.CreateTopic(fmt.Sprintf("other%d", v), 1)
		do := func(step string, all ...kmsg.IncrementalAlterConfigsRequestResourceConfig) {
			c.Do(fmt.Sprintf("v%d %s", v, step), v, incremental(false, ops(topicResource, t.Name, all...)))
		}
		show := func(step string) { altered(e, c, fmt.Sprintf("v%d %s", v, step), t.Name) }
		c.Do(fmt.Sprintf("v%d nothing", v), v, incremental(false))
		c.Do(fmt.Sprintf("v%d validate only", v), v, incremental(true, ops(topicResource, t.Name, op(opSet, "flush.ms", "7"))))
		show("it is as it was")
		do("set and deleted", op(opSet, "flush.ms", "7"), op(opDelete, "cleanup.policy", null))
		show("what is not named stays")
		do("the same again", op(opSet, "flush.ms", "7"), op(opDelete, "cleanup.policy", null))
		do("deleted with a value", op(opSet, "segment.bytes", "2097152"), op(opDelete, "flush.ms", "7"))
		show("deleted with a value, described")
		do("an unknown name", op(opSet, "flush.ms", "8"), op(opSet, "nonsense", "1"))
		do("an unknown name is deleted", op(opDelete, "nonsense", null))
		do("a wrong value", op(opSet, "flush.ms", "8"), op(opSet, "retention.ms", "x"))
		do("spelled oddly", op(opSet, "retention.ms", " 5 "), op(opSet, "preallocate", " TRUE"))
		show("spelled oddly, described")
		do("the first value that does not fit", op(opSet, "max.compaction.lag.ms", "5"))
		do("the second", op(opSet, "min.compaction.lag.ms", "10"))
		do("null", op(opSet, "flush.ms", null))
		do("nulls", op(opSet, "flush.ms", null), op(opAppend, "cleanup.policy", null), op(opSubtract, "nonsense", null), op(opDelete, "retention.ms", null))
		do("a name twice", op(opSet, "flush.ms", "8"), op(opSet, "flush.ms", "8"))
		do("a name twice, and null", op(opSet, "flush.ms", "8"), op(opSet, "flush.ms", null))
		do("a number is appended to, and an unknown name set", op(opSet, "nonsense", "1"), op(opAppend, "flush.ms", "8"))
		c.Do(fmt.Sprintf("v%d a number of a topic that is not there is appended to", v), v, incremental(false, ops(topicResource, none, op(opAppend, "flush.ms", "8"))))
		c.Do(fmt.Sprintf("v%d a number of a name that can't be is appended to", v), v, incremental(false, ops(topicResource, "a b", op(opAppend, "flush.ms", "8"))))
		do("an unknown operation", op(4, "flush.ms", "8"))
		do("an unknown operation with null", op(-1, "flush.ms", null))
		do("an unknown operation on an unknown name", op(9, "nonsense", "8"))
		do("no operations")
		show("it is as it was again")
		c.Do(fmt.Sprintf("v%d several", v), v, incremental(false, ops(topicResource, none, op(opSet, "flush.ms", "8")), ops(topicResource, t.Name, op(opSet, "flush.ms", "8")),
			ops(topicResource, none+"2", op(opSet, "flush.ms", "x")), ops(topicResource, other.Name, op(opSet, "flush.ms", "x"))))
		show("one of several")
		c.Do(fmt.Sprintf("v%d a topic twice", v), v, incremental(false, ops(topicResource, t.Name, op(opSet, "flush.ms", "9")), ops(topicResource, none),
			ops(topicResource, t.Name, op(opSet, "flush.ms", "9"))))
		c.Do(fmt.Sprintf("v%d names of topics", v), v, incremental(false, ops(topicResource, "", op(opSet, "flush.ms", "9")), ops(topicResource, "a b", op(opSet, "flush.ms", "9"))))
		c.Do(fmt.Sprintf("v%d no name", v), v, incremental(false, ops(topicResource, "", op(opSet, "flush.ms", "x"))))
	}
}

// incrementalAlterConfigsLists appends to lists and takes away from them.
func incrementalAlterConfigsLists(e *judge.Env) {
	c := e.Conn()
	t := e.CreateTopic("t", 1)
	n := 0
	do := func(all ...kmsg.IncrementalAlterConfigsRequestResourceConfig) {
		n++
		c.Do(fmt.Sprintf("%d", n), 1, incremental(false, ops(topicResource, t.Name, all...)))
		settled(e, t.Name)
		c.Do(fmt.Sprintf("%d, described", n), 4, describe(resource(topicResource, t.Name, alteredNames...)), asListed()...)
	}
	const policy, throttled = "cleanup.policy", "leader.replication.throttled.replicas"
	do(op(opAppend, policy, "compact"))
	do(op(opAppend, policy, "compact"))
	do(op(opAppend, policy, "nonsense"))
	do(op(opSubtract, policy, "nonsense"))
	do(op(opSubtract, policy, "delete"))
	do(op(opSubtract, policy, "compact,delete"))
	do(op(opAppend, policy, "delete"))
	do(op(opDelete, policy, null))
	do(op(opSubtract, policy, "delete"))
	do(op(opAppend, policy, ""))
	do(op(opAppend, policy, "compact,delete,compact"))
	do(op(opAppend, throttled, "0:1"))
	do(op(opAppend, throttled, "0:1,1:1"))
	do(op(opAppend, throttled, "2:1,2:1, 3:1"))
	do(op(opSubtract, throttled, " 3:1,1:1"))
	do(op(opSubtract, throttled, "2:1 "))
	do(op(opAppend, throttled, ",,"))
	do(op(opAppend, throttled, ",4:1"))
	do(op(opSubtract, throttled, ""))
	do(op(opSet, throttled, "5:1, 6:1"))
	do(op(opAppend, throttled, "6:1"))
	do(op(opAppend, "flush.ms", "1"))
	do(op(opSubtract, "flush.ms", "1"))
	do(op(opAppend, "nonsense", "1"))
	do(op(opSubtract, "min.cleanable.dirty.ratio", "1"))
	do(op(opSet, throttled, strings.Repeat("1:1,", 8191)+"1:2"))
	do(op(opAppend, throttled, "1:2"))
	c.Do("too long", 1, incremental(false, ops(topicResource, t.Name, op(opAppend, throttled, "1:3"))))
}

// incrementalAlterConfigsEffect shows that a log that is open acts on what was altered.
func incrementalAlterConfigsEffect(e *judge.Env) {
	c := e.Conn()
	t := e.CreateTopic("t", 1)
	large := judge.Values(strings.Repeat("x", 2000))
	c.Do("a large batch", 9, produce(1, part{t, 0, large.Bytes()}))
	c.Do("less is taken", 1, incremental(false, ops(topicResource, t.Name, op(opSet, "max.message.bytes", "1000"))))
	settled(e, t.Name)
	c.Do("a large batch is too large", 9, produce(1, part{t, 0, large.Bytes()}))
	c.Do("more is taken", 2, alter(false, configured(topicResource, t.Name)))
	settled(e, t.Name)
	c.Do("a large batch again", 9, produce(1, part{t, 0, large.Bytes()}))
	c.Do("compacted", 1, incremental(false, ops(topicResource, t.Name, op(opAppend, "cleanup.policy", "compact"))))
	settled(e, t.Name)
	c.Do("a record without a key", 9, produce(1, part{t, 0, judge.Values("a").Bytes()}))
}
