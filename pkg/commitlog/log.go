// Package commitlog is one partition's log: append, read, flush, roll and
// recover. The order of its disk operations is in pkg/README.md; what each
// Sync is for stands beside it.
package commitlog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// Config is the part of a topic's effective configs that its logs act on. It
// may be replaced at any time by SetConfig.
type Config struct {
	SegmentBytes       int64
	SegmentMs          int64
	SegmentJitterMs    int64
	IndexIntervalBytes int
	MaxMessageBytes    int
	MaxRecordBytes     int32 // max.decompressed.message.bytes; 0: no limit
	LogAppendTime      bool  // message.timestamp.type
	TimestampBeforeMs  int64 // message.timestamp.before.max.ms
	TimestampAfterMs   int64 // message.timestamp.after.max.ms
	Compact            bool  // cleanup.policy has compact
	Delete             bool  // cleanup.policy has delete
	RetentionBytes     int64 // retention.bytes; below 0: no limit
	RetentionMs        int64 // retention.ms; below 0: no limit
	FlushMessages      int64 // flush.messages
	FlushMs            int64 // flush.ms
	Compression        Compression
	DeleteRetentionMs  int64   // delete.retention.ms
	MinDirtyRatio      float64 // min.cleanable.dirty.ratio
	MinCompactionLagMs int64   // min.compaction.lag.ms
	MaxCompactionLagMs int64   // max.compaction.lag.ms
}

// Compression is a topic's compression.type with its level; Producer keeps the producer's codec.
type Compression struct {
	Producer bool
	Codec    record.Codec
	Level    int
}

// Shared is what all logs of a broker have in common.
type Shared struct {
	FS                 vfs.FS
	Clock              clock.Clock
	Logger             *slog.Logger // nil: nothing is logged
	Files              *segment.Files
	Epoch              int32         // the broker epoch: the partition leader epoch of every append (ST-57)
	FsyncInterval      time.Duration // 0: no timer (ST-52)
	AcksAllSync        bool          // ST-56
	ProducerExpiration time.Duration // producer.id.expiration.ms
	Stats              *Stats        // nil: nothing is counted
	Syncs              *Syncs        // nil: no bound, and nothing is shared
}

// Options open one log.
type Options struct {
	*Shared
	Dir       string // the partition's directory; need not exist before the first append
	Partition kafka.TopicPartition
	TopicID   kafka.TopicID
	Config    *Config
	Clean     bool  // everything in Dir was flushed by a clean stop (ST-54)
	LogStart  int64 // from meta.db; 0 if never moved
}

// A Log is one partition. All methods are safe for concurrent use.
//
// Writers hold mu. Readers take no lock: they load the marks (marks.go), which
// say how far they may read, and then the list of parts, which is immutable
// and has at least what the marks cover.
type Log struct {
	o       Options
	name    string // of the partition, for errors
	segment segment.Options
	names   *namesFS // the disk, for who syncs the directory
	config  atomic.Pointer[Config]

	marks    marks
	parts    atomic.Pointer[[]*part] // by base offset, ascending
	watchers watchers
	ended    atomic.Pointer[error] // what every call answers after Close or Abandon
	refusing atomic.Bool           // the last append failed because of the disk, and that was logged
	aborts   atomic.Bool           // there may be aborted transactions: without any, no read looks for them

	// uncleanable is the log start plus 1 when compaction met a segment that can't be walked; 0: it has met none.
	uncleanable atomic.Int64

	// opened is the end offset at Open, where the current epoch starts.
	opened int64

	mu sync.Mutex // guards all below, and every change of the above
	writer
	flusher
}

// writer is the state of the append path, guarded by Log.mu.
type writer struct {
	active    *part // the newest part; nil before the first append
	sealed    bool  // active takes no more, but its successor could not be made
	made      bool  // the directory and partition.metadata are there
	jitterMs  int64 // of the active segment (segment.jitter.ms)
	created   int64 // when the active segment was made or opened, ms
	touched   bool  // a clean stop has something to write
	producers producer.State
	expireAt  int64            // when to look for expired producers next, ms
	last      producer.Binding // the end of the log, for the next snapshot
	known     bool             // last says it
	saved     int64            // offset of the snapshot on disk that holds this state; -1: none
	snapshots []int64          // the offsets of those on disk, ascending
	dropped   []*part          // below the log start, off the list of parts, and perhaps on the disk
	removing  bool             // somebody removes those, or swaps a rewritten segment in, without the lock
	// compacting ends the compaction that is under way; nil: none is.
	compacting context.CancelFunc
}

// Epoch is the current leader epoch.
func (l *Log) Epoch() int32 { return l.o.Epoch }

// SetConfig makes a new configuration effective for the next append.
func (l *Log) SetConfig(c *Config) { l.config.Store(c) }

// Size is the length of all segments in bytes.
func (l *Log) Size() int64 {
	n := int64(0)
	for _, p := range *l.parts.Load() {
		n += p.bytes()
	}
	return n
}

// Offsets are a log's marks at one instant.
type Offsets struct {
	LogStart      int64
	LastStable    int64
	HighWatermark int64
	End           int64
	Flushed       int64
}

// Offsets returns the marks.
func (l *Log) Offsets() Offsets { return l.marks.load().Offsets }

// limit is up to which offset a consumer may read.
func (o Offsets) limit(iso kafka.Isolation) int64 {
	if iso == kafka.ReadCommitted {
		return o.LastStable
	}
	return o.HighWatermark
}

// endedErr is nil while the log is open.
func (l *Log) endedErr() error {
	if p := l.ended.Load(); p != nil {
		return *p
	}
	return nil
}

// storageError makes an error of the disk KAFKA_STORAGE_ERROR, which clients retry.
func (l *Log) storageError(doing string, err error) error {
	return fmt.Errorf("%s: %s: %w: %w", l.name, doing, err, kerr.KafkaStorageError)
}

// logger writes with the partition's name.
func (l *Log) logger() *slog.Logger { return l.o.Logger.With("partition", l.name) }
