// Package config holds every setting once: name, type, default, scope and
// documentation. Flags, environment variables, topic configs, DescribeConfigs
// and the README's table are derived from it.
package config

// This file is the agreed surface of the package. The implementation may move
// the declarations to better files; names and meanings stay.

import "time"

// Settings are the broker's settings (FX-1). Tags: env name without the
// DOZE_KAFKA_ prefix, default, one line of documentation.
type Settings struct {
	DataDir               string        `env:"DATA_DIR" envDefault:"./data"`
	MetaDB                string        `env:"META_DB"`
	Listeners             string        `env:"LISTENERS" envDefault:"PLAINTEXT://127.0.0.1:9092"`
	AdvertisedListeners   string        `env:"ADVERTISED_LISTENERS" envDefault:"auto"`
	HostEndpoint          string        `env:"HOST_ENDPOINT"`
	HTTPListen            string        `env:"HTTP_LISTEN" envDefault:"127.0.0.1:9080"`
	Container             bool          `env:"CONTAINER"`
	NodeID                int32         `env:"NODE_ID" envDefault:"1"`
	ClusterID             string        `env:"CLUSTER_ID"`
	SegmentBytes          int64         `env:"SEGMENT_BYTES" envDefault:"134217728"`
	SegmentMs             int64         `env:"SEGMENT_MS" envDefault:"604800000"`
	IndexIntervalBytes    int           `env:"INDEX_INTERVAL_BYTES" envDefault:"4096"`
	RetentionBytes        int64         `env:"RETENTION_BYTES" envDefault:"-1"`
	RetentionMs           int64         `env:"RETENTION_MS" envDefault:"-1"`
	FsyncInterval         time.Duration `env:"FSYNC_INTERVAL" envDefault:"500ms"`
	AcksAllSync           bool          `env:"ACKS_ALL_SYNC" envDefault:"true"`
	Topics                string        `env:"TOPICS"`
	AutoCreateTopics      bool          `env:"AUTO_CREATE_TOPICS" envDefault:"true"`
	NumPartitions         int32         `env:"NUM_PARTITIONS" envDefault:"1"`
	StrictReplication     bool          `env:"STRICT_REPLICATION"`
	MessageMaxBytes       int           `env:"MESSAGE_MAX_BYTES" envDefault:"1048588"`
	SocketRequestMaxBytes int           `env:"SOCKET_REQUEST_MAX_BYTES" envDefault:"104857600"`
	RequestMemoryBytes    int64         `env:"REQUEST_MEMORY_BYTES"` // 0: a quarter of the cgroup limit, or of 1 GiB
	LogLevel              string        `env:"LOG_LEVEL" envDefault:"info"`
	LogFormat             string        `env:"LOG_FORMAT" envDefault:"text"`
}

// Default returns the settings with their defaults alone, as an embedding test wants them.
func Default() *Settings { panic("not built") }

// Parse reads environment (os.Environ form) and flags: flag beats environment
// beats default. The error joins one line per mistake (FX-2). help is the text of --help when it was asked for.
func Parse(args, environ []string) (s *Settings, help string, err error) { panic("not built") }

// Validate checks settings that were filled in by a program.
func (s *Settings) Validate() error { panic("not built") }

// Type is a ConfigDef type, numbered as DescribeConfigs v3 does.
type Type int8

// A Source is where a value comes from, numbered as DescribeConfigs does.
type Source int8

// A Synonym is one place that gives, or would give, a config its value.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// An Entry is one config as DescribeConfigs and CreateTopics tell of it.
type Entry struct {
	Name      string
	Value     *string // nil: sensitive, or none
	Source    Source
	ReadOnly  bool
	Sensitive bool
	Type      Type
	Doc       string
	Synonyms  []Synonym // highest precedence first
}

// DescribeTopic lists every topic config, by name, with the overrides of one topic (ConfigHelper, reference 5.5).
func DescribeTopic(s *Settings, overrides map[string]string) []Entry { panic("not built") }

// DescribeBroker lists the broker's own configs under Kafka's property names, by name.
func DescribeBroker(s *Settings) []Entry { panic("not built") }

// ValidateTopic checks a topic's overrides as LogConfig.validate does: INVALID_CONFIG with Kafka's text.
func ValidateTopic(s *Settings, overrides map[string]string) error { panic("not built") }

// A Topic is the effective configuration of a topic: overrides, then the settings, then defaults, parsed.
// Its fields are named like Kafka's configs.
type Topic struct {
	CleanupDelete, CleanupCompact bool
	// the implementation adds one field for each topic config
}

// EffectiveTopic parses overrides that ValidateTopic accepts.
func EffectiveTopic(s *Settings, overrides map[string]string) (*Topic, error) { panic("not built") }
