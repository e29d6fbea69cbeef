package config

import (
	"math"
	"strconv"
)

// A topicConfig is one row of the table of topic configs (LogConfig.CONFIG).
type topicConfig struct {
	name string
	typ  Type
	def  string // Kafka's default, or ours where from is set or the comment says so
	// from is the setting that gives the default, with the name it has in Settings.
	from    func(*Settings) string
	setting string
	check   check
	// broker are the broker properties that give the topic's default (ServerTopicConfigSynonyms), highest precedence first.
	broker []synonymDef
	store  func(*Topic, value)
	hidden bool // accepted but never listed
	doc    string
}

// A synonymDef is a broker property behind a topic config. With def "" it has
// no default of its own: it is listed only if it is set.
type synonymDef struct {
	name string
	typ  Type
	def  string
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// same is the usual case: one property of another name, the same type and default.
func same(name string) []synonymDef { return []synonymDef{{name: name}} }

func storeLong(field func(*Topic) *int64) func(*Topic, value) {
	return func(t *Topic, v value) { *field(t) = v.number }
}

func storeInt(field func(*Topic) *int32) func(*Topic, value) {
	return func(t *Topic, v value) { *field(t) = int32(v.number) }
}

func storeBool(field func(*Topic) *bool) func(*Topic, value) {
	return func(t *Topic, v value) { *field(t) = v.boolean }
}

// nothing is the store of a config that has no effect on a broker without
// replicas and remote storage: it is validated, kept and listed.
func nothing(*Topic, value) {}

const noLimit = "9223372036854775807"

// topicConfigs is every topic config of Kafka 4.4 in the order in which
// LogConfig defines, and so validates, them.
var topicConfigs = []topicConfig{
	{name: "segment.bytes", typ: TypeInt, from: func(s *Settings) string { return number(s.SegmentBytes) }, setting: "SEGMENT_BYTES",
		check: atLeast(1 << 20), broker: same("log.segment.bytes"), store: storeInt(func(t *Topic) *int32 { return &t.SegmentBytes }),
		doc: "A segment rolls before an append would make it larger than this many bytes."},
	{name: "segment.ms", typ: TypeLong, from: func(s *Settings) string { return number(s.SegmentMs) }, setting: "SEGMENT_MS",
		check: atLeast(1), broker: []synonymDef{{"log.roll.ms", TypeLong, ""}, {"log.roll.hours", TypeInt, "168"}},
		store: storeLong(func(t *Topic) *int64 { return &t.SegmentMs }),
		doc:   "A segment rolls once the timestamps of its records are this many milliseconds apart."},
	{name: "segment.jitter.ms", typ: TypeLong, def: "0", check: atLeast(0),
		broker: []synonymDef{{"log.roll.jitter.ms", TypeLong, ""}, {"log.roll.jitter.hours", TypeInt, "0"}},
		store:  storeLong(func(t *Topic) *int64 { return &t.SegmentJitterMs }),
		doc:    "Up to this many milliseconds are taken off segment.ms at random, so that segments do not all roll at once."},
	{name: "segment.index.bytes", typ: TypeInt, def: "10485760", check: atLeast(4), broker: same("log.index.size.max.bytes"),
		store: storeInt(func(t *Topic) *int32 { return &t.SegmentIndexBytes }), doc: "The largest size of a segment's offset index in bytes."},
	{name: "flush.messages", typ: TypeLong, def: noLimit, check: atLeast(1), broker: same("log.flush.interval.messages"),
		store: storeLong(func(t *Topic) *int64 { return &t.FlushMessages }), doc: "The log is flushed to the disk after this many records."},
	{name: "flush.ms", typ: TypeLong, def: noLimit, check: atLeast(0),
		broker: []synonymDef{{"log.flush.interval.ms", TypeLong, ""}, {"log.flush.scheduler.interval.ms", TypeLong, noLimit}},
		store:  storeLong(func(t *Topic) *int64 { return &t.FlushMs }), doc: "The log is flushed to the disk after this many milliseconds."},
	{name: "retention.bytes", typ: TypeLong, from: func(s *Settings) string { return number(s.RetentionBytes) }, setting: "RETENTION_BYTES",
		broker: same("log.retention.bytes"), store: storeLong(func(t *Topic) *int64 { return &t.RetentionBytes }),
		doc: "How large a partition may get before its oldest segments are deleted; -1 for no limit."},
	{name: "retention.ms", typ: TypeLong, from: func(s *Settings) string { return number(s.RetentionMs) }, setting: "RETENTION_MS", check: atLeast(-1),
		// log.retention.hours is -1 here where Kafka has 168 (FX-4: retention is off).
		broker: []synonymDef{{"log.retention.ms", TypeLong, ""}, {"log.retention.minutes", TypeInt, ""}, {"log.retention.hours", TypeInt, "-1"}},
		store:  storeLong(func(t *Topic) *int64 { return &t.RetentionMs }),
		doc:    "How old, in milliseconds, records may get before their segment is deleted; -1 for no limit."},
	{name: "max.message.bytes", typ: TypeInt, from: func(s *Settings) string { return number(int64(s.MessageMaxBytes)) }, setting: "MESSAGE_MAX_BYTES",
		check: atLeast(0), broker: same("message.max.bytes"), store: storeInt(func(t *Topic) *int32 { return &t.MaxMessageBytes }),
		doc: "The largest record batch, as compressed, that is accepted, in bytes."},
	{name: "max.decompressed.message.bytes", typ: TypeInt, def: "2147483639", check: between(1, 2147483639),
		broker: same("max.decompressed.message.bytes"), store: storeInt(func(t *Topic) *int32 { return &t.MaxDecompressedMessageBytes }),
		doc: "The largest single record once decompressed, in bytes."},
	{name: "index.interval.bytes", typ: TypeInt, from: func(s *Settings) string { return number(int64(s.IndexIntervalBytes)) }, setting: "INDEX_INTERVAL_BYTES",
		check: atLeast(0), broker: same("log.index.interval.bytes"), store: storeInt(func(t *Topic) *int32 { return &t.IndexIntervalBytes }),
		doc: "An index entry is written for about every this many bytes of log."},
	{name: "delete.retention.ms", typ: TypeLong, def: "86400000", check: atLeast(0), broker: same("log.cleaner.delete.retention.ms"),
		store: storeLong(func(t *Topic) *int64 { return &t.DeleteRetentionMs }), doc: "How long a tombstone stays in a compacted log after its first cleaning, in milliseconds."},
	{name: "min.compaction.lag.ms", typ: TypeLong, def: "0", check: atLeast(0), broker: same("log.cleaner.min.compaction.lag.ms"),
		store: storeLong(func(t *Topic) *int64 { return &t.MinCompactionLagMs }), doc: "A record is not compacted away before it is this old, in milliseconds."},
	{name: "max.compaction.lag.ms", typ: TypeLong, def: noLimit, check: atLeast(1), broker: same("log.cleaner.max.compaction.lag.ms"),
		store: storeLong(func(t *Topic) *int64 { return &t.MaxCompactionLagMs }), doc: "A record is compacted at the latest when it is this old, in milliseconds."},
	{name: "file.delete.delay.ms", typ: TypeLong, def: "60000", check: atLeast(0), broker: same("log.segment.delete.delay.ms"), store: nothing,
		doc: "How long Kafka keeps the files of deleted segments; here they go once no reader has them."},
	{name: "min.cleanable.dirty.ratio", typ: TypeDouble, def: "0.0" /* ST-47; Kafka's is 0.5 */, check: between(0, 1), broker: same("log.cleaner.min.cleanable.ratio"),
		store: func(t *Topic, v value) { t.MinCleanableDirtyRatio = v.double }, doc: "The share of a log that must be new before it is compacted."},
	{name: "cleanup.policy", typ: TypeList, def: "delete", check: listIn("compact", "delete"), broker: same("log.cleanup.policy"), store: storePolicy,
		doc: "delete: old segments go by retention; compact: the latest record of each key stays; both may be given."},
	{name: "unclean.leader.election.enable", typ: TypeBoolean, def: "false", broker: same("unclean.leader.election.enable"), store: nothing,
		doc: "Whether a replica that is behind may lead; without effect on a single broker."},
	{name: "min.insync.replicas", typ: TypeInt, def: "1", check: atLeast(1), broker: same("min.insync.replicas"), store: storeInt(func(t *Topic) *int32 { return &t.MinInsyncReplicas }),
		doc: "How many replicas must have a record before an acks=all is answered; a single broker has one."},
	{name: "compression.type", typ: TypeString, def: "producer", check: stringIn("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), broker: same("compression.type"),
		store: func(t *Topic, v value) { t.CompressionType = v.text }, doc: "The codec that batches are stored in; producer keeps the one they came in."},
	{name: "compression.gzip.level", typ: TypeInt, def: "-1", check: gzipLevel, broker: same("compression.gzip.level"),
		store: storeInt(func(t *Topic) *int32 { return &t.CompressionGzipLevel }), doc: "The level for compression.type gzip."},
	{name: "compression.lz4.level", typ: TypeInt, def: "9", check: between(1, 17), broker: same("compression.lz4.level"),
		store: storeInt(func(t *Topic) *int32 { return &t.CompressionLZ4Level }), doc: "The level for compression.type lz4."},
	{name: "compression.zstd.level", typ: TypeInt, def: "3", check: between(-131072, 22), broker: same("compression.zstd.level"),
		store: storeInt(func(t *Topic) *int32 { return &t.CompressionZstdLevel }), doc: "The level for compression.type zstd."},
	{name: "preallocate", typ: TypeBoolean, def: "false", broker: same("log.preallocate"), store: storeBool(func(t *Topic) *bool { return &t.Preallocate }),
		doc: "Whether a new segment's file gets its whole size at once."},
	{name: "message.timestamp.type", typ: TypeString, def: "CreateTime", check: stringIn("CreateTime", "LogAppendTime"), broker: same("log.message.timestamp.type"),
		store: func(t *Topic, v value) { t.LogAppendTime = v.text == "LogAppendTime" }, doc: "Whether records keep the producer's timestamp or get the broker's."},
	{name: "message.timestamp.before.max.ms", typ: TypeLong, def: noLimit, check: atLeast(0), broker: same("log.message.timestamp.before.max.ms"),
		store: storeLong(func(t *Topic) *int64 { return &t.MessageTimestampBeforeMaxMs }), doc: "How far, in milliseconds, a record's timestamp may lie before the broker's clock."},
	{name: "message.timestamp.after.max.ms", typ: TypeLong, def: "3600000", check: atLeast(0), broker: same("log.message.timestamp.after.max.ms"),
		store: storeLong(func(t *Topic) *int64 { return &t.MessageTimestampAfterMaxMs }), doc: "How far, in milliseconds, a record's timestamp may lie after the broker's clock."},
	{name: "leader.replication.throttled.replicas", typ: TypeList, check: throttledReplicas, store: nothing,
		doc: "Replicas whose replication is throttled on the leader; without effect on a single broker."},
	{name: "follower.replication.throttled.replicas", typ: TypeList, check: throttledReplicas, store: nothing,
		doc: "Replicas whose replication is throttled on the follower; without effect on a single broker."},
	{name: "remote.storage.enable", typ: TypeBoolean, def: "false", store: storeBool(func(t *Topic) *bool { return &t.remoteStorage }),
		doc: "Tiered storage, which this broker does not have."},
	{name: "local.retention.ms", typ: TypeLong, def: "-2", check: atLeast(-2), broker: same("log.local.retention.ms"), store: nothing,
		doc: "How long segments stay local with tiered storage; without effect."},
	{name: "local.retention.bytes", typ: TypeLong, def: "-2", check: atLeast(-2), broker: same("log.local.retention.bytes"), store: nothing,
		doc: "How many bytes of segments stay local with tiered storage; without effect."},
	{name: "remote.log.copy.disable", typ: TypeBoolean, def: "false", store: nothing, doc: "Makes the tiered data of a topic read-only; without effect."},
	{name: "remote.copy.lag.ms", typ: TypeLong, def: "0", check: atLeast(-1), broker: same("log.remote.copy.lag.ms"), store: nothing,
		doc: "How long a segment waits before it is copied to tiered storage; without effect."},
	{name: "remote.copy.lag.bytes", typ: TypeLong, def: "-1", check: atLeast(-1), broker: same("log.remote.copy.lag.bytes"), store: nothing,
		doc: "How many bytes wait before a segment is copied to tiered storage; without effect."},
	{name: "remote.log.delete.on.disable", typ: TypeBoolean, def: "false", store: nothing, doc: "Deletes tiered data when tiered storage is turned off; without effect."},
	{name: "errors.deadletterqueue.group.enable", typ: TypeBoolean, def: "false", store: nothing, doc: "Lets share groups use the topic as a dead-letter queue; without effect."},
	{name: "internal.segment.bytes", typ: TypeInt, def: "", hidden: true, store: func(t *Topic, v value) { t.SegmentBytes = int32(v.number) },
		doc: "segment.bytes without its lower bound, for tests."},
}

func storePolicy(t *Topic, v value) {
	t.CleanupDelete, t.CleanupCompact = false, false
	for _, p := range v.list {
		t.CleanupDelete = t.CleanupDelete || p == "delete"
		t.CleanupCompact = t.CleanupCompact || p == "compact"
	}
}

// topicConfigByName finds a row of the table.
var topicConfigByName = func() map[string]*topicConfig {
	m := make(map[string]*topicConfig, len(topicConfigs))
	for i := range topicConfigs {
		m[topicConfigs[i].name] = &topicConfigs[i]
	}
	return m
}()

// defaultValue is the config's value without an override.
func (c *topicConfig) defaultValue(s *Settings) string {
	if v, ok := c.dynamicDefault(s); ok {
		return v
	}
	if v, ok := c.propertyValue(s); ok {
		return v
	}
	if c.from != nil {
		return c.from(s)
	}
	return c.def
}

// propertyValue is what Kafka's property for a config without a setting was given.
func (c *topicConfig) propertyValue(s *Settings) (string, bool) {
	if len(c.broker) == 0 || c.setting != "" {
		return "", false
	}
	v, ok := s.topicDefaults[c.broker[0].name]
	return v, ok
}

// Forever is the value of a config in milliseconds or messages that turns it off.
const Forever = math.MaxInt64
