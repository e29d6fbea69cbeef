package config

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A brokerConfig is a broker property that is no topic config's synonym.
type brokerConfig struct {
	name    string
	typ     Type
	setting string // the setting behind it; "" for one that can't be set
	value   func(*Settings) string
	doc     string
}

func fixed(v string) func(*Settings) string { return func(*Settings) string { return v } }

// brokerConfigs are the broker's own configs that mean something here, under
// Kafka's names. Properties about what this broker does not have are not listed.
var brokerConfigs = []brokerConfig{
	{"advertised.listeners", TypeList, "ADVERTISED_LISTENERS", func(s *Settings) string { return s.AdvertisedListeners },
		"The addresses that clients are told; auto: one for each connection that works for it."},
	{"auto.create.topics.enable", TypeBoolean, "AUTO_CREATE_TOPICS", func(s *Settings) string { return strconv.FormatBool(s.AutoCreateTopics) },
		"Whether a topic is made when a client first asks for it."},
	{"broker.id", TypeInt, "NODE_ID", func(s *Settings) string { return number(int64(s.NodeID)) }, "The broker's id."},
	{"default.replication.factor", TypeInt, "", fixed("1"), "Replicas of a topic that is made without a number."},
	{"delete.topic.enable", TypeBoolean, "", fixed("true"), "Whether topics can be deleted."},
	{"group.initial.rebalance.delay.ms", TypeInt, "GROUP_INITIAL_REBALANCE_DELAY_MS", func(s *Settings) string { return number(int64(s.GroupInitialRebalanceDelayMs)) },
		"How long the first join of an empty group waits for others, in milliseconds."},
	{"group.max.session.timeout.ms", TypeInt, "GROUP_MAX_SESSION_TIMEOUT_MS", func(s *Settings) string { return number(int64(s.GroupMaxSessionTimeoutMs)) },
		"The largest session timeout that a group member may ask for, in milliseconds."},
	{"group.max.size", TypeInt, "GROUP_MAX_SIZE", func(s *Settings) string { return number(int64(s.GroupMaxSize)) }, "The most members of a group."},
	{"group.min.session.timeout.ms", TypeInt, "GROUP_MIN_SESSION_TIMEOUT_MS", func(s *Settings) string { return number(int64(s.GroupMinSessionTimeoutMs)) },
		"The least session timeout that a group member may ask for, in milliseconds."},
	{"listener.security.protocol.map", TypeString, "LISTENERS", protocolMap, "The security protocol of each listener."},
	{"listeners", TypeList, "LISTENERS", func(s *Settings) string { return s.Listeners }, "The addresses that the broker listens on."},
	{"log.cleaner.dedupe.buffer.size", TypeLong, "CLEANER_MAX_KEYS", func(s *Settings) string { return number(int64(s.CleanerMaxKeys) * keyBytes) },
		"The memory that a compaction has for keys, in bytes."},
	{"log.cleaner.io.max.bytes.per.second", TypeDouble, "CLEANER_BYTES_PER_SECOND", cleanerRate, "How many bytes a second compaction reads and writes."},
	{"log.dir", TypeList, "DATA_DIR", func(s *Settings) string { return s.DataDir }, "The data directory."},
	{"log.dirs", TypeList, "DATA_DIR", func(s *Settings) string { return s.DataDir }, "The data directory."},
	{"node.id", TypeInt, "NODE_ID", func(s *Settings) string { return number(int64(s.NodeID)) }, "The broker's id."},
	{"num.partitions", TypeInt, "NUM_PARTITIONS", func(s *Settings) string { return number(int64(s.NumPartitions)) }, "Partitions of a topic that is made without a number."},
	{"offset.metadata.max.bytes", TypeInt, "OFFSET_METADATA_MAX_BYTES", func(s *Settings) string { return number(int64(s.OffsetMetadataMaxBytes)) },
		"The largest metadata beside a committed offset, in characters."},
	{"offsets.retention.check.interval.ms", TypeLong, "", fixed(number(OffsetsRetentionCheckInterval.Milliseconds())), "How often expired offsets are looked for, in milliseconds."},
	{"offsets.retention.minutes", TypeInt, "OFFSETS_RETENTION_MINUTES", func(s *Settings) string { return number(int64(s.OffsetsRetentionMinutes)) },
		"How long the committed offsets of a group without members are kept, in minutes."},
	{"process.roles", TypeList, "", fixed("broker,controller"), "The roles of this process."},
	{"producer.id.expiration.ms", TypeInt, "", fixed(number(ProducerIDExpiration.Milliseconds())), "How long an idle producer's sequences are remembered, in milliseconds."},
	{"socket.request.max.bytes", TypeInt, "SOCKET_REQUEST_MAX_BYTES", func(s *Settings) string { return number(int64(s.SocketRequestMaxBytes)) }, "The largest request in bytes."},
	{"transaction.max.timeout.ms", TypeInt, "TRANSACTION_MAX_TIMEOUT_MS", func(s *Settings) string { return number(int64(s.TransactionMaxTimeoutMs)) },
		"The largest timeout that a transaction may have, in milliseconds."},
	{"transactional.id.expiration.ms", TypeInt, "TRANSACTIONAL_ID_EXPIRATION_MS", func(s *Settings) string { return number(s.TransactionalIDExpirationMs) },
		"How long a transactional id that nobody uses is known, in milliseconds."},
}

// cleanerRate is log.cleaner.io.max.bytes.per.second; no limit is Kafka's default.
func cleanerRate(s *Settings) string {
	if s.CleanerBytesPerSecond == 0 {
		return formatDouble(math.MaxFloat64)
	}
	return formatDouble(float64(s.CleanerBytesPerSecond))
}

// protocolMap is listener.security.protocol.map: every listener is plaintext.
func protocolMap(s *Settings) string {
	listeners, err := ParseListeners(s.Listeners)
	if err != nil {
		return ""
	}
	var b []string
	for _, l := range listeners {
		b = append(b, l.Name+":PLAINTEXT")
	}
	return strings.Join(b, ",")
}

// DescribeBroker lists the broker's own configs under Kafka's property names,
// by name (ConfigHelper.createBrokerConfigEntry), and those that are none of
// Kafka's but were set all the same. Read-only are all but the defaults of topics.
func DescribeBroker(s *Settings) []Entry {
	var all []Entry
	for _, c := range brokerConfigs {
		v := c.value(s)
		e := Entry{Name: c.name, Value: &v, Source: SourceDefault, ReadOnly: true, Type: c.typ, Doc: c.doc}
		if c.setting != "" && s.given(c.setting) {
			e.Source = SourceStatic
			e.Synonyms = append(e.Synonyms, Synonym{c.name, e.Value, SourceStatic})
		}
		d := c.value(defaults)
		e.Synonyms = append(e.Synonyms, Synonym{c.name, &d, SourceDefault})
		all = append(all, e)
	}
	for i := range topicConfigs {
		all = append(all, topicConfigs[i].brokerEntries(s)...)
	}
	return sorted(append(all, customEntries(s.dynamic)...))
}

func sorted(all []Entry) []Entry {
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// customEntries are the altered configs that are none of Kafka's. They might
// be secrets of a plugin's, so that no value is told.
func customEntries(d Dynamic) []Entry {
	var all []Entry
	for _, name := range slices.Compact(slices.Sorted(concat(maps.Keys(d.Broker), maps.Keys(d.Cluster)))) {
		if dynamicProperty(name) != nil {
			continue
		}
		e := Entry{Name: name, Sensitive: true, ReadOnly: true, Synonyms: d.synonyms(name)}
		for i := range e.Synonyms {
			e.Synonyms[i].Value = nil
		}
		e.Source = e.Synonyms[0].Source
		all = append(all, e)
	}
	return all
}

func concat(all ...iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, seq := range all {
			for v := range seq {
				if !yield(v) {
					return
				}
			}
		}
	}
}

// DescribeCluster lists the configs that were altered for the whole cluster,
// by name: DescribeConfigs of a broker without a name.
func DescribeCluster(s *Settings) []Entry {
	only := Dynamic{Cluster: s.dynamic.Cluster}
	all := customEntries(only)
	for name, raw := range only.Cluster {
		if c := dynamicProperty(name); c != nil {
			v := c.canonicalProperty(raw)
			all = append(all, Entry{Name: name, Value: &v, Source: SourceDynamicCluster, Type: c.typ, Doc: c.doc, Synonyms: only.synonyms(name)})
		}
	}
	return sorted(all)
}

func (c *topicConfig) canonicalProperty(raw string) string {
	if v, err := c.parseProperty(raw); err == nil {
		return v.String()
	}
	return raw
}

// brokerEntries are the entries for the broker properties behind a topic config.
func (c *topicConfig) brokerEntries(s *Settings) []Entry {
	properties := c.properties(s)
	var all []Entry
	for i, b := range c.broker {
		synonyms := startingWith(b.name, properties) // of log.roll.hours, log.roll.ms is none
		e := Entry{Name: b.name, ReadOnly: i > 0, Type: b.typ, Doc: c.doc, Source: SourceDefault, Synonyms: synonyms}
		if e.Type == TypeUnknown {
			e.Type = c.typ
		}
		if e.Value = c.propertyDefault(b); i == 0 && len(synonyms) > 0 && synonyms[0].Source != SourceDefault {
			v := c.canonicalProperty(*synonyms[0].Value)
			e.Value = &v
		}
		if len(synonyms) > 0 {
			e.Source = synonyms[0].Source
		}
		all = append(all, e)
	}
	return all
}
