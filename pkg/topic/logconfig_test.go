package topic

import (
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
