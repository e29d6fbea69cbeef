package clock

import (
	"sync"
	"time"
)

// Offset is a clock that runs as another does, and that Advance moves against
// it: a test of a running broker passes a session timeout or a retention time
// without waiting for it. It may be used by several goroutines.
type Offset struct {
	base Clock

	mu     sync.Mutex // guards all below, and the timers
	offset time.Duration
	timers map[*offsetTimer]struct{} // those that have neither fired nor been stopped
}

// NewOffset returns a clock that shows the time of base until it is moved.
func NewOffset(base Clock) *Offset {
	return &Offset{base: base, timers: map[*offsetTimer]struct{}{}}
}

// Now is the base's time and what the clock has been moved.
func (c *Offset) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked()
}

func (c *Offset) nowLocked() time.Time { return c.base.Now().Add(c.offset) }

// Offset is how far the clock has been moved in all.
func (c *Offset) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// Advance moves the clock by d at once, back if d is negative. The timers that
// become due fire, each in its own goroutine and all seeing the new time; the
// others wait for what is left of their time. A timer that one of them sets
// counts from the new time.
func (c *Offset) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
	now := c.nowLocked()
	for t := range c.timers {
		t.wake.Stop() // if it is too late for that, fire finds the timer fired or not due
		t.armLocked(now)
	}
}

// AfterFunc calls f once d has passed on this clock, by itself or by Advance.
func (c *Offset) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.nowLocked()
	t := &offsetTimer{clock: c, due: now.Add(d), f: f}
	c.timers[t] = struct{}{}
	t.armLocked(now)
	return t
}

// An offsetTimer is waiting exactly as long as it is in its clock's timers.
type offsetTimer struct {
	clock *Offset
	due   time.Time // on the offset clock
	f     func()
	wake  Timer // the base's timer for it
}

// armLocked has the base call fire when the timer is due. The base's timer
// also gives a timer that is due already the goroutine that f runs in.
func (t *offsetTimer) armLocked(now time.Time) {
	t.wake = t.clock.base.AfterFunc(max(t.due.Sub(now), 0), t.fire)
}

func (t *offsetTimer) fire() {
	if t.take() {
		t.f()
	}
}

// take says whether the timer is to fire, which it does once.
func (t *offsetTimer) take() bool {
	c := t.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, waiting := c.timers[t]; !waiting {
		return false // fired by another wake-up, or stopped
	}
	if t.due.After(c.nowLocked()) {
		return false // the clock was moved back, and Advance has armed it anew
	}
	delete(c.timers, t)
	return true
}

// Stop is Timer.
func (t *offsetTimer) Stop() bool {
	c := t.clock
	c.mu.Lock()
	defer c.mu.Unlock()
	_, waiting := c.timers[t]
	delete(c.timers, t)
	t.wake.Stop() // whether it came in time is told by the timers
	return waiting
}
