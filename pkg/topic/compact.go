package topic

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// A Compaction is how compaction goes about it.
type Compaction struct {
	MaxKeys int                                        // of a pass
	Pace    func(ctx context.Context, bytes int) error // as commitlog.Compaction's
	// Always compacts whether it is due or not, also partitions that are not in use.
	Always bool
}

// Compacted is what a compaction has come to.
type Compacted struct {
	Partitions int   // that it has gone through
	Segments   int   // rewritten
	Reclaimed  int64 // bytes
	Removed    int64 // records
}

// Compacted says whether the topic's policy has compact.
func (t *Topic) Compacted() (bool, error) {
	if _, ok := t.overrides["cleanup.policy"]; !ok { // those of many topics are not to be parsed for this
		return t.r.effective.Load().defaults.Compact, nil
	}
	c, err := t.config()
	return err == nil && c.Compact, err
}

// mostGarbage is how large a map may be left to the collector, in bytes.
const mostGarbage = 8 << 20

// Compact compacts the partitions of topics whose cleanup.policy has compact, one after the other, in as many passes as each
// takes (ST-40). The first dirty offset is durable after each pass. A partition that fails keeps the others from nothing.
func (r *Registry) Compact(ctx context.Context, topics []*Topic, c Compaction) (done Compacted, err error) {
	var errs []error
	keys := commitlog.NewKeyMap(c.MaxKeys) // one for all passes: each of its own would leave that much garbage
	defer func() {
		if keys.Bytes() > mostGarbage {
			keys = nil
			debug.FreeOSMemory() // in a broker at rest the collector may not come for minutes
		}
	}()
	for _, t := range topics {
		t = t.now() // those before it may have taken long
		if compacted, err := t.Compacted(); err != nil || !compacted {
			errs = append(errs, err)
			continue
		}
		for p := range t.partitions {
			err := r.compact(ctx, t, p, c, keys, &done)
			if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) && !errors.Is(err, commitlog.ErrNoCompaction) { // deleted or altered meanwhile
				errs = append(errs, fmt.Errorf("compaction of %s-%d: %w", t.name, p, err))
			}
			if ctx.Err() != nil {
				return done, errors.Join(append(errs, ctx.Err())...)
			}
		}
	}
	return done, errors.Join(errs...)
}

func (r *Registry) compact(ctx context.Context, t *Topic, partition int32, c Compaction, keys *commitlog.KeyMap, done *Compacted) error {
	s := t.slots[partition]
	l := s.log.Load()
	if l == nil {
		if !c.Always {
			return nil
		}
		var err error
		if l, err = t.Log(partition); err != nil {
			return err
		}
	}
	from, err := r.firstDirty(t, partition, s)
	if err != nil {
		return err
	}
	if !c.Always {
		if due, err := r.due(s, l, from); err != nil || !due {
			return err
		}
	}
	err = r.compactFrom(ctx, t, partition, l, from, c, keys, done)
	if errors.Is(err, kerr.KafkaStorageError) {
		s.uncompacted.Store(&failure{err, r.o.Shared.Clock.Now()})
	} else if err == nil {
		s.uncompacted.Store(nil)
	}
	return err
}

// afterFailure is how long sweeps leave a partition alone whose compaction has failed. To try it every second would read all
// of its log each time and, on a full disk, take what room there is from those who write.
const afterFailure = time.Minute

// due says whether a sweep is to compact a partition now. Its error may be that of a compaction that is tried again later.
func (r *Registry) due(s *slot, l *commitlog.Log, from int64) (bool, error) {
	now := r.o.Shared.Clock.Now()
	if last := s.uncompacted.Load(); last != nil && now.Before(last.at.Add(afterFailure)) && !now.Before(last.at) {
		return false, last.err
	}
	return l.Due(from, now.UnixMilli())
}

// compactFrom makes the passes that are to be made of a log from an offset on. The slot may have no log any more.
func (r *Registry) compactFrom(ctx context.Context, t *Topic, partition int32, l *commitlog.Log, from int64, c Compaction, keys *commitlog.KeyMap, done *Compacted) error {
	s := t.slots[partition]
	var sum commitlog.Compacted
	began := time.Now()
	defer func() { r.tellCompacted(t, partition, sum, time.Since(began)) }()
	for more := true; more; {
		if compacted, err := t.now().Compacted(); err != nil || !compacted {
			return err
		}
		// The time of each pass: those before it may have taken longer than delete.retention.ms.
		got, err := l.Compact(ctx, commitlog.Compaction{From: from, Keys: keys, NowMs: r.nowMs(), Pace: c.Pace})
		done.Segments += got.Rewritten
		done.Reclaimed += got.Reclaimed
		done.Removed += got.Removed
		sum.Rewritten, sum.Reclaimed, sum.Removed = sum.Rewritten+got.Rewritten, sum.Reclaimed+got.Reclaimed, sum.Removed+got.Removed
		sum.Read, sum.Written = sum.Read+got.Read, sum.Written+got.Written
		if !c.Always && errors.Is(err, kerr.CorruptMessage) {
			return nil // the log has told of it, and is not due any more
		}
		if err != nil {
			return err
		}
		if got.Next != from {
			if err := r.putFirstDirty(ctx, t, partition, s, got.Next); err != nil {
				return err
			}
		}
		from, more = got.Next, got.More
	}
	done.Partitions++
	return nil
}

// tellCompacted logs a compaction that has changed something.
func (r *Registry) tellCompacted(t *Topic, partition int32, c commitlog.Compacted, took time.Duration) {
	if c.Rewritten > 0 {
		r.o.Shared.Logger.Info("compacted", "partition", fmt.Sprintf("%s-%d", t.name, partition), "segments", c.Rewritten, "removed_records", c.Removed,
			"reclaimed_bytes", c.Reclaimed, "read_bytes", c.Read, "written_bytes", c.Written, "took", took.Round(time.Millisecond))
	}
}

func (r *Registry) nowMs() int64 { return r.o.Shared.Clock.Now().UnixMilli() }

func (r *Registry) firstDirty(t *Topic, partition int32, s *slot) (offset int64, err error) {
	if known := s.dirty.Load(); known > 0 {
		return known - 1, nil
	}
	err = r.o.Store.View(func(tx *metastore.Tx) error {
		offset = tx.FirstDirty(t.id, partition)
		return nil
	})
	if err == nil {
		s.dirty.Store(offset + 1)
	}
	return offset, err
}

func (r *Registry) putFirstDirty(ctx context.Context, t *Topic, partition int32, s *slot, offset int64) error {
	err := r.o.Store.Update(ctx, func(tx *metastore.Tx) error {
		there, err := tx.HasTopic(t.name, t.id)
		if err != nil || !there {
			return errors.Join(err, kerr.UnknownTopicOrPartition)
		}
		return tx.PutFirstDirty(t.id, partition, offset)
	})
	if err == nil {
		s.dirty.Store(offset + 1)
	}
	return err
}
