package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fileInput is the server.properties of Apache's example file-input.
const fileInput = `# a comment
advertised.listeners=PLAINTEXT_HOST://localhost:9092,SSL://localhost:9093,PLAINTEXT://broker:19092
controller.listener.names=CONTROLLER
group.initial.rebalance.delay.ms=0
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
log.dirs=/tmp/kraft-combined-logs
offsets.topic.replication.factor=1
process.roles=broker
ssl.client.auth=required
ssl.key.password=abcdefgh
transaction.state.log.min.isr=1
transaction.state.log.replication.factor=1
`

// FX-3, FX-12: the environments of the single-node compose examples that people have.
func TestComposeExamplesOfOtherImages(t *testing.T) {
	for _, x := range []struct {
		name       string
		properties string
		environ    string // by lines
		want       func(*Settings)
		warnings   []string
	}{
		{name: "Apache, plaintext", environ: `
KAFKA_NODE_ID=1
KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
KAFKA_ADVERTISED_LISTENERS=PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092
KAFKA_PROCESS_ROLES=broker,controller
KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093
KAFKA_LISTENERS=CONTROLLER://:29093,PLAINTEXT_HOST://:9092,PLAINTEXT://:19092
KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
CLUSTER_ID=4L6g3nShT-eMCtK--X86sw
KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR=1
KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR=1
KAFKA_LOG_DIRS=/tmp/kraft-combined-logs`,
			want: func(s *Settings) {
				s.NodeID, s.Listeners, s.AdvertisedListeners = 1, "PLAINTEXT_HOST://:9092,PLAINTEXT://:19092", "PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092"
				s.ClusterID, s.GroupInitialRebalanceDelayMs, s.DataDir = "4L6g3nShT-eMCtK--X86sw", 0, "/tmp/kraft-combined-logs"
			}},
		{name: "Apache, file input", properties: fileInput, environ: `
CLUSTER_ID=4L6g3nShT-eMCtK--X86sw
KAFKA_NODE_ID=1
KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093
KAFKA_LISTENERS=PLAINTEXT_HOST://:9092,SSL://:9093,CONTROLLER://:29093,PLAINTEXT://:19092
KAFKA_PROCESS_ROLES=broker,controller`,
			want: func(s *Settings) {
				s.Listeners, s.AdvertisedListeners = "PLAINTEXT_HOST://:9092,PLAINTEXT://:19092", "PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092"
				s.ClusterID, s.GroupInitialRebalanceDelayMs, s.DataDir = "4L6g3nShT-eMCtK--X86sw", 0, "/tmp/kraft-combined-logs"
			},
			warnings: []string{"KAFKA_LISTENERS=PLAINTEXT_HOST://:9092,SSL://:9093,CONTROLLER://:29093,PLAINTEXT://:19092: TLS and SASL are not supported, not opened: SSL (SSL)",
				"these Kafka properties have no effect here: ssl.client.auth in server.properties, ssl.key.password in server.properties"}},
		{name: "Apache, defaults of the image", environ: "KAFKA_NUM_PARTITIONS=3\nDOZE_KAFKA_IMAGE_LISTENERS=PLAINTEXT://:9092\nDOZE_KAFKA_IMAGE_DATA_DIR=/data",
			want: func(s *Settings) { s.NumPartitions, s.Listeners, s.DataDir = 3, "PLAINTEXT://:9092", "/data" }},
		{name: "Confluent, KRaft", environ: `
KAFKA_NODE_ID=1
KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092
KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1
KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0
KAFKA_TRANSACTION_STATE_LOG_MIN_ISR=1
KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR=1
KAFKA_JMX_PORT=9101
KAFKA_JMX_HOSTNAME=localhost
KAFKA_PROCESS_ROLES=broker,controller
KAFKA_CONTROLLER_QUORUM_VOTERS=1@broker:29093
KAFKA_LISTENERS=PLAINTEXT://broker:29092,CONTROLLER://broker:29093,PLAINTEXT_HOST://0.0.0.0:9092
KAFKA_INTER_BROKER_LISTENER_NAME=PLAINTEXT
KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
KAFKA_LOG_DIRS= , /tmp/kraft-combined-logs
CLUSTER_ID=MkU3OEVBNTcwNTJENDM2Qk`,
			want: func(s *Settings) {
				s.Listeners, s.AdvertisedListeners = "PLAINTEXT://broker:29092,PLAINTEXT_HOST://0.0.0.0:9092", "PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092"
				s.ClusterID, s.GroupInitialRebalanceDelayMs, s.DataDir = "MkU3OEVBNTcwNTJENDM2Qk", 0, "/tmp/kraft-combined-logs"
			}},
		{name: "Confluent, ZooKeeper", environ: `
KAFKA_BROKER_ID=2
KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
KAFKA_LISTENER_SECURITY_PROTOCOL_MAP=PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT
KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092
KAFKA_METRIC_REPORTERS=io.confluent.metrics.reporter.ConfluentMetricsReporter
KAFKA_CONFLUENT_LICENSE_TOPIC_REPLICATION_FACTOR=1
KAFKA_LOG_RETENTION_HOURS=2
KAFKA_AUTO_CREATE_TOPICS_ENABLE=false`,
			want: func(s *Settings) {
				s.NodeID, s.Listeners, s.AdvertisedListeners = 2, "PLAINTEXT://0.0.0.0:29092,PLAINTEXT_HOST://0.0.0.0:9092", "PLAINTEXT://broker:29092,PLAINTEXT_HOST://localhost:9092"
				s.RetentionMs, s.AutoCreateTopics = 7200000, false
			}},
		{name: "Bitnami", environ: `
KAFKA_CFG_NODE_ID=0
KAFKA_CFG_PROCESS_ROLES=controller,broker
KAFKA_CFG_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093
KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=0@kafka:9093
KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://:9092
KAFKA_KRAFT_CLUSTER_ID=abcdefghijklmnopqrstuv
KAFKA_ENABLE_KRAFT=yes
ALLOW_PLAINTEXT_LISTENER=yes
KAFKA_CFG_LOG_CLEANUP_POLICY=compact`,
			want: func(s *Settings) {
				s.NodeID, s.Listeners, s.ClusterID = 0, "PLAINTEXT://:9092", "abcdefghijklmnopqrstuv"
				s.topicDefaults = map[string]string{"log.cleanup.policy": "compact"}
			}},
		{name: "wurstmeister", environ: `
KAFKA_ADVERTISED_HOST_NAME=192.168.99.100
KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181
KAFKA_CREATE_TOPICS=Topic1:1:3,Topic2:1:1:compact
KAFKA_MESSAGE_MAX_BYTES=2000000`,
			want: func(s *Settings) {
				s.Listeners, s.AdvertisedListeners = "PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://192.168.99.100:9092"
				s.MessageMaxBytes = 2000000
				s.createTopics = []Seed{{"Topic1", 1, nil}, {"Topic2", 1, map[string]string{"cleanup.policy": "compact"}}}
			}},
		{name: "service links of Kubernetes", environ: "KAFKA_PORT=tcp://10.0.0.1:9092\nKAFKA_SERVICE_HOST=10.0.0.1\nKAFKA_SERVICE_PORT=9092\nKAFKA_SERVICE_PORT_CLIENT=9092\n" +
			"KAFKA_PORT_9092_TCP=tcp://10.0.0.1:9092\nKAFKA_PORT_9092_TCP_PROTO=tcp\nKAFKA_UI_SERVICE_HOST=10.0.0.2\nKAFKA_UI_PORT_80_TCP_ADDR=10.0.0.2", want: func(*Settings) {}},
	} {
		t.Run(x.name, func(t *testing.T) {
			got, _, err := Sources{Environ: strings.Split(x.environ, "\n"), Properties: x.properties, PropertiesFile: "server.properties"}.Parse()
			if err != nil {
				t.Fatal(err)
			}
			want := Default()
			want.topicDefaults = map[string]string{}
			x.want(want)
			if !slices.Equal(got.Warnings, x.warnings) {
				t.Errorf("warnings\n%q\nwant\n%q", got.Warnings, x.warnings)
			}
			got.Warnings, got.set = nil, nil
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%+v\nwant\n%+v", got, want)
			}
		})
	}
}

// FX-3: default, file, KAFKA_CFG_, KAFKA_, DOZE_KAFKA_, flag: the later wins.
func TestTheOrderOfSources(t *testing.T) {
	src := Sources{PropertiesFile: "f"}
	for i, x := range []func(){
		func() { src.Environ = append(src.Environ, "DOZE_KAFKA_IMAGE_NUM_PARTITIONS=2") },
		func() { src.Properties = "num.partitions = 3\n" },
		func() { src.Environ = append(src.Environ, "KAFKA_CFG_NUM_PARTITIONS=4") },
		func() { src.Environ = append([]string{"KAFKA_NUM_PARTITIONS=5"}, src.Environ...) },
		func() { src.Environ = append([]string{"DOZE_KAFKA_NUM_PARTITIONS=6"}, src.Environ...) },
		func() { src.Args = []string{"--num-partitions=7"} },
	} {
		x()
		s, _, err := src.Parse()
		if err != nil || s.NumPartitions != int32(i+2) {
			t.Fatalf("source %d: %d partitions, %v", i, s.NumPartitions, err)
		}
	}
}

// FX-3: KafkaDockerWrapper's rule.
func TestNamesOfVariables(t *testing.T) {
	for variable, want := range map[string]string{
		"KAFKA_LOG_DIRS": "log.dirs", "KAFKA_A__B": "a_b", "KAFKA_A___B": "a-b", "KAFKA_A____B": "a-.b", "KAFKA_CFG_LOG_DIRS": "log.dirs",
		"KAFKA_LISTENER_NAME_SSL___INTERNAL_X": "listener.name.ssl-internal.x", "KAFKA_KAFKA_X": "kafka.x",
	} {
		if got := kafkaVariables([]string{variable + "=v"}); len(got) != 1 || got[0].name != want || got[0].by != variable {
			t.Errorf("%s: %+v, want %s", variable, got, want)
		}
	}
	for _, variable := range []string{"KAFKA_OPTS", "KAFKA_HEAP_OPTS", "KAFKA_VERSION", "KAFKA_JMX_PORT", "KAFKA_LOG4J_LOGGERS", "KAFKA_", "XKAFKA_LOG_DIRS", "KAFKA"} {
		if got := kafkaVariables([]string{variable + "=v"}); len(got) != 0 {
			t.Errorf("%s: %+v", variable, got)
		}
	}
}

// FX-3: properties in other units, and which of several counts.
func TestPropertiesInOtherUnits(t *testing.T) {
	for _, x := range []struct {
		properties string
		retention  int64
	}{
		{"log.retention.hours=2", 7200000},
		{"log.retention.minutes=2\nlog.retention.hours=5", 120000},
		{"log.retention.hours=5\nlog.retention.ms=77", 77},
		{"log.retention.hours=5\nlog.retention.ms=", 5 * 3600000},
		{"log.retention.ms=-7", -1},
		{"log.retention.hours=9223372036854775807", 9223372036854775807},
	} {
		s, _, err := Sources{Properties: x.properties}.Parse()
		if err != nil || s.RetentionMs != x.retention {
			t.Errorf("%q: %d, %v", x.properties, s.RetentionMs, err)
		}
	}
}

// FX-3: one line names what is unknown or not there; it fails nothing, and what
// is about controllers, replicas and ZooKeeper is silent. FX-2: a bad value is a mistake.
func TestPropertiesWithoutEffect(t *testing.T) {
	s, _, err := Sources{Properties: "x.y=1\nzookeeper.connect=z:1\nreplica.fetch.max.bytes=1\nbroker.id=-1\ndelete.topic.enable=false\nlog.dirs=/a,/b", PropertiesFile: "f",
		Environ: []string{"KAFKA_MAX_CONNECTIONS=5", "KAFKA_NUM_IO_THREADS=3", "KAFKA_DEFAULT_REPLICATION_FACTOR=3"}}.Parse()
	want := []string{"these Kafka properties have no effect here: KAFKA_MAX_CONNECTIONS, delete.topic.enable in f, x.y in f",
		"log.dirs in f=/a,/b: there is one data directory, the first of these"}
	if err != nil || !slices.Equal(s.Warnings, want) || s.DataDir != "/a" || s.NodeID != 1 {
		t.Errorf("%q, %v", s.Warnings, err)
	}
	_, _, err = Sources{Environ: []string{"KAFKA_NUM_PARTITIONS=x", "KAFKA_COMPRESSION_TYPE=zip", "KAFKA_LOG_ROLL_HOURS=a", "KAFKA_LISTENERS=SSL://:9093"}}.Parse()
	for _, line := range []string{"KAFKA_NUM_PARTITIONS=x: not a whole number (allowed: 1 to 10000)",
		"KAFKA_COMPRESSION_TYPE=zip: Invalid value zip for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
		"KAFKA_LOG_ROLL_HOURS=a: not a whole number",
		"KAFKA_LISTENERS=SSL://:9093: TLS and SASL are not supported, not opened: SSL (SSL); want a listener whose protocol is PLAINTEXT"} {
		if err == nil || !slices.Contains(strings.Split(err.Error(), "\n"), line) {
			t.Errorf("no line %q in\n%v", line, err)
		}
	}
}

// FX-3: defaults of topics that have no setting take effect, and are told as static.
func TestPropertiesThatAreDefaultsOfTopics(t *testing.T) {
	s, _, err := Sources{Environ: []string{"KAFKA_COMPRESSION_TYPE=gzip", "KAFKA_LOG_MESSAGE_TIMESTAMP_TYPE=LogAppendTime", "KAFKA_LOG_ROLL_JITTER_HOURS=2", "KAFKA_MIN_INSYNC_REPLICAS=2"}}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	c, err := EffectiveTopic(s, nil)
	if err != nil || c.CompressionType != "gzip" || !c.LogAppendTime || c.SegmentJitterMs != 7200000 {
		t.Errorf("%+v, %v", c, err)
	}
	if got, want := show(DescribeTopic(s, nil), "compression.type"), "gzip 4 [compression.type=gzip 4] [compression.type=producer 5]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if first := FirstCluster(s); first[MinInsyncReplicas] != "2" {
		t.Errorf("%v", first)
	}
}

// FX-3, ST-42, ST-47: of the log cleaner's properties each has its effect, is about Kafka's own machinery, or is named in the warning.
func TestPropertiesOfTheLogCleaner(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        func(*Settings)
		config      string // of a topic
		as          string
		warns       bool
	}{
		{name: "KAFKA_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND", value: "1048576.9", want: func(s *Settings) { s.CleanerBytesPerSecond = 1048576 }},
		{name: "KAFKA_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND", value: "1.7976931348623157E308", want: func(*Settings) {}},
		{name: "KAFKA_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND", value: "0.5", want: func(s *Settings) { s.CleanerBytesPerSecond = 1 }},
		{name: "KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE", value: "134217728", want: func(s *Settings) { s.CleanerMaxKeys = 4473924 }},
		{name: "KAFKA_CFG_LOG_CLEANER_DEDUPE_BUFFER_SIZE", value: "1048577", want: func(s *Settings) { s.CleanerMaxKeys = 34952 }},
		{name: "KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE", value: "9223372036854775807", want: func(s *Settings) { s.CleanerMaxKeys = 100_000_000 }},
		{name: "KAFKA_LOG_CLEANER_MIN_COMPACTION_LAG_MS", value: "7", config: "min.compaction.lag.ms", as: "7"},
		{name: "KAFKA_LOG_CLEANER_MAX_COMPACTION_LAG_MS", value: "7", config: "max.compaction.lag.ms", as: "7"},
		{name: "KAFKA_LOG_CLEANER_DELETE_RETENTION_MS", value: "0", config: "delete.retention.ms", as: "0"},
		{name: "KAFKA_LOG_CLEANER_MIN_CLEANABLE_RATIO", value: "0.25", config: "min.cleanable.dirty.ratio", as: "0.25"},
		{name: "KAFKA_LOG_CLEANUP_POLICY", value: "compact,delete", config: "cleanup.policy", as: "compact,delete"},
		{name: "KAFKA_LOG_CLEANER_ENABLE", value: "true"},
		{name: "KAFKA_LOG_CLEANER_ENABLE", value: "false", warns: true},
		{name: "KAFKA_LOG_CLEANER_BACKOFF_MS", value: "100", warns: true},
		{name: "KAFKA_LOG_CLEANER_THREADS", value: "2"},
		{name: "KAFKA_LOG_CLEANER_IO_BUFFER_SIZE", value: "524288"},
		{name: "KAFKA_LOG_CLEANER_IO_BUFFER_LOAD_FACTOR", value: "0.9"},
	} {
		s, _, err := Parse(nil, []string{c.name + "=" + c.value})
		if err != nil {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
			continue
		}
		if warned := slices.Contains(s.Warnings, "these Kafka properties have no effect here: "+c.name); warned != c.warns || len(s.Warnings) > 1 {
			t.Errorf("%s=%s: %q", c.name, c.value, s.Warnings)
		}
		want := Default()
		if c.want != nil {
			c.want(want)
		}
		if s.CleanerBytesPerSecond != want.CleanerBytesPerSecond || s.CleanerMaxKeys != want.CleanerMaxKeys {
			t.Errorf("%s=%s: %d bytes a second, %d keys", c.name, c.value, s.CleanerBytesPerSecond, s.CleanerMaxKeys)
		}
		if c.config == "" {
			continue
		}
		entries := DescribeTopic(s, nil)
		i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == c.config })
		if e := entries[i]; *e.Value != c.as || e.Source != SourceStatic || e.Synonyms[0].Source != SourceStatic || *e.Synonyms[0].Value != c.as {
			t.Errorf("%s=%s: a topic's %s is %s of %v, %+v", c.name, c.value, c.config, *e.Value, e.Source, e.Synonyms)
		}
	}
	for _, wrong := range []string{"KAFKA_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND=0", "KAFKA_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND=NaN", "KAFKA_LOG_CLEANER_IO_MAX_BYTES_PER_SECOND=fast",
		"KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE=1.5", "KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE=1048576", "KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE=-1", "KAFKA_LOG_CLEANER_MIN_CLEANABLE_RATIO=2", "KAFKA_LOG_CLEANUP_POLICY=shred"} {
		if _, _, err := Parse(nil, []string{wrong}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

// The two of them that are settings are described by Kafka's names, in Kafka's units.
func TestSettingsOfCompactionAreDescribed(t *testing.T) {
	for _, c := range []struct {
		environ    []string
		rate, size string
	}{
		{nil, "1.7976931348623157E308", "30000000"},
		{[]string{"DOZE_KAFKA_CLEANER_BYTES_PER_SECOND=1000000", "DOZE_KAFKA_CLEANER_MAX_KEYS=10"}, "1000000.0", "300"},
	} {
		s, _, err := Parse(nil, c.environ)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"log.cleaner.io.max.bytes.per.second": c.rate, "log.cleaner.dedupe.buffer.size": c.size} {
			all := DescribeBroker(s)
			i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
			if e := all[i]; *e.Value != want || !e.ReadOnly || (e.Source == SourceStatic) != (c.environ != nil) {
				t.Errorf("%q: %s is %s, %+v", c.environ, name, *e.Value, e)
			}
		}
	}
}
