// Package commitlog is one partition's log: append, read, flush, roll and
// recover. See pkg/README.md for the order of its disk operations.
package commitlog

// This file is the agreed surface of the package. The implementation may move
// the declarations to better files; names and meanings stay.

import (
	"context"
	"log/slog"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
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
	LogAppendTime      bool  // message.timestamp.type
	TimestampBeforeMs  int64 // message.timestamp.before.max.ms
	TimestampAfterMs   int64 // message.timestamp.after.max.ms
	Compact            bool  // cleanup.policy has compact
	FlushMessages      int64 // flush.messages
	FlushMs            int64 // flush.ms
	Compression        Compression
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
	Logger             *slog.Logger
	Files              *segment.Files
	Epoch              int32         // the broker epoch: the partition leader epoch of every append (ST-57)
	FsyncInterval      time.Duration // 0: no timer (ST-52)
	AcksAllSync        bool          // ST-56
	ProducerExpiration time.Duration // producer.id.expiration.ms
	Stats              *Stats
}

// Stats counts what the logs do, for metrics and benchmarks; all atomic.
type Stats struct{ _ int }

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
type Log struct{ _ int }

// Open recovers the log in o.Dir, or prepares an empty one. It fails if
// partition.metadata names another topic id (ST-1).
func Open(o Options) (*Log, error) { panic("not built") }

// Appended is where a batch went.
type Appended struct {
	BaseOffset    int64
	LogAppendTime int64 // ms; -1 unless the topic is LogAppendTime, or for a duplicate its timestamp
	LogStart      int64
	Duplicate     bool
	// End is the offset that must be flushed before acks=all may answer: AwaitFlushed(ctx, End).
	End int64
}

// Append validates a client's batch, checks its producer, stamps it in place
// and writes it. The errors are Kafka's (record.InvalidError, kerr values);
// after one, end offset and file size are as before (ST-11, ST-62).
func (l *Log) Append(b record.Batch) (Appended, error) { panic("not built") }

// AwaitFlushed blocks until everything below end is durable (one fsync serves
// all that wait, ST-51). KAFKA_STORAGE_ERROR: the fsync failed, for good (ST-61). It returns at
// once where acks.all.sync is off.
func (l *Log) AwaitFlushed(ctx context.Context, end int64) error { panic("not built") }

// NeedFlush says whether AwaitFlushed(end) would wait; it starts the flush if so, and never blocks.
func (l *Log) NeedFlush(end int64) bool { panic("not built") }

// Offsets are a log's marks at one instant.
type Offsets struct {
	LogStart      int64
	LastStable    int64
	HighWatermark int64
	End           int64
	Flushed       int64
}

// Offsets returns the marks.
func (l *Log) Offsets() Offsets { panic("not built") }

// A Slice is the answer to Read.
type Slice struct {
	Offsets
	Region  segment.Region       // Length 0: nothing to read at or below the limit
	Aborted []AbortedTransaction // ReadCommitted: never nil
}

// An AbortedTransaction is one that a read-committed consumer must drop.
type AbortedTransaction struct{ ProducerID, FirstOffset int64 }

// Read returns a region from the batch that holds offset on (within one
// segment, at most maxBytes, with wholeFirst at least one batch).
// OFFSET_OUT_OF_RANGE outside [LogStart, End]; CORRUPT_MESSAGE for a segment
// that can't be walked (ST-63).
func (l *Log) Read(offset int64, maxBytes int, wholeFirst bool, iso kafka.Isolation) (Slice, error) {
	panic("not built")
}

// Available is how many bytes Read could return from offset on in the end,
// for a long poll's min bytes; rolled says that offset lies in a segment before the newest (DelayedFetch case).
func (l *Log) Available(offset int64, iso kafka.Isolation) (bytes int64, rolled bool) {
	panic("not built")
}

// Watch has wake sent to (never blocking) after every append, log start move
// or end of the log, until cancel is called.
func (l *Log) Watch(wake chan<- struct{}) (cancel func()) { panic("not built") }

// A TimestampOffset is an answer of ListOffsets: -1, -1, -1 if there is none.
type TimestampOffset struct {
	Offset, Timestamp int64
	Epoch             int32
}

// OffsetForTimestamp is the first record at or after ts (ms) below the isolation's limit.
func (l *Log) OffsetForTimestamp(ts int64, iso kafka.Isolation) (TimestampOffset, error) {
	panic("not built")
}

// OffsetForMaxTimestamp is the first record that has the largest timestamp.
func (l *Log) OffsetForMaxTimestamp(iso kafka.Isolation) (TimestampOffset, error) { panic("not built") }

// Epoch is the current leader epoch, and EarliestEpoch that of the first record (-1 if not known).
func (l *Log) Epoch() int32 { panic("not built") }

// EarliestEpoch is the epoch for ListOffsets EARLIEST: see reference 3.3.
func (l *Log) EarliestEpoch() (int32, error) { panic("not built") }

// EndOffsetForEpoch answers OffsetForLeaderEpoch (LeaderEpochFileCache.endOffsetFor); -1, -1 if undefined.
func (l *Log) EndOffsetForEpoch(epoch int32) (foundEpoch int32, end int64, err error) {
	panic("not built")
}

// SetConfig makes a new configuration effective for the next append.
func (l *Log) SetConfig(c *Config) { panic("not built") }

// Size is the length of all segments in bytes.
func (l *Log) Size() int64 { panic("not built") }

// Close flushes everything, writes the producer snapshot and the indexes, and
// closes the files. After an error the stop was not clean.
func (l *Log) Close() error { panic("not built") }

// Abandon closes the files without flushing: the topic is deleted. Waiters
// and watchers are woken; later calls fail with UNKNOWN_TOPIC_OR_PARTITION.
func (l *Log) Abandon() { panic("not built") }
