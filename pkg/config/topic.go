package config

import (
	"maps"
	"slices"
	"strconv"
)

// A Topic is the effective configuration of a topic: overrides, then the settings, then defaults, parsed.
// Its fields are named like Kafka's configs. Configs that a broker without
// replicas and remote storage can't act on have no field.
type Topic struct {
	CleanupDelete, CleanupCompact bool    // cleanup.policy
	CompressionType               string  // uncompressed, gzip, snappy, lz4, zstd, or producer
	CompressionGzipLevel          int32   // 1 to 9, or -1: the codec's default
	CompressionLZ4Level           int32   // 1 to 17
	CompressionZstdLevel          int32   // -131072 to 22
	DeleteRetentionMs             int64   // ms
	FlushMessages                 int64   // records; Forever: never
	FlushMs                       int64   // ms; Forever: never
	IndexIntervalBytes            int32   // bytes
	LogAppendTime                 bool    // message.timestamp.type
	MaxCompactionLagMs            int64   // ms
	MaxDecompressedMessageBytes   int32   // bytes
	MaxMessageBytes               int32   // bytes
	MessageTimestampAfterMaxMs    int64   // ms
	MessageTimestampBeforeMaxMs   int64   // ms
	MinCleanableDirtyRatio        float64 // 0 to 1
	MinCompactionLagMs            int64   // ms
	MinInsyncReplicas             int32
	Preallocate                   bool
	RetentionBytes                int64 // bytes; negative: no limit
	RetentionMs                   int64 // ms; -1: no limit
	SegmentBytes                  int32 // bytes
	SegmentIndexBytes             int32 // bytes
	SegmentJitterMs               int64 // ms
	SegmentMs                     int64 // ms

	remoteStorage bool
}

// ValidateTopic checks a topic's overrides as LogConfig.validate does: the
// names, then each value in the order of the table, then values against each other. The
// error is an *InvalidError, INVALID_CONFIG with Kafka's text.
func ValidateTopic(s *Settings, overrides map[string]string) error {
	t, err := EffectiveTopic(s, overrides)
	switch {
	case err != nil:
		return err
	case t.MinCompactionLagMs > t.MaxCompactionLagMs:
		return &InvalidError{"conflict topic config setting min.compaction.lag.ms (" + strconv.FormatInt(t.MinCompactionLagMs, 10) +
			") > max.compaction.lag.ms (" + strconv.FormatInt(t.MaxCompactionLagMs, 10) + ")"}
	case t.remoteStorage:
		return &InvalidError{"Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."}
	}
	return nil
}

// EffectiveTopic parses overrides. Its errors are those of ValidateTopic, but
// for values against each other: the broker's may be altered under topics that exist.
func EffectiveTopic(s *Settings, overrides map[string]string) (*Topic, error) {
	// Kafka names the first in the order of a hash map; here it is the alphabet's.
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if topicConfigByName[name] == nil {
			return nil, &InvalidError{"Unknown topic config name: " + name}
		}
	}
	t := &Topic{}
	for i := range topicConfigs {
		c := &topicConfigs[i]
		raw, set := overrides[c.name]
		if !set {
			if c.hidden {
				continue
			}
			raw = c.defaultValue(s)
		}
		v, err := c.parse(raw)
		if err != nil {
			return nil, err
		}
		c.store(t, v)
	}
	return t, nil
}

// TopicListDefault says whether a topic config is a list, and Kafka's default
// for it, which appending to it starts from.
func TopicListDefault(name string) (value string, ok bool) {
	c := topicConfigByName[name]
	if c == nil || c.typ != TypeList {
		return "", false
	}
	return c.defaultValue(defaults), true
}

// parse reads and checks a value.
func (c *topicConfig) parse(raw string) (value, error) {
	v, err := parse(c.name, raw, c.typ)
	if err == nil && c.check != nil {
		err = c.check(c.name, &v)
	}
	return v, err
}
