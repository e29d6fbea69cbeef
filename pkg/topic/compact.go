package topic

import (
	"context"
	"errors"
	"fmt"

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
}

// Compacted says whether the topic's policy has compact.
func (t *Topic) Compacted() (bool, error) {
	if _, ok := t.overrides["cleanup.policy"]; !ok { // those of many topics are not to be parsed for this
		return t.r.effective.Load().defaults.Compact, nil
	}
	c, err := t.config()
	return err == nil && c.Compact, err
}

// Compact compacts the partitions of topics whose cleanup.policy has compact, one after the other, in as many passes as each
// takes (ST-40). The first dirty offset is durable after each pass. A partition that fails keeps the others from nothing.
func (r *Registry) Compact(ctx context.Context, topics []*Topic, c Compaction) (done Compacted, err error) {
	var errs []error
	keys := commitlog.NewKeyMap(c.MaxKeys) // one for all passes: each of its own would leave that much garbage
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
		if due, err := l.Due(from, r.nowMs()); err != nil || !due {
			return err
		}
	}
	for more := true; more; {
		if compacted, err := t.now().Compacted(); err != nil || !compacted {
			return err
		}
		var got commitlog.Compacted
		// The time of each pass: those before it may have taken longer than delete.retention.ms.
		got, err = l.Compact(ctx, commitlog.Compaction{From: from, Keys: keys, NowMs: r.nowMs(), Pace: c.Pace})
		done.Segments += got.Rewritten
		done.Reclaimed += got.Reclaimed
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
