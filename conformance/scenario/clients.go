package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

// What franz-go's admin client makes of the broker's answers. The steps of these scenarios are calls, not exchanges.
var (
	_ = judge.Register("client-topics", clientTopics)
	_ = judge.Register("client-configs", clientConfigs)
	_ = judge.Register("client-offsets", clientOffsets)
	_ = judge.Register("client-cluster", clientCluster)
)

// configResult is a config as kadm has it.
type configResult struct {
	Name, Value, Source string
	Sensitive           bool
	Synonyms            []configResult
}

func configResultOf(c kadm.Config) configResult {
	r := configResult{Name: c.Key, Value: c.MaybeValue(), Source: c.Source.String(), Sensitive: c.Sensitive}
	for _, s := range c.Synonyms {
		value := ""
		if s.Value != nil {
			value = *s.Value
		}
		r.Synonyms = append(r.Synonyms, configResult{Name: s.Key, Value: value, Source: s.Source.String()})
	}
	return r
}

// topicResult is a topic as kadm has it, after whichever call.
type topicResult struct {
	Name              string
	TopicID           [16]byte
	Error, Message    string
	NumPartitions     int32
	ReplicationFactor int16
	Internal          bool
	Partitions        []partitionResult
	Configs           []configResult
}

type partitionResult struct {
	Partition, Leader, LeaderEpoch int32
	Replicas, ISR, Offline         []int32
	Error                          string
}

// creation is one call of CreateTopics.
type creation struct {
	partitions int32
	replicas   int16
	configs    map[string]*string
	topics     []string
}

func configMap(pairs ...string) map[string]*string {
	configs := map[string]*string{}
	for i := 0; i < len(pairs); i += 2 {
		configs[pairs[i]] = &pairs[i+1]
	}
	return configs
}

func (c creation) args() judge.Args {
	var configs []string
	for name, value := range c.configs {
		text := name
		if value != nil {
			text += "=" + *value
		}
		configs = append(configs, text)
	}
	slices.Sort(configs)
	return judge.Args{"Partitions": c.partitions, "ReplicationFactor": c.replicas, "Configs": configs, "Topics": c.topics}
}

func (c creation) call(e *judge.Env, step string) {
	e.Call(step, "kadm.CreateTopics", c.args(), func(ctx context.Context) (any, error) {
		return created(e.Admin().CreateTopics(ctx, c.partitions, c.replicas, c.configs, c.topics...))
	})
}

func (c creation) validate(e *judge.Env, step string) {
	e.Call(step, "kadm.ValidateCreateTopics", c.args(), func(ctx context.Context) (any, error) {
		return created(e.Admin().ValidateCreateTopics(ctx, c.partitions, c.replicas, c.configs, c.topics...))
	})
}

func created(all kadm.CreateTopicResponses, err error) (any, error) {
	var results []topicResult
	for _, t := range all.Sorted() {
		r := topicResult{Name: t.Topic, TopicID: t.ID, Error: judge.ErrorText(t.Err), Message: t.ErrMessage, NumPartitions: t.NumPartitions, ReplicationFactor: t.ReplicationFactor}
		for _, c := range t.Configs {
			r.Configs = append(r.Configs, configResultOf(c))
		}
		slices.SortFunc(r.Configs, func(a, b configResult) int { return strings.Compare(a.Name, b.Name) })
		results = append(results, r)
	}
	slices.SortFunc(results, byName)
	return results, err
}

func byName(a, b topicResult) int { return strings.Compare(a.Name, b.Name) }

// listed are those topics that the scenario made.
func listed(e *judge.Env, all kadm.TopicDetails) []topicResult {
	var results []topicResult
	for _, t := range all.Sorted() {
		if !strings.HasPrefix(t.Topic, e.Name("")) {
			continue // another scenario's
		}
		r := topicResult{Name: t.Topic, TopicID: t.ID, Error: judge.ErrorText(t.Err), Internal: t.IsInternal, NumPartitions: int32(len(t.Partitions)),
			ReplicationFactor: int16(t.Partitions.NumReplicas())}
		for _, p := range t.Partitions.Sorted() {
			r.Partitions = append(r.Partitions, partitionResult{Partition: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, Replicas: p.Replicas, ISR: p.ISR,
				Offline: p.OfflineReplicas, Error: judge.ErrorText(p.Err)})
		}
		results = append(results, r)
	}
	return results
}

func listTopics(e *judge.Env, step string, names ...string) {
	e.Call(step, "kadm.ListTopics", judge.Args{"Topics": names}, func(ctx context.Context) (any, error) {
		all, err := e.Admin().ListTopics(ctx, names...)
		return listed(e, all), err
	})
}

func deleteTopicsCall(e *judge.Env, step string, names ...string) {
	e.Call(step, "kadm.DeleteTopics", judge.Args{"Topics": names}, func(ctx context.Context) (any, error) {
		all, err := e.Admin().DeleteTopics(ctx, names...)
		var results []topicResult
		for _, t := range all {
			results = append(results, topicResult{Name: t.Topic, TopicID: t.ID, Error: judge.ErrorText(t.Err), Message: t.ErrMessage})
		}
		slices.SortFunc(results, byName)
		return results, err
	})
}

// clientTopics: a topic's life.
func clientTopics(e *judge.Env) {
	a, b, plain := e.Name("a"), e.Name("b"), e.Name("plain")
	configs := configMap("retention.ms", "3600000", "cleanup.policy", "compact", "max.message.bytes", "2000")
	creation{3, 1, configs, []string{a, b}}.validate(e, "validate two with configs")
	listTopics(e, "none was made", a, b)
	creation{3, 1, configs, []string{a, b}}.call(e, "create two with configs")
	e.AwaitTopic(a, 3)
	e.AwaitTopic(b, 3)
	creation{-1, -1, nil, []string{plain}}.call(e, "create one of defaults")
	e.AwaitTopic(plain, 1)
	creation{3, 1, nil, []string{a, e.Name("c"), "no good"}}.call(e, "create one that is there, one that is not, one of an illegal name")
	e.AwaitTopic(e.Name("c"), 3)
	creation{3, 1, nil, []string{a}}.validate(e, "validate one that is there")
	for i, c := range []creation{{0, 1, nil, nil}, {-2, 1, nil, nil}, {1, 0, nil, nil}, {1, -2, nil, nil}, {1, 1, configMap("no.such.config", "1"), nil},
		{1, 1, configMap("retention.ms", "soon"), nil}, {1, 1, configMap("cleanup.policy", "compact,shred"), nil}, {1, 1, map[string]*string{"retention.ms": nil}, nil}} {
		c.topics = []string{e.Name("wrong")}
		c.validate(e, fmt.Sprintf("validate what is wrong: %d", i+1))
		c.call(e, fmt.Sprintf("create what is wrong: %d", i+1))
	}
	for _, name := range []string{"", ".", "..", strings.Repeat("x", 250)} {
		creation{1, 1, nil, []string{name}}.call(e, fmt.Sprintf("create a topic of the name %q", name[:min(len(name), 5)]))
	}
	listTopics(e, "all")
	listTopics(e, "some, and one that is not", a, plain, e.Name("none"))
	listTopics(e, "an illegal name", "no good")
	e.Call("with internal ones", "kadm.ListTopicsWithInternal", judge.Args{}, func(ctx context.Context) (any, error) {
		all, err := e.Admin().ListTopicsWithInternal(ctx)
		return listed(e, all), err
	})
	deleteTopicsCall(e, "delete two, and one that is not", a, plain, e.Name("none"))
	e.AwaitNoTopic(a)
	e.AwaitNoTopic(plain)
	deleteTopicsCall(e, "delete them again", a, plain)
	deleteTopicsCall(e, "delete one of an illegal name", "no good")
	listTopics(e, "what is left")
	creation{1, 1, nil, []string{a}}.call(e, "create one again")
	e.AwaitTopic(a, 1)
	listTopics(e, "it is another", a)
}

func described(configs kadm.ResourceConfigs, keep ...string) any {
	var results []topicResult
	for _, rc := range configs {
		r := topicResult{Name: rc.Name, Error: judge.ErrorText(rc.Err), Message: rc.ErrMessage}
		for _, c := range rc.Configs {
			if len(keep) == 0 || slices.Contains(keep, c.Key) {
				r.Configs = append(r.Configs, configResultOf(c))
			}
		}
		slices.SortFunc(r.Configs, func(a, b configResult) int { return strings.Compare(a.Name, b.Name) })
		results = append(results, r)
	}
	slices.SortFunc(results, byName)
	return results
}

// clientConfigs: the configs of topics and of the broker.
func clientConfigs(e *judge.Env) {
	set := e.CreateTopic("set", 1, "retention.ms", "3600000", "cleanup.policy", "compact,delete", "compression.type", "zstd", "message.timestamp.type", "LogAppendTime")
	plain := e.CreateTopic("plain", 1)
	describeTopics(e, "one", set.Name)
	describeTopics(e, "two, and one that is not", set.Name, plain.Name, e.Name("none"))
	describeTopics(e, "an illegal name", "no good")
	keep := []string{"num.partitions", "message.max.bytes", "log.segment.bytes", "log.retention.hours", "log.cleanup.policy", "compression.type", "auto.create.topics.enable"}
	for _, id := range []int32{1, 7} {
		e.Call(fmt.Sprintf("broker %d", id), "kadm.DescribeBrokerConfigs", judge.Args{"Brokers": []int32{id}, "Of which": keep}, func(ctx context.Context) (any, error) {
			configs, err := e.Admin().DescribeBrokerConfigs(ctx, id)
			return described(configs, keep...), err
		})
	}
}

func describeTopics(e *judge.Env, step string, names ...string) {
	e.Call(step, "kadm.DescribeTopicConfigs", judge.Args{"Topics": names}, func(ctx context.Context) (any, error) {
		configs, err := e.Admin().DescribeTopicConfigs(ctx, names...)
		return described(configs), err
	})
}

// offsetResult is a partition's entry in what kadm lists.
type offsetResult struct {
	Topic       string
	Partition   int32
	Timestamp   int64
	Offset      int64
	LeaderEpoch int32
	Error       string
}

func offsetResults(all kadm.ListedOffsets, err error) (any, error) {
	var results []offsetResult
	all.Each(func(o kadm.ListedOffset) {
		results = append(results, offsetResult{o.Topic, o.Partition, o.Timestamp, o.Offset, o.LeaderEpoch, judge.ErrorText(o.Err)})
	})
	slices.SortFunc(results, byPartition)
	return results, err
}

func byPartition(a, b offsetResult) int {
	if c := strings.Compare(a.Topic, b.Topic); c != 0 {
		return c
	}
	return int(a.Partition - b.Partition)
}

// clientOffsets: the offsets of a log with records whose times are not in order, of one with one record, and of an empty one.
func clientOffsets(e *judge.Env) {
	topic := e.CreateTopic("t", 3)
	produced(e, topic, 0, judge.Values("a", "b"), judge.Values("c").At(judge.Base+500), judge.Values("d", "e").At(judge.Base+10).Codec(4))
	produced(e, topic, 1, judge.Values("a").At(judge.Base+100))
	topics := []string{topic.Name, e.Name("none")}
	for _, x := range []struct {
		function string
		call     func(*kadm.Client, context.Context, ...string) (kadm.ListedOffsets, error)
	}{{"ListStartOffsets", (*kadm.Client).ListStartOffsets}, {"ListEndOffsets", (*kadm.Client).ListEndOffsets}, {"ListCommittedOffsets", (*kadm.Client).ListCommittedOffsets},
		{"ListMaxTimestampOffsets", (*kadm.Client).ListMaxTimestampOffsets}, {"ListLocalLogStartOffsets", (*kadm.Client).ListLocalLogStartOffsets},
		{"ListLatestRemoteOffsets", (*kadm.Client).ListLatestRemoteOffsets}} {
		e.Call(x.function, "kadm."+x.function, judge.Args{"Topics": topics}, func(ctx context.Context) (any, error) { return offsetResults(x.call(e.Admin(), ctx, topics...)) })
	}
	for _, after := range []int64{0, judge.Base, judge.Base + 1, judge.Base + 2, judge.Base + 101, judge.Base + 500, judge.Base + 501} {
		e.Call(fmt.Sprintf("after %d", after), "kadm.ListOffsetsAfterMilli", judge.Args{"Topics": topics, "Milli": after}, func(ctx context.Context) (any, error) {
			return offsetResults(e.Admin().ListOffsetsAfterMilli(ctx, after, topics...))
		})
	}
	for _, epoch := range []int32{0, 1, -1} {
		req := kadm.OffsetForLeaderEpochRequest{topic.Name: {0: epoch, 1: epoch, 2: epoch}}
		e.Call(fmt.Sprintf("epoch %d", epoch), "kadm.OffsetForLeaderEpoch", judge.Args{"Topics": []string{topic.Name}, "Epoch": epoch}, func(ctx context.Context) (any, error) {
			all, err := e.Admin().OffsetForLeaderEpoch(ctx, req)
			var results []offsetResult
			for _, partitions := range all {
				for _, p := range partitions {
					results = append(results, offsetResult{p.Topic, p.Partition, -1, p.EndOffset, p.LeaderEpoch, judge.ErrorText(p.Err)})
				}
			}
			slices.SortFunc(results, byPartition)
			return results, err
		})
	}
}

// clusterResult is the cluster as kadm has it.
type clusterResult struct {
	Cluster    string
	Controller int32
	Brokers    []brokerResult
	Topics     []topicResult
	Operations []string
}

type brokerResult struct {
	NodeID int32
	Host   string
	Port   int32
	Rack   *string
}

func brokers(all kadm.BrokerDetails) []brokerResult {
	var results []brokerResult
	for _, b := range all {
		results = append(results, brokerResult{b.NodeID, b.Host, b.Port, b.Rack})
	}
	return results
}

// clientCluster: the broker, what it may be asked, and its features.
func clientCluster(e *judge.Env) {
	topic := e.CreateTopic("t", 2)
	metadata := func(step, function string, call func(context.Context) (kadm.Metadata, error), topics ...string) {
		e.Call(step, function, judge.Args{"Topics": topics}, func(ctx context.Context) (any, error) {
			m, err := call(ctx)
			r := clusterResult{Cluster: m.Cluster, Controller: m.Controller, Brokers: brokers(m.Brokers)}
			for _, op := range m.AuthorizedOperations {
				r.Operations = append(r.Operations, op.String())
			}
			slices.Sort(r.Operations)
			r.Topics = listed(e, m.Topics)
			return r, err
		})
	}
	metadata("brokers", "kadm.BrokerMetadata", func(ctx context.Context) (kadm.Metadata, error) { return e.Admin().BrokerMetadata(ctx) })
	metadata("a topic, and one that is not", "kadm.Metadata", func(ctx context.Context) (kadm.Metadata, error) {
		return e.Admin().Metadata(ctx, topic.Name, e.Name("none"))
	},
		topic.Name, e.Name("none"))
	metadata("with operations", "kadm.Metadata", func(ctx context.Context) (kadm.Metadata, error) {
		return e.Admin().Metadata(kadm.WithAuthorizedOps(ctx), topic.Name)
	}, topic.Name)
	e.Call("list brokers", "kadm.ListBrokers", judge.Args{}, func(ctx context.Context) (any, error) {
		all, err := e.Admin().ListBrokers(ctx)
		return brokers(all), err
	})
	e.Call("versions and features", "kadm.ApiVersions", judge.Args{}, func(ctx context.Context) (any, error) {
		return versions(e.Admin().ApiVersions(ctx))
	})
}

// versionsResult is what the broker may be asked, and its features.
type versionsResult struct {
	ApiKeys           []apiResult
	SupportedFeatures []kmsg.ApiVersionsResponseSupportedFeature
	FinalizedFeatures []kmsg.ApiVersionsResponseFinalizedFeature
}

type apiResult struct {
	Name     string
	Min, Max int16
}

func versions(all kadm.BrokersApiVersions, err error) (any, error) {
	var r versionsResult
	for _, b := range all.Sorted() {
		b.EachKeySorted(func(key, low, high int16) { r.ApiKeys = append(r.ApiKeys, apiResult{kmsg.NameForKey(key), low, high}) })
		r.SupportedFeatures, r.FinalizedFeatures = b.Raw().SupportedFeatures, b.Raw().FinalizedFeatures
		slices.SortFunc(r.SupportedFeatures, func(a, b kmsg.ApiVersionsResponseSupportedFeature) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(r.FinalizedFeatures, func(a, b kmsg.ApiVersionsResponseFinalizedFeature) int { return strings.Compare(a.Name, b.Name) })
	}
	return r, err
}
