package server

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ST-50: at the stop long polls answer, replies drain, and nobody is accepted.
func TestShutdownAnswersLongPollsAndDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates("fetch", "a")
		f := startPipe(t, Options{Handler: fakeHandler{func(ctx context.Context, req *Request) Reply {
			r := g.handle(ctx, req)
			if g.name(req) == "a" { // an append that is being flushed does not stop
				r.Wait = func(context.Context) { <-g.open["a"] }
			}
			return r
		}}})
		idle, poll, producer := f.connect(), f.connect(), f.connect()
		poll.send(frameOf(fetch(), 1))
		producer.send(frameOf(produce(-1, "a", nil), 2))
		synctest.Wait()
		var stopped sync.WaitGroup
		stopped.Go(f.stop)
		synctest.Wait()
		poll.wantCorrelation(1)
		poll.wantClosed()
		idle.wantClosed()
		if err := g.causes["fetch"]; !errors.Is(err, ErrShutdown) {
			t.Errorf("the long poll ended with %v, want ErrShutdown", err)
		}
		close(g.open["a"])
		producer.wantCorrelation(2)
		producer.wantClosed()
		stopped.Wait()
	})
}

// ST-50: five seconds at most, whatever clients and handlers do.
func TestShutdownCutsOffWhatDoesNotDrain(t *testing.T) {
	for _, test := range []string{"stuck handler", "stuck reader"} {
		t.Run(test, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				f := startPipe(t, Options{Handler: fakeHandler{func(_ context.Context, req *Request) Reply {
					r := answer(req)
					if test == "stuck handler" {
						r.Wait = func(context.Context) { <-release }
					}
					return r
				}}})
				w := f.connect()
				w.send(frameOf(metadata(12), 1))
				synctest.Wait() // the answer is being written to a pipe that nobody reads
				start := time.Now()
				err := f.s.Shutdown(t.Context())
				if err == nil || !strings.Contains(err.Error(), "1 connection") {
					t.Errorf("Shutdown: %v", err)
				}
				if d := time.Since(start); d < ShutdownTimeout || d > ShutdownTimeout+time.Second {
					t.Errorf("Shutdown took %v", d)
				}
				close(release)
				f.serve.Wait()
				w.close()
			})
		})
	}
}

func TestShutdownOfAnIdleServerIsImmediate(t *testing.T) {
	f := startTCP(t, Options{})
	w := f.connect()
	w.send(frameOf(metadata(12), 1))
	w.wantCorrelation(1)
	start := time.Now()
	f.stop()
	if d := time.Since(start); d > ShutdownTimeout/2 {
		t.Errorf("took %v", d)
	}
	w.wantClosed()
}

func TestServeAfterShutdownRefuses(t *testing.T) {
	s := New(Options{Handler: fakeHandler{answerAll}})
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	ln := newPipeListener()
	if err := s.Serve(t.Context(), ln, "PLAINTEXT"); !errors.Is(err, ErrShutdown) {
		t.Errorf("Serve: %v", err)
	}
}

// The end of the context of Serve closes the listener, not the connections.
func TestServeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Handler: fakeHandler{answerAll}})
		ctx, cancel := context.WithCancel(t.Context())
		ln, done := newPipeListener(), make(chan error)
		go func() { done <- s.Serve(ctx, ln, "PLAINTEXT") }()
		w := &wire{t, ln.dial()}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		w.send(frameOf(metadata(12), 1))
		w.wantCorrelation(1)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

func TestSeveralListenersAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := make(chan string, 2)
		s := New(Options{Handler: fakeHandler{answerAll}, OnConn: func(info *ConnInfo, open bool) {
			if open {
				names <- info.Listener
			}
		}})
		var serving sync.WaitGroup
		for _, name := range []string{"INTERNAL", "EXTERNAL"} {
			ln := newPipeListener()
			serving.Go(func() {
				if err := s.Serve(t.Context(), ln, name); err != nil {
					t.Errorf("Serve: %v", err)
				}
			})
			w := &wire{t, ln.dial()}
			w.send(frameOf(metadata(12), 1))
			w.wantCorrelation(1)
			if got := <-names; got != name {
				t.Errorf("listener %q, want %q", got, name)
			}
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		serving.Wait()
	})
}

// A listener that fails for a while, for want of descriptors, is tried again.
type failingListener struct {
	*pipeListener
	failures int
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failures > 0 {
		l.failures--
		return nil, errors.New("too many open files")
	}
	return l.pipeListener.Accept()
}

func TestAcceptIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := &failingListener{newPipeListener(), 5}
		f := start(t, Options{}, ln, ln.dial)
		f.roundTrip()
		f.stop()
	})
}
