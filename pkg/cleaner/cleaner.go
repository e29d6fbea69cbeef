// Package cleaner decides when old records go, by retention and by compaction: it has the registry look at
// partitions, those in use often and the others seldom, and bounds how much work that is.
package cleaner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

const (
	// interval is between two sweeps over the partitions in use (ST-33).
	interval = time.Second
	// unopenedInterval is between two sweeps over all of them.
	unopenedInterval = time.Minute
)

// Options make a Cleaner. All fields but BytesPerSecond are required.
type Options struct {
	Registry       *topic.Registry
	Clock          clock.Clock // ages of records, and when a sweep is due
	Logger         *slog.Logger
	MaxKeys        int   // of a pass of compaction
	BytesPerSecond int64 // that compaction reads and writes; 0: no limit
}

// A Cleaner is the sweeps of one broker.
type Cleaner struct {
	o         Options
	retention sweeps
	compactor sweeps
	turn      chan struct{} // taken over a compaction: one at a time, so that the memory of one is all there is
	pacer     pacer         // guarded by turn
}

// A sweeps is what one of the two goroutines knows of its sweeps.
type sweeps struct {
	failed     string    // what is logged when a sweep fails
	works      string    // and when one does not any more
	unopenedAt time.Time // when partitions that are not in use are due
	failing    bool      // the last sweep failed, and that was logged
}

// New makes a Cleaner; Run and RunCompaction do the work.
func New(o Options) *Cleaner {
	return &Cleaner{
		o:         o,
		retention: sweeps{failed: "old records could not be deleted; this is tried again every second", works: "old records are deleted again"},
		compactor: sweeps{failed: "logs could not be compacted; this is tried again every minute", works: "logs are compacted again"},
		turn:      make(chan struct{}, 1), pacer: pacer{rate: o.BytesPerSecond},
	}
}

// Run has retention act until ctx ends, and then returns nil. It goes by the clock, so
// that a test that moves it finds expired what it has made old. A sweep that fails is
// logged once and tried again. Topics that are compacted as well are RunCompaction's.
func (c *Cleaner) Run(ctx context.Context) error {
	return c.run(ctx, &c.retention, func(now time.Time, unopened bool) error {
		_, err := c.o.Registry.Retain(ctx, c.topics(false), now.UnixMilli(), unopened)
		return err
	})
}

// RunCompaction is Run for topics whose cleanup.policy has compact: what is due is compacted, and then retention acts,
// where the policy has delete, too (ST-49). It is apart from Run since a compaction may take long.
func (c *Cleaner) RunCompaction(ctx context.Context) error {
	return c.run(ctx, &c.compactor, func(now time.Time, unopened bool) error {
		topics := c.topics(true)
		if len(topics) == 0 {
			return nil
		}
		_, err := c.compact(ctx, topics, false)
		_, retainErr := c.o.Registry.Retain(ctx, topics, now.UnixMilli(), unopened)
		return errors.Join(err, retainErr)
	})
}

// topics are those that are compacted, or the others.
func (c *Cleaner) topics(compacted bool) []*topic.Topic {
	return slices.DeleteFunc(slices.Clone(c.o.Registry.All()), func(t *topic.Topic) bool {
		is, err := t.Compacted()
		return err == nil && is != compacted
	})
}

func (c *Cleaner) run(ctx context.Context, s *sweeps, sweep func(now time.Time, unopened bool) error) error {
	s.unopenedAt = c.o.Clock.Now().Add(unopenedInterval)
	for c.wait(ctx) {
		now := c.o.Clock.Now()
		unopened := !now.Before(s.unopenedAt)
		if unopened {
			s.unopenedAt = now.Add(unopenedInterval)
		}
		err := sweep(now, unopened)
		switch {
		case ctx.Err() != nil: // the broker stops
		case err != nil && !s.failing:
			s.failing = true
			c.o.Logger.Warn(s.failed, "error", err)
		case err == nil && s.failing:
			s.failing = false
			c.o.Logger.Info(s.works)
		}
	}
	return nil
}

// wait is false if ctx ended first.
func (c *Cleaner) wait(ctx context.Context) bool {
	due := make(chan struct{})
	timer := c.o.Clock.AfterFunc(interval, func() { close(due) })
	defer timer.Stop()
	select {
	case <-due:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// RetainTopic has retention act on a topic at once, its partitions in use or
// not, and returns of how many the start has moved.
func (c *Cleaner) RetainTopic(ctx context.Context, t *topic.Topic) (moved int, err error) {
	return c.o.Registry.Retain(ctx, []*topic.Topic{t}, c.o.Clock.Now().UnixMilli(), true)
}

// CompactTopic compacts a topic at once, its partitions in use or not, whether it is due or not; min.compaction.lag.ms
// holds all the same. It waits for a compaction that is under way. POLICY_VIOLATION: the topic's cleanup.policy has no compact.
func (c *Cleaner) CompactTopic(ctx context.Context, t *topic.Topic) (topic.Compacted, error) {
	switch compacted, err := t.Compacted(); {
	case err != nil:
		return topic.Compacted{}, err
	case !compacted:
		return topic.Compacted{}, fmt.Errorf("cleanup.policy of the topic %s has no compact: %w", t.Name(), kerr.PolicyViolation)
	}
	return c.compact(ctx, []*topic.Topic{t}, true)
}

func (c *Cleaner) compact(ctx context.Context, topics []*topic.Topic, always bool) (topic.Compacted, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return topic.Compacted{}, ctx.Err()
	}
	return c.o.Registry.Compact(ctx, topics, topic.Compaction{
		MaxKeys: c.o.MaxKeys, Pace: c.pacer.wait, Always: always,
	})
}
