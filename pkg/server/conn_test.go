package server

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// gates are replies that complete when the test says so.
type gates struct {
	mu      sync.Mutex
	started []string // topics of produce requests, "fetch", "metadata"
	open    map[string]chan struct{}
	causes  map[string]error
}

func newGates(names ...string) *gates {
	g := &gates{open: map[string]chan struct{}{}, causes: map[string]error{}}
	for _, name := range names {
		g.open[name] = make(chan struct{})
	}
	return g
}

func (g *gates) name(req *Request) string {
	switch body := req.Body.(type) {
	case *kmsg.ProduceRequest:
		return body.Topics[0].Topic
	case *kmsg.FetchRequest:
		return "fetch"
	}
	return "metadata"
}

func (g *gates) handle(_ context.Context, req *Request) Reply {
	name := strings.Clone(g.name(req)) // it aliases the frame
	g.mu.Lock()
	g.started = append(g.started, name)
	gate := g.open[name]
	g.mu.Unlock()
	r := answer(req)
	if gate != nil {
		r.Wait = func(ctx context.Context) {
			select {
			case <-gate:
			case <-ctx.Done():
				g.mu.Lock()
				g.causes[name] = context.Cause(ctx)
				g.mu.Unlock()
			}
		}
	}
	return r
}

func (g *gates) startedNow() int {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.started)
}

// Produce requests start while earlier ones wait, and answers keep the order of
// requests whichever completes first.
func TestRepliesOfOverlappingRequestsKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates("a", "b", "c")
		f := startPipe(t, Options{Handler: fakeHandler{g.handle}})
		w := f.connect()
		w.send(frameOf(produce(-1, "a", nil), 1), frameOf(produce(-1, "b", nil), 2), frameOf(produce(-1, "c", nil), 3))
		if n := g.startedNow(); n != 3 {
			t.Fatalf("%d requests were started, want 3", n)
		}
		close(g.open["c"])
		close(g.open["b"])
		synctest.Wait()
		close(g.open["a"])
		for i := range int32(3) {
			w.wantCorrelation(i + 1)
		}
		w.close()
		f.stop()
	})
}

// A request that does not overlap starts when the replies before it are
// complete, and the next one starts when its own is.
func TestOtherRequestsAreBarriersInBothDirections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates("a", "fetch", "b")
		f := startPipe(t, Options{Handler: fakeHandler{g.handle}})
		w := f.connect()
		w.send(frameOf(produce(-1, "a", nil), 1), frameOf(fetch(), 2), frameOf(produce(-1, "b", nil), 3), frameOf(metadata(12), 4))
		for i, gate := range []string{"a", "fetch", "b"} {
			if n := g.startedNow(); n != i+1 {
				t.Fatalf("before the answer of %s %d requests were started, want %d", gate, n, i+1)
			}
			close(g.open[gate])
			w.wantCorrelation(int32(i + 1))
		}
		w.wantCorrelation(4)
		w.close()
		f.stop()
	})
}

func TestALongPollEndsWhenItsClientIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates("fetch")
		f := startPipe(t, Options{Handler: fakeHandler{g.handle}})
		w := f.connect()
		w.send(frameOf(fetch(), 1))
		if g.startedNow() != 1 {
			t.Fatal("the long poll was not started")
		}
		w.close()
		synctest.Wait()
		if err := g.causes["fetch"]; !errors.Is(err, ErrConnClosed) {
			t.Fatalf("the wait ended with %v, want ErrConnClosed", err)
		}
		if n := f.s.stats.ConnectionsOpen.Load(); n != 0 {
			t.Fatalf("%d connections are open", n)
		}
		f.stop()
	})
}

func TestARequestPipelinedBehindALongPollIsAnsweredAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates("fetch")
		f := startPipe(t, Options{Handler: fakeHandler{g.handle}})
		w := f.connect()
		w.send(frameOf(fetch(), 1), frameOf(metadata(12), 2))
		if n := g.startedNow(); n != 1 {
			t.Fatalf("%d requests were started, want 1", n)
		}
		close(g.open["fetch"])
		w.wantCorrelation(1)
		w.wantCorrelation(2)
		w.close()
		f.stop()
	})
}

// A client that sends and never reads is not read from any more once its
// replies fill the queue.
func TestASlowReaderBoundsItsReplyQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates("a")
		close(g.open["a"])
		f := startPipe(t, Options{Handler: fakeHandler{g.handle}, ReplyQueue: 5})
		w := f.connect()
		go func() {
			for i := range int32(100) {
				if _, err := w.Write(frameOf(produce(-1, "a", nil), i)); err != nil {
					return
				}
			}
		}()
		if n := g.startedNow(); n != 6 { // five queued, one waits for room
			t.Fatalf("%d requests were started, want 6", n)
		}
		for i := range int32(100) {
			w.wantCorrelation(i)
		}
		w.close()
		f.stop()
	})
}

// Pipelined requests whose client disappears end their waits.
func TestWaitsOfPipelinedRequestsEndWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates("a", "b")
		var released atomic.Int32
		f := startPipe(t, Options{Handler: fakeHandler{func(ctx context.Context, req *Request) Reply {
			r := g.handle(ctx, req)
			r.Response = func() (*Response, error) {
				return &Response{Body: req.Body.ResponseKind(), Release: func() { released.Add(1) }}, nil
			}
			return r
		}}})
		w := f.connect()
		w.send(frameOf(produce(-1, "a", nil), 1), frameOf(produce(-1, "b", nil), 2))
		synctest.Wait()
		w.close()
		synctest.Wait()
		if n := released.Load(); n != 2 {
			t.Fatalf("%d responses were released, want 2", n)
		}
		f.stop()
	})
}

func TestNoGoroutineIsLeftToAnIdleConnectionButItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGates("a")
		close(g.open["a"])
		f := startPipe(t, Options{Handler: fakeHandler{g.handle}})
		for range 20 {
			w := f.connect()
			defer w.close()
			for i := range int32(3) {
				w.send(frameOf(produce(-1, "a", nil), i))
				w.wantCorrelation(i)
			}
		}
		synctest.Wait()
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		if n := bytes.Count(stacks, []byte("(*conn).read(")); n < 20 {
			t.Errorf("%d readers for 20 connections", n)
		}
		if n := bytes.Count(stacks, []byte("(*conn).write(")); n != 0 {
			t.Errorf("%d writers for 20 idle connections", n)
		}
		f.stop()
	})
}

// ST-22: 1,000 idle connections hold at most 40 KB each.
func TestAThousandIdleConnectionsAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("opens 2,000 sockets")
	}
	f := startTCP(t, Options{})
	defer f.stop()
	f.roundTrip()
	const conns = 1000
	before := memoryInUse()
	wires := make([]*wire, conns)
	for i := range wires {
		wires[i] = f.connect()
		wires[i].send(frameOf(produce(-1, "topic", make([]byte, 20<<10)), 1))
		wires[i].wantCorrelation(1)
	}
	perConn := (memoryInUse() - before) / conns
	t.Logf("%d bytes for each connection, the client's side included", perConn)
	if perConn > 40<<10 {
		t.Errorf("an idle connection holds %d bytes, at most 40 KiB are allowed", perConn)
	}
	for _, w := range wires {
		w.close()
	}
}

func memoryInUse() int64 {
	runtime.GC()
	runtime.GC() // the first one only ages the pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

func TestOnConnTellsOfEachConnectionTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var opened, gone atomic.Int32
		f := startPipe(t, Options{OnConn: func(info *ConnInfo, open bool) {
			if info.Listener != "PLAINTEXT" || info.ID == 0 {
				t.Errorf("connection %+v", info)
			}
			if open {
				opened.Add(1)
			} else {
				gone.Add(1)
			}
		}})
		w := f.connect()
		synctest.Wait()
		if opened.Load() != 1 || gone.Load() != 0 {
			t.Error("the open connection was not told of")
		}
		w.close()
		synctest.Wait()
		if gone.Load() != 1 {
			t.Error("the end of the connection was not told of")
		}
		f.stop()
	})
}

// The handler sees its requests as they were sent.
func TestARequestIsHandedOverAsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan Request, 2)
		f := startPipe(t, Options{Handler: fakeHandler{func(_ context.Context, req *Request) Reply {
			got <- *req
			return answer(req)
		}}})
		w := f.connect()
		w.send(frameOf(metadata(12), 9))
		w.wantCorrelation(9)
		req := <-got
		if req.Key != 3 || req.Version != 12 || req.ClientID != "test" || req.Body.GetVersion() != 12 || req.Conn.ID == 0 {
			t.Errorf("got %+v", req)
		}
		if n := f.s.stats.Requests(3); n != 1 {
			t.Errorf("%d Metadata requests were counted", n)
		}
		w.close()
		f.stop()
	})
}

func BenchmarkRoundTripOverLoopback(b *testing.B) {
	f := startTCP(b, Options{})
	defer f.stop()
	w := f.connect()
	defer w.close()
	frame := frameOf(produce(1, "topic", make([]byte, 4<<10)), 1)
	benchRoundTrips(b, w, frame)
}

func benchRoundTrips(b *testing.B, w net.Conn, frame []byte) {
	buf := make([]byte, 64<<10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Write(frame); err != nil {
			b.Fatal(err)
		}
		if _, err := w.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRoundTripWithAWait(b *testing.B) {
	f := startTCP(b, Options{Handler: fakeHandler{func(_ context.Context, req *Request) Reply {
		r := answer(req)
		r.Wait = func(context.Context) {}
		return r
	}}})
	defer f.stop()
	w := f.connect()
	defer w.close()
	benchRoundTrips(b, w, frameOf(produce(-1, "topic", make([]byte, 4<<10)), 1))
}
