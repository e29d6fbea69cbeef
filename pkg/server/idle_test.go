package server

import (
	"testing"
	"testing/synctest"
	"time"
)

// connections.max.idle.ms: what does not move is closed, what waits is not.
func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates("fetch")
		f := startPipe(t, Options{Handler: fakeHandler{g.handle}, ConnectionsMaxIdle: time.Minute})
		silent, half, active, poll := f.connect(), f.connect(), f.connect(), f.connect()
		half.send(frameOf(metadata(12), 1)[:6])
		poll.send(frameOf(fetch(), 1))
		for i := range int32(8) {
			time.Sleep(30 * time.Second) // virtual
			active.send(frameOf(metadata(12), i))
			active.wantCorrelation(i)
		}
		silent.wantClosed()
		half.wantClosed()
		close(g.open["fetch"])
		poll.wantCorrelation(1)
		if n := f.s.stats.ConnectionsIdle.Load(); n != 2 {
			t.Errorf("%d connections were closed, want 2", n)
		}
		active.close()
		poll.close()
		f.stop()
	})
}
