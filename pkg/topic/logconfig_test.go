package topic

import (
	"cmp"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

func TestLogConfig(t *testing.T) {
	s := config.Default()
	c, err := logConfig(s, map[string]string{"cleanup.policy": "compact", "max.compaction.lag.ms": "5", "compression.type": "gzip",
		"message.timestamp.type": "LogAppendTime", "flush.messages": "3", "max.decompressed.message.bytes": "7"})
	if err != nil {
		t.Fatal(err)
	}
	if !c.Compact || c.SegmentMs != 5 || c.Compression != (commitlog.Compression{Codec: record.Gzip, Level: -1}) || !c.LogAppendTime ||
		c.FlushMessages != 3 || c.FlushMs != config.Forever || c.SegmentBytes != 128<<20 || c.MaxMessageBytes != 1048588 || c.MaxRecordBytes != 7 {
		t.Errorf("%+v", c)
	}
	for codec, want := range map[string]commitlog.Compression{"producer": {Producer: true}, "uncompressed": {}, "snappy": {Codec: record.Snappy},
		"lz4": {Codec: record.LZ4, Level: 9}, "zstd": {Codec: record.Zstd, Level: 3}} {
		if c, err = logConfig(s, map[string]string{"compression.type": codec}); err != nil || c.Compression != want {
			t.Errorf("%s: %+v, %v", codec, c, err)
		}
	}
}

// Every config of a topic either changes what its logs do, or is named in docs/limitations.md among those that do nothing.
func TestConfigsWithoutEffectAreNamed(t *testing.T) {
	page, err := os.ReadFile("../../docs/limitations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Topic configs that are validated, stored and listed, and do nothing yet\n")
	table, _, ok := strings.Cut(table, "\n## ")
	if !ok {
		t.Fatal("docs/limitations.md has no table of configs without effect")
	}
	other := map[string]string{"compression.type": "lz4", "message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact",
		"leader.replication.throttled.replicas": "*", "follower.replication.throttled.replicas": "*"}
	within := map[string]map[string]string{"compression.gzip.level": {"compression.type": "gzip"}, "compression.lz4.level": {"compression.type": "lz4"},
		"compression.zstd.level": {"compression.type": "zstd"}, "max.compaction.lag.ms": {"cleanup.policy": "compact"}}
	s := config.Default()
	for _, e := range config.DescribeTopic(s, nil) {
		if e.Name == "remote.storage.enable" { // true is refused, as a Kafka without tiered storage refuses it
			continue
		}
		base := within[e.Name]
		before, err := logConfig(s, base)
		if err != nil {
			t.Fatal(err)
		}
		changed := map[string]string{}
		maps.Copy(changed, base)
		changed[e.Name] = cmp.Or(other[e.Name], otherValue(e))
		after, err := logConfig(s, changed)
		if err != nil {
			t.Errorf("%s=%s: %v", e.Name, changed[e.Name], err)
			continue
		}
		if named := strings.Contains(table, "`"+e.Name+"`") || strings.Contains(table, "`"+e.Name+"="); *after == *before && !named {
			t.Errorf("%s does nothing, and docs/limitations.md does not name it", e.Name)
		}
	}
}

// otherValue is one that is allowed, and not the default.
func otherValue(e config.Entry) string {
	switch {
	case e.Type == config.TypeBoolean && *e.Value == "false":
		return "true"
	case e.Type == config.TypeBoolean:
		return "false"
	case e.Type == config.TypeDouble:
		return "0.5"
	case strings.HasPrefix(e.Name, "compression."): // a level
		return "7"
	default:
		return "2000000"
	}
}
