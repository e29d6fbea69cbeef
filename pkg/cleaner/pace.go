package cleaner

import (
	"context"
	"time"
)

// leastWait is what the pace gathers before it waits: timers are coarse.
const leastWait = 20 * time.Millisecond

// A pacer bounds bytes a second, in real time, without a burst after a pause. It is used by one goroutine at a time.
type pacer struct {
	rate int64     // bytes a second; 0: no bound
	free time.Time // when all that it was told of may have been done
}

// wait notes bytes, and waits until they were to be done.
func (p *pacer) wait(ctx context.Context, bytes int) error {
	if p.rate <= 0 {
		return nil
	}
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(bytes) / float64(p.rate) * float64(time.Second)))
	ahead := p.free.Sub(now)
	if ahead < leastWait {
		return nil
	}
	timer := time.NewTimer(ahead)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
