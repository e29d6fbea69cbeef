package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// ImagePrefix is what the name of a variable begins with that gives a setting
// another default: an image's environment must not win over what its user says in Kafka's words.
const ImagePrefix = Prefix + "IMAGE_"

// Prefix is what the name of every environment variable begins with.
const Prefix = "DOZE_KAFKA_"

// ProducerIDExpiration is producer.id.expiration.ms: how long an idle
// producer's sequences are remembered (TX-2). It has no setting of its own.
const ProducerIDExpiration = 24 * time.Hour

// OffsetsRetentionCheckInterval is offsets.retention.check.interval.ms: how
// often offsets whose retention has passed are dropped (GR-7). It has no setting of its own.
const OffsetsRetentionCheckInterval = 10 * time.Minute

// Settings are the broker's settings (FX-1), and the single place they are
// declared. The tags are: env, the name without Prefix (the flag is derived
// from it); envDefault; unit, "bytes" for a number that may have a suffix;
// allowed, what a value may be, shown by --help and in mistakes; doc, one line.
type Settings struct {
	DataDir                      string        `env:"DATA_DIR" envDefault:"./data" allowed:"a directory" doc:"where topics and meta.db are kept"`
	MetaDB                       string        `env:"META_DB" allowed:"a file" doc:"meta.db elsewhere than in the data directory"`
	Listeners                    string        `env:"LISTENERS" envDefault:"PLAINTEXT://127.0.0.1:9092" allowed:"NAME://host:port, several by commas; port 0 takes a free one" doc:"addresses that the broker listens on, in Kafka's syntax"`
	AdvertisedListeners          string        `env:"ADVERTISED_LISTENERS" envDefault:"auto" allowed:"auto, or NAME://host:port, several by commas, each NAME one of the listeners" doc:"addresses that clients are told; auto: for each connection the one that works for it"`
	HostEndpoint                 string        `env:"HOST_ENDPOINT" allowed:"host:port" doc:"address that clients outside a container are told with auto; localhost and the listener's port if empty"`
	WaitForEndpoint              bool          `env:"WAIT_FOR_ENDPOINT" doc:"keep the Kafka listeners closed until the host endpoint is set (PUT /v1/endpoint)"`
	HTTPListen                   string        `env:"HTTP_LISTEN" envDefault:"127.0.0.1:9080" allowed:"host:port, or off" doc:"address of health, metrics and control"`
	Container                    bool          `env:"CONTAINER" doc:"set by the image: the broker runs in a container, which auto addresses take into account"`
	NodeID                       int32         `env:"NODE_ID" envDefault:"1" allowed:"0 to 2147483647" doc:"the broker id that clients see"`
	ClusterID                    string        `env:"CLUSTER_ID" allowed:"22 characters of A-Z, a-z, 0-9, - and _" doc:"the cluster id of a new data directory; made at random if empty, and kept"`
	SegmentBytes                 int64         `env:"SEGMENT_BYTES" envDefault:"134217728" unit:"bytes" allowed:"1MiB to 2147483647" doc:"a segment rolls before it gets larger than this (topic config segment.bytes)"`
	SegmentMs                    int64         `env:"SEGMENT_MS" envDefault:"604800000" allowed:"milliseconds, at least 1" doc:"a segment rolls once its records span more than this (topic config segment.ms)"`
	IndexIntervalBytes           int           `env:"INDEX_INTERVAL_BYTES" envDefault:"4096" unit:"bytes" allowed:"0 to 2147483647" doc:"log bytes between two index entries (topic config index.interval.bytes)"`
	RetentionBytes               int64         `env:"RETENTION_BYTES" envDefault:"-1" unit:"bytes" allowed:"bytes, or -1 for no limit" doc:"the oldest segments of a partition are deleted while it is larger than this (topic config retention.bytes)"`
	RetentionMs                  int64         `env:"RETENTION_MS" envDefault:"-1" allowed:"milliseconds, or -1 for no limit" doc:"a segment is deleted once its newest record is older than this (topic config retention.ms)"`
	CleanerMaxKeys               int           `env:"CLEANER_MAX_KEYS" envDefault:"1000000" allowed:"1 to 100000000" doc:"keys that compaction holds in memory at a time, at 30 bytes each; a log with more is read once for each part of them"`
	CleanerBytesPerSecond        int64         `env:"CLEANER_BYTES_PER_SECOND" envDefault:"0" unit:"bytes" allowed:"bytes, or 0 for no limit" doc:"bytes that compaction reads and writes in a second, at most; 0: no limit"`
	FsyncInterval                time.Duration `env:"FSYNC_INTERVAL" envDefault:"500ms" allowed:"a duration such as 500ms or 2s; 0 turns the timer off" doc:"how often records that no acks=all waits for are flushed to the disk"`
	AcksAllSync                  bool          `env:"ACKS_ALL_SYNC" envDefault:"true" doc:"flush to the disk before an acks=all is answered; false gives up durability over a power cut for speed"`
	Topics                       string        `env:"TOPICS" allowed:"name[:partitions[:config=value[;config=value]]], several by commas" doc:"topics to make or grow at start, such as orders:3,audit:1:cleanup.policy=compact"`
	AutoCreateTopics             bool          `env:"AUTO_CREATE_TOPICS" envDefault:"true" doc:"make a topic when a client first asks for it"`
	NumPartitions                int32         `env:"NUM_PARTITIONS" envDefault:"1" allowed:"1 to 10000" doc:"partitions of a topic that is made without a number"`
	StrictReplication            bool          `env:"STRICT_REPLICATION" doc:"refuse a replication factor above 1, as Kafka with one broker does, instead of storing 1"`
	MessageMaxBytes              int           `env:"MESSAGE_MAX_BYTES" envDefault:"1048588" unit:"bytes" allowed:"0 to 2147483647" doc:"largest record batch (topic config max.message.bytes)"`
	SocketRequestMaxBytes        int           `env:"SOCKET_REQUEST_MAX_BYTES" envDefault:"104857600" unit:"bytes" allowed:"1 to 2147483647" doc:"largest request; a larger one closes its connection"`
	RequestMemoryBytes           int64         `env:"REQUEST_MEMORY_BYTES" envDefault:"0" unit:"bytes" allowed:"bytes, or 0" doc:"memory for requests in flight; 0: a quarter of the container's limit, or of 1 GiB"`
	GroupInitialRebalanceDelayMs int           `env:"GROUP_INITIAL_REBALANCE_DELAY_MS" envDefault:"20" allowed:"0 to 2147483647" doc:"how long the first join of an empty group waits for others, in milliseconds; as often again while more come"`
	GroupMinSessionTimeoutMs     int           `env:"GROUP_MIN_SESSION_TIMEOUT_MS" envDefault:"100" allowed:"0 to 2147483647" doc:"least session timeout that a group member may ask for, in milliseconds"`
	GroupMaxSessionTimeoutMs     int           `env:"GROUP_MAX_SESSION_TIMEOUT_MS" envDefault:"1800000" allowed:"0 to 2147483647" doc:"largest session timeout that a group member may ask for, in milliseconds"`
	GroupMaxSize                 int           `env:"GROUP_MAX_SIZE" envDefault:"2147483647" allowed:"1 to 2147483647" doc:"most members of a group"`
	GroupEvictOnDisconnect       bool          `env:"GROUP_EVICT_ON_DISCONNECT" doc:"remove a group member 500 ms after its last connection closed instead of after its session timeout"`
	OffsetsRetentionMinutes      int           `env:"OFFSETS_RETENTION_MINUTES" envDefault:"10080" allowed:"minutes, at least 1" doc:"how long the committed offsets of a group without members are kept"`
	OffsetMetadataMaxBytes       int           `env:"OFFSET_METADATA_MAX_BYTES" envDefault:"4096" unit:"bytes" allowed:"0 to 2147483647" doc:"largest metadata beside a committed offset"`
	TransactionMaxTimeoutMs      int           `env:"TRANSACTION_MAX_TIMEOUT_MS" envDefault:"900000" allowed:"1 to 2147483647" doc:"largest transaction.timeout.ms that a producer may ask for, in milliseconds"`
	TransactionalIDExpirationMs  int64         `env:"TRANSACTIONAL_ID_EXPIRATION_MS" envDefault:"604800000" allowed:"1 to 2147483647" doc:"how long a transactional id that nobody uses is known, in milliseconds"`
	LogLevel                     string        `env:"LOG_LEVEL" envDefault:"info" allowed:"debug, info, warn, error" doc:"least level that is logged"`
	LogFormat                    string        `env:"LOG_FORMAT" envDefault:"text" allowed:"text, json" doc:"form of the log"`

	// Warnings are what Parse found odd but did not refuse, one line each,
	// for the log: an unknown variable with our prefix is likely a typo.
	Warnings []string `env:"-"`

	// createTopics are the topics of CreateTopicsVariable.
	createTopics []Seed

	set map[string]bool // names (DATA_DIR) that flags or environment gave

	dynamic Dynamic // see WithDynamic

	// topicDefaults are Kafka's properties that are defaults of topics and have no setting, by their names.
	topicDefaults map[string]string
}

// A setting is one field of Settings with what its tags say.
type setting struct {
	index   int
	name    string // DATA_DIR
	def     string
	unit    string
	allowed string
	doc     string
	typ     reflect.Type
}

// settings are all settings in the order they are declared.
var settings = func() []setting {
	t := reflect.TypeFor[Settings]()
	var all []setting
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("env")
		if name == "" || name == "-" {
			continue
		}
		s := setting{index: i, name: name, def: f.Tag.Get("envDefault"), unit: f.Tag.Get("unit"),
			allowed: f.Tag.Get("allowed"), doc: f.Tag.Get("doc"), typ: f.Type}
		if f.Type.Kind() == reflect.Bool {
			s.allowed = "true, false"
			if s.def == "" {
				s.def = "false"
			}
		}
		all = append(all, s)
	}
	return all
}()

// variable is the environment variable: DOZE_KAFKA_DATA_DIR.
func (s setting) variable() string { return Prefix + s.name }

// flag is the flag: --data-dir.
func (s setting) flag() string {
	return "--" + strings.ReplaceAll(strings.ToLower(s.name), "_", "-")
}

// kind is the type as --help names it.
func (s setting) kind() string {
	switch {
	case s.unit != "":
		return s.unit
	case s.typ == reflect.TypeFor[time.Duration]():
		return "duration"
	case s.typ.Kind() == reflect.Bool:
		return "boolean"
	case s.typ.Kind() == reflect.String:
		return "text"
	default:
		return "number"
	}
}

// shownDefault is the default for people.
func (s setting) shownDefault() string {
	switch {
	case s.def == "":
		return "(empty)"
	case s.unit == "bytes":
		return formatBytes(s.def)
	default:
		return s.def
	}
}

// Default returns the settings with their defaults alone, as an embedding test wants them.
func Default() *Settings {
	s := &Settings{}
	if err := env.ParseWithOptions(s, env.Options{Environment: map[string]string{}}); err != nil {
		panic(fmt.Sprintf("config: the defaults do not parse: %v", err)) // held by TestDefaults
	}
	return s
}

var defaults = Default()

// given says whether a setting (by its name, DATA_DIR) was set rather than
// left at its default: by flag or environment, or by a program that changed
// the field.
func (s *Settings) given(name string) bool {
	if s.set[name] {
		return true
	}
	for _, d := range settings {
		if d.name == name {
			return reflect.ValueOf(s).Elem().Field(d.index).Interface() !=
				reflect.ValueOf(defaults).Elem().Field(d.index).Interface()
		}
	}
	return false
}
