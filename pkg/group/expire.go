package group

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// TopicsDeleted removes all offsets of topics, which are gone from the
// registry by now, so that no later commit brings one back. What fails, or a crash cuts off, is
// done by the next Open.
func (c *Coordinator) TopicsDeleted(ctx context.Context, topics []kafka.TopicImage) error {
	ids := make(map[kafka.TopicID]struct{}, len(topics))
	for _, t := range topics {
		ids[t.ID] = struct{}{}
	}
	err := c.o.Store.Update(ctx, func(tx *metastore.Tx) error {
		return tx.DropOffsetsIf(func(_ string, o metastore.Offset) bool {
			_, gone := ids[o.TopicID]
			return gone
		})
	})
	if err != nil {
		return fmt.Errorf("drop the offsets of deleted topics: %w", err)
	}
	return nil
}

// ExpireOffsets drops the offsets whose retention has passed, and groups that
// have neither members nor offsets any more (GR-7,
// GroupCoordinatorShard.cleanupGroupMetadata). It runs by itself every 10
// minutes (offsets.retention.check.interval.ms). The result is how many offsets were dropped.
func (c *Coordinator) ExpireOffsets(ctx context.Context) (int, error) {
	if c.closed.Load() {
		return 0, kerr.CoordinatorNotAvailable
	}
	var dropped atomic.Int64
	var waits []func() error
	for _, g := range c.all() {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		g.mu.Lock()
		version := g.version
		g.mu.Unlock()
		var offsets []metastore.Offset
		staged := false
		err := c.o.Store.View(func(tx *metastore.Tx) error {
			staged = tx.HasStaged(g.name)
			for o, err := range tx.Offsets(g.name) {
				if err != nil {
					return err
				}
				offsets = append(offsets, o)
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("expire offsets of group %q: %w", g.name, err)
		}
		if staged {
			continue // an open transaction keeps them, and the group
		}
		g.mu.Lock()
		waits = append(waits, g.expireOffsets(offsets, version, &dropped))
	}
	var first error
	for _, wait := range waits { // all share commits
		if err := wait(); err != nil && first == nil {
			first = fmt.Errorf("expire offsets: %w", err)
		}
	}
	return int(dropped.Load()), first
}

// expireOffsets drops of a locked group's offsets those that are old, and
// unlocks it; the result waits for the disk. Nothing is done if some were committed since they were read: they are looked at the next time.
func (g *group) expireOffsets(offsets []metastore.Offset, version int, dropped *atomic.Int64) (wait func() error) {
	none := func() error { return nil }
	since, ages := g.state.Retention()
	if g.gone || g.version != version || g.commits > 0 || !ages && len(offsets) > 0 {
		g.mu.Unlock()
		return none
	}
	now := g.c.o.Clock.Now()
	retention := time.Duration(g.c.o.Settings.OffsetsRetentionMinutes) * time.Minute
	var old []metastore.Offset
	for _, o := range offsets {
		if !g.state.Subscribed(o.Topic) && expired(o, since, now, retention) {
			old = append(old, o)
		}
	}
	drop := func(tx *metastore.Tx) error {
		for _, o := range old {
			if err := tx.DropOffset(g.name, o.Topic, o.Partition); err != nil {
				return err
			}
		}
		return nil
	}
	result := make(chan error, 1)
	switch {
	case len(old) == len(offsets) && g.state.CheckDelete() == nil:
		g.submitDropLocked(result)
	case len(old) > 0:
		g.submitCommitLocked(drop, result)
	default:
		result <- nil
	}
	g.mu.Unlock()
	return func() error {
		err := <-result
		if err == nil {
			dropped.Add(int64(len(old)))
		}
		return err
	}
}

// expired says whether an offset's time is over (OffsetExpirationConditionImpl).
// since is when the group became empty, or zero where the time of the commit counts.
func expired(o metastore.Offset, since, now time.Time, retention time.Duration) bool {
	if !o.Expires.IsZero() {
		return !now.Before(o.Expires)
	}
	if since.IsZero() {
		since = o.Committed
	}
	return now.Sub(since) >= retention
}

// sweepLater has ExpireOffsets called, over and over.
func (c *Coordinator) sweepLater() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return
	}
	c.sweep = c.o.Clock.AfterFunc(config.OffsetsRetentionCheckInterval, func() {
		if n, err := c.ExpireOffsets(context.Background()); err != nil && !c.closed.Load() {
			c.o.Logger.Warn("expired offsets could not be dropped", "error", err)
		} else if n > 0 {
			c.o.Logger.Info("expired offsets were dropped", "offsets", n)
		}
		c.sweepLater()
	})
}
