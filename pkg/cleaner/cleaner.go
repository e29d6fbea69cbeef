// Package cleaner decides when old records go: it has the registry look at
// partitions, those in use often and the others seldom, and bounds how much work that is.
package cleaner

import (
	"context"
	"log/slog"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

const (
	// interval is between two sweeps over the partitions in use (ST-33).
	interval = time.Second
	// unopenedInterval is between two sweeps over all of them.
	unopenedInterval = time.Minute
)

// Options make a Cleaner. All fields are required.
type Options struct {
	Registry *topic.Registry
	Clock    clock.Clock // ages of records, and when a sweep is due
	Logger   *slog.Logger
}

// A Cleaner is the sweeps of one broker.
type Cleaner struct {
	o Options
	// Of the goroutine of Run.
	unopenedAt time.Time // when partitions that are not in use are due
	failing    bool      // the last sweep failed, and that was logged
}

// New makes a Cleaner; Run does the work.
func New(o Options) *Cleaner { return &Cleaner{o: o} }

// Run sweeps until ctx ends, and then returns nil. It goes by the clock, so
// that a test that moves it finds expired what it has made old. A sweep that fails is
// logged once and tried again.
func (c *Cleaner) Run(ctx context.Context) error {
	c.unopenedAt = c.o.Clock.Now().Add(unopenedInterval)
	for c.wait(ctx) {
		c.sweep(ctx)
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

func (c *Cleaner) sweep(ctx context.Context) {
	now := c.o.Clock.Now()
	unopened := !now.Before(c.unopenedAt)
	if unopened {
		c.unopenedAt = now.Add(unopenedInterval)
	}
	_, err := c.retain(ctx, c.o.Registry.All(), now, unopened)
	switch {
	case ctx.Err() != nil: // the broker stops
	case err != nil && !c.failing:
		c.failing = true
		c.o.Logger.Warn("old records could not be deleted; this is tried again every second", "error", err)
	case err == nil && c.failing:
		c.failing = false
		c.o.Logger.Info("old records are deleted again")
	}
}

// RetainTopic has retention act on a topic at once, its partitions in use or
// not, and returns of how many the start has moved.
func (c *Cleaner) RetainTopic(ctx context.Context, t *topic.Topic) (moved int, err error) {
	return c.retain(ctx, []*topic.Topic{t}, c.o.Clock.Now(), true)
}

func (c *Cleaner) retain(ctx context.Context, topics []*topic.Topic, now time.Time, unopened bool) (moved int, err error) {
	return c.o.Registry.Retain(ctx, topics, now.UnixMilli(), unopened)
}
