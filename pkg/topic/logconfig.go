package topic

import (
	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// logConfig is the part of a topic's effective configs that its logs act on.
func logConfig(s *config.Settings, overrides map[string]string) (*commitlog.Config, error) {
	t, err := config.EffectiveTopic(s, overrides)
	if err != nil {
		return nil, err
	}
	c := &commitlog.Config{
		SegmentBytes:       int64(t.SegmentBytes),
		SegmentMs:          t.SegmentMs,
		SegmentJitterMs:    t.SegmentJitterMs,
		IndexIntervalBytes: int(t.IndexIntervalBytes),
		MaxMessageBytes:    int(t.MaxMessageBytes),
		MaxRecordBytes:     t.MaxDecompressedMessageBytes,
		LogAppendTime:      t.LogAppendTime,
		TimestampBeforeMs:  t.MessageTimestampBeforeMaxMs,
		TimestampAfterMs:   t.MessageTimestampAfterMaxMs,
		Compact:            t.CleanupCompact,
		Delete:             t.CleanupDelete,
		RetentionBytes:     t.RetentionBytes,
		RetentionMs:        t.RetentionMs,
		FlushMessages:      t.FlushMessages,
		FlushMs:            t.FlushMs,
		Compression:        compression(t),
		DeleteRetentionMs:  t.DeleteRetentionMs,
		MinDirtyRatio:      t.MinCleanableDirtyRatio,
		MinCompactionLagMs: t.MinCompactionLagMs,
		MaxCompactionLagMs: t.MaxCompactionLagMs,
	}
	if t.CleanupCompact { // LogConfig.maxSegmentMs: the active segment is not compacted
		c.SegmentMs = min(c.SegmentMs, t.MaxCompactionLagMs)
	}
	return c, nil
}

func compression(t *config.Topic) commitlog.Compression {
	switch t.CompressionType {
	case "gzip":
		return commitlog.Compression{Codec: record.Gzip, Level: int(t.CompressionGzipLevel)}
	case "snappy":
		return commitlog.Compression{Codec: record.Snappy}
	case "lz4":
		return commitlog.Compression{Codec: record.LZ4, Level: int(t.CompressionLZ4Level)}
	case "zstd":
		return commitlog.Compression{Codec: record.Zstd, Level: int(t.CompressionZstdLevel)}
	case "uncompressed":
		return commitlog.Compression{Codec: record.None}
	default:
		return commitlog.Compression{Producer: true}
	}
}
