package clock

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A journal collects when the timers fired, by the clock, since the start.
type journal struct {
	clock *Offset
	start time.Time

	mu    sync.Mutex
	fired []time.Duration
}

func newJournal() *journal {
	c := NewOffset(System)
	return &journal{clock: c, start: c.Now()}
}

func (j *journal) after(d time.Duration) Timer {
	return j.clock.AfterFunc(d, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.fired = append(j.fired, j.clock.Now().Sub(j.start))
	})
}

// want waits until every goroutine rests, then compares.
func (j *journal) want(t *testing.T, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.fired, want) {
		t.Errorf("fired at %v, want %v", j.fired, want)
	}
	j.fired = nil
}

// pass lets real time go by, which in a bubble takes none.
func pass(d time.Duration) { <-time.After(d) }

func TestOffsetRunsAsItsBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.after(time.Minute)
		pass(59 * time.Second)
		j.want(t)
		pass(2 * time.Second)
		j.want(t, time.Minute)
		if got := j.clock.Now().Sub(j.start); got != 61*time.Second {
			t.Errorf("Now is %v after the start", got)
		}
	})
}

func TestAdvanceFiresWhatBecomesDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		for _, d := range []time.Duration{time.Minute, time.Hour, 3 * time.Hour} {
			j.after(d)
		}
		j.clock.Advance(time.Hour)
		j.want(t, time.Hour, time.Hour) // both see the new time
		if time.Since(j.start) != 0 {
			t.Error("real time has passed")
		}
		pass(2*time.Hour - time.Second) // the rest of its time, and no less
		j.want(t)
		pass(time.Second)
		j.want(t, 3*time.Hour)
		if len(j.clock.timers) != 0 {
			t.Error("timers that have fired are kept")
		}
	})
}

func TestAdvanceMovesOnlyWhatIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.clock.Advance(24 * time.Hour)
		j.after(time.Minute)
		j.want(t)
		j.clock.Advance(59 * time.Second)
		j.want(t)
		j.clock.Advance(time.Second)
		j.want(t, 24*time.Hour+time.Minute)
		if j.clock.Offset() != 24*time.Hour+time.Minute {
			t.Error("offset", j.clock.Offset())
		}
	})
}

func TestAdvanceBackMakesTimersWaitLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.after(time.Hour)
		j.clock.Advance(-time.Hour)
		pass(2*time.Hour - time.Second)
		j.want(t)
		pass(time.Second)
		j.want(t, time.Hour)
	})
}

// The base may wake a timer just when the clock is moved back.
func TestAWakeUpThatComesTooLateIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		timer := j.after(time.Hour).(*offsetTimer)
		j.clock.Advance(-time.Hour)
		timer.fire()
		j.want(t)
		pass(2 * time.Hour)
		j.want(t, time.Hour)
		timer.fire()
		j.want(t)
	})
}

func TestATimerMaySetAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		j.clock.AfterFunc(time.Minute, func() { j.after(time.Minute) })
		j.clock.Advance(time.Hour)
		j.want(t)
		j.clock.Advance(time.Minute)
		j.want(t, time.Hour+time.Minute)
	})
}

func TestAStoppedTimerDoesNotFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		timer := j.after(time.Minute)
		if !timer.Stop() {
			t.Error("Stop says the call has started")
		}
		if timer.Stop() {
			t.Error("the second Stop says it stopped the call")
		}
		j.clock.Advance(time.Hour)
		pass(time.Hour)
		j.want(t)
		timer = j.after(0)
		j.want(t, 2*time.Hour)
		if timer.Stop() {
			t.Error("Stop says it stopped a call that was made")
		}
	})
}

func TestATimerFiresOnceHoweverItIsMoved(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			j := newJournal()
			timer := j.after(time.Second)
			var stopped bool
			var wg sync.WaitGroup
			wg.Go(func() { pass(time.Second) })
			for range 4 {
				wg.Go(func() { j.clock.Advance(time.Second); j.clock.Advance(-time.Second) })
			}
			wg.Go(func() { stopped = timer.Stop() })
			wg.Wait()
			pass(time.Hour)
			synctest.Wait()
			j.mu.Lock()
			defer j.mu.Unlock()
			if len(j.fired) == 1 == stopped || len(j.fired) > 1 {
				t.Fatalf("fired %d times, stopped: %v", len(j.fired), stopped)
			}
		})
	}
}
