package server

import (
	"context"
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

// A client that sends a long poll of days with something behind it, and goes,
// does not keep its connection for days.
func TestALongPollWithARequestBehindItIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := func(context.Context, *Request) Reply {
			return Reply{Wait: func(ctx context.Context) { <-ctx.Done() }}
		}
		f := startPipe(t, Options{Handler: fakeHandler{forever}, ConnectionsMaxIdle: time.Minute})
		w := f.connect()
		w.send(frameOf(fetch(), 1), frameOf(metadata(12), 2))
		w.close()
		time.Sleep(2 * time.Minute) // virtual
		synctest.Wait()
		if n := f.s.stats.ConnectionsOpen.Load(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
		f.stop()
	})
}
