package commitlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// expireEvery is how often expired producers are looked for, in ms
// (producer.id.expiration.check.interval.ms).
const expireEvery = 10 * 60 * 1000

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
//
// The order of checks is that of UnifiedLog.append, but that the segment rolls
// only for a batch that its producer's state lets in: clients can't tell, and a repeat never needs the disk.
// With flush.messages set, Append waits for the flush, as Kafka does.
func (l *Log) Append(b record.Batch) (Appended, error) {
	return l.append(b, producer.Unverified)
}

func (l *Log) append(b record.Batch, verified producer.Verified) (Appended, error) {
	cfg := l.config.Load()
	b, v, err := l.validate(b, cfg)
	if err != nil {
		l.o.Stats.Refused.Add(1)
		return Appended{}, err
	}
	a, flush, err := l.appendValid(b, v, cfg, verified)
	return l.appended(a, len(b), flush, err)
}

// appended does what comes after every append of size bytes, without the lock.
func (l *Log) appended(a Appended, size int, flush bool, err error) (Appended, error) {
	switch {
	case err == nil && !a.Duplicate:
		l.o.Stats.Appends.Add(1)
		l.o.Stats.Bytes.Add(int64(size))
		if l.refusing.Load() && l.refusing.Swap(false) {
			l.logger().Info("appends succeed again")
		}
		l.watchers.wake()
	case err == nil:
		l.o.Stats.Duplicates.Add(1)
	case errors.Is(err, kerr.KafkaStorageError):
		l.o.Stats.Failed.Add(1)
		l.tellRefusal(err)
	default:
		l.o.Stats.Refused.Add(1)
	}
	if flush {
		err = l.awaitFlushed(context.Background(), a.End)
	}
	return a, err
}

// tellRefusal logs the first append of many that the disk refuses (ST-60):
// the clients repeat them until there is room.
func (l *Log) tellRefusal(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil || l.endedErr() != nil { // told of, or no fault
		return
	}
	if !l.refusing.Swap(true) {
		l.logger().Warn("appends are refused until the disk takes them", "error", err)
	}
}

// validate reads the batch once, outside the lock, and brings it into the
// topic's codec if that is another one (ST-13).
func (l *Log) validate(b record.Batch, cfg *Config) (record.Batch, record.Verdict, error) {
	v, err := record.Validate(b, &record.Rules{
		Partition:      l.name,
		Now:            l.o.Clock.Now().UnixMilli(),
		LogAppendTime:  cfg.LogAppendTime,
		BeforeMaxMs:    cfg.TimestampBeforeMs,
		AfterMaxMs:     cfg.TimestampAfterMs,
		RequireKey:     cfg.Compact,
		MaxBytes:       cfg.MaxMessageBytes,
		MaxRecordBytes: cfg.MaxRecordBytes,
	})
	if err != nil {
		return nil, v, err
	}
	codec, level := b.Codec(), 0 // 0: the codec's default
	if !cfg.Compression.Producer {
		codec, level = cfg.Compression.Codec, cfg.Compression.Level
	}
	if codec != b.Codec() || codec != record.None && !v.Consecutive {
		b, err = record.RebuildWithin(b, codec, level, cfg.MaxMessageBytes)
		if err != nil {
			return nil, v, err
		}
		v.Consecutive = true
	}
	if int64(len(b)) > cfg.SegmentBytes {
		return nil, v, fmt.Errorf("%s: a batch of %d bytes, and segments of at most %d: %w", l.name, len(b), cfg.SegmentBytes, kerr.RecordListTooLarge)
	}
	return b, v, nil
}

// appendValid does what needs the lock. flush says that the append has to be flushed before it is answered.
func (l *Log) appendValid(b record.Batch, v record.Verdict, cfg *Config, verified producer.Verified) (a Appended, flush bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	appendTime := record.NoTimestamp
	for ready := false; !ready; {
		// All is looked at anew after a wait, during which the lock was free.
		if err := l.writableLocked(); err != nil {
			return Appended{}, false, err
		}
		now := l.o.Clock.Now().UnixMilli()
		l.expireLocked(now)
		repeat, isRepeat, err := l.producers.Check(b, verified)
		if err != nil {
			return Appended{}, false, fmt.Errorf("%s: %w", l.name, err)
		}
		if isRepeat {
			return l.duplicateLocked(repeat), false, nil
		}
		if cfg.LogAppendTime {
			appendTime, v.MaxTimestamp = now, now
		}
		if ready, err = l.makeRoomLocked(b, v.MaxTimestamp, now, cfg); err != nil {
			return Appended{}, false, err
		}
	}
	return l.storeLocked(b, v, appendTime, cfg)
}

// storeLocked stamps a batch that has passed all checks, writes it, and
// publishes it: a reader that sees the new last stable offset finds what it aborted.
func (l *Log) storeLocked(b record.Batch, v record.Verdict, appendTime int64, cfg *Config) (a Appended, flush bool, err error) {
	at := l.marks.load()
	record.Stamp(b, at.End, l.o.Epoch, v, appendTime)
	if err := l.writeLocked(b, cfg); err != nil {
		return Appended{}, false, err
	}
	aborted, err := l.producers.Update(b)
	if err != nil {
		// Only a control batch can be unreadable, and those that are appended are ours.
		l.logger().Error("producer state", "error", err)
	}
	if aborted != nil {
		l.active.opened.Load().AddAborted(segment.AbortedTxn(*aborted))
		l.aborts.Store(true)
	}
	at.End = b.LastOffset() + 1
	l.last, l.known = producer.Binding{Offset: at.End, After: true, CRC: b.CRC()}, true
	at.LastStable = l.lastStableLocked(at.End)
	at.base, at.size = l.active.base, l.active.bytes()
	l.marks.store(at)
	l.touched = true
	flush = l.dirtiedLocked(at, cfg)
	return Appended{BaseOffset: b.BaseOffset(), LogAppendTime: appendTime, LogStart: at.LogStart, End: at.End}, flush, nil
}

// duplicateLocked answers a repeat with the original's offset and timestamp.
// It waits like the original: for what was read back after a kill, flushed has not passed it (ST-55).
func (l *Log) duplicateLocked(r producer.Batch) Appended {
	return Appended{
		BaseOffset: r.BaseOffset(), LogAppendTime: r.Timestamp, LogStart: l.marks.load().LogStart,
		Duplicate: true, End: r.LastOffset + 1,
	}
}

// writeLocked writes a stamped batch. A batch that could be written in part
// only is cut off again by the segment; if that fails too, nothing may follow it (ST-62).
func (l *Log) writeLocked(b record.Batch, cfg *Config) error {
	s := l.active.opened.Load()
	err := s.Append(b, cfg.IndexIntervalBytes)
	if err == nil {
		return nil
	}
	if errors.Is(err, segment.ErrTorn) {
		return l.failLocked("append", err)
	}
	return l.storageError("append", err)
}

// writableLocked says why nothing can be appended, if so.
func (l *Log) writableLocked() error {
	if err := l.endedErr(); err != nil {
		return err
	}
	return l.failed
}

// lastStableLocked is the last stable offset for an end of the log.
func (l *Log) lastStableLocked(end int64) int64 {
	if first, open := l.producers.FirstUnstable(); open {
		return max(first, l.marks.load().LogStart)
	}
	return end
}

// expireLocked forgets idle producers (TX-2), now and then as Kafka does.
func (l *Log) expireLocked(now int64) {
	if now < l.expireAt {
		return
	}
	l.expireAt = now + expireEvery
	if after := l.o.ProducerExpiration.Milliseconds(); after > 0 {
		l.producers.Expire(now, after)
	}
}
