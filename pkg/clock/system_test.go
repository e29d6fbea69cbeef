package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSystemFollowsTheSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		fired := make(chan time.Time)
		System.AfterFunc(time.Minute, func() { fired <- System.Now() })
		if got := (<-fired).Sub(start); got != time.Minute {
			t.Errorf("fired after %v", got)
		}
		timer := System.AfterFunc(time.Minute, func() { t.Error("a stopped timer fired") })
		if !timer.Stop() {
			t.Error("Stop says the call has started")
		}
		if timer.Stop() {
			t.Error("the second Stop says it stopped the call")
		}
		<-time.After(time.Hour)
	})
}
