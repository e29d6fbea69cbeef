package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func newBudget(limit int64) *budget {
	return &budget{limit: limit, evictions: new(atomic.Int64)}
}

func acquire(t *testing.T, b *budget, g *grant, n int64) chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- b.acquire(t.Context(), g, n) }()
	synctest.Wait()
	return done
}

func wantGranted(t *testing.T, done chan error, want bool) {
	t.Helper()
	synctest.Wait()
	if got := len(done) == 1; got != want {
		t.Fatalf("granted is %v, want %v", got, want)
	}
	if want {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// FX-8: requests wait for memory in the order in which they came.
func TestMemoryIsGrantedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		first, second, third := &grant{}, &grant{}, &grant{}
		wantGranted(t, acquire(t, b, first, 90), true)
		b.complete(first)
		big := acquire(t, b, second, 50)
		small := acquire(t, b, third, 5)
		wantGranted(t, big, false)
		wantGranted(t, small, false) // would fit, but came later
		b.finish(first)
		wantGranted(t, big, true)
		wantGranted(t, small, true)
		b.complete(second)
		b.complete(third)
		b.finish(second)
		b.finish(third)
		if n := b.used.Load(); n != 0 {
			t.Errorf("%d bytes are in use", n)
		}
	})
}

// FX-8: the oldest half-read request is let through, so that many large ones
// which together exceed the limit all complete.
func TestHalfReadRequestsDoNotDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		done := make(chan struct{}, 20)
		var most atomic.Int64
		for range cap(done) {
			g := &grant{evict: func() { t.Error("evicted a request that moves") }}
			go func() {
				for range 6 { // 60 bytes in steps: two of them fill the budget
					if err := b.acquire(t.Context(), g, 10); err != nil {
						t.Error(err)
					}
					most.Store(max(most.Load(), b.used.Load()))
					time.Sleep(time.Millisecond) // virtual: the others come in between
				}
				b.complete(g)
				time.Sleep(time.Millisecond)
				b.finish(g)
				done <- struct{}{}
			}()
		}
		for range cap(done) {
			<-done
		}
		if n := most.Load(); n > 210 {
			t.Errorf("%d bytes were in use at once, the limit is 100", n)
		}
		if n := b.used.Load(); n != 0 {
			t.Errorf("%d bytes are in use", n)
		}
	})
}

// Requests that are being answered give their memory back by themselves: none
// is let through before.
func TestTheOldestWaitsForRequestsThatAreBeingAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		first, second := &grant{}, &grant{}
		wantGranted(t, acquire(t, b, first, 100), true)
		b.complete(first)
		waiting := acquire(t, b, second, 10)
		wantGranted(t, waiting, false)
		b.finish(first)
		wantGranted(t, waiting, true)
		b.abandon(second)
	})
}

// FX-8: a request that was read whole waits for no half-read one, even if
// those hold all memory and more of them wait.
func TestAWholeRequestWaitsForNoHalfReadOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		half, more, whole := &grant{}, &grant{}, &grant{}
		wantGranted(t, acquire(t, b, half, 100), true)
		waiting := acquire(t, b, more, 50)
		wantGranted(t, waiting, false)
		if err := b.acquireWhole(t.Context(), whole, 10); err != nil {
			t.Fatal(err)
		}
		b.complete(whole)
		b.finish(whole)
		b.complete(half) // is being answered: now the whole ones wait
		done := make(chan error, 1)
		go func() { done <- b.acquireWhole(t.Context(), whole, 10) }()
		wantGranted(t, done, false)
		b.finish(half)
		wantGranted(t, waiting, true)
		wantGranted(t, done, true)
		b.abandon(more)
		b.abandon(whole)
		if n := b.used.Load(); n != 0 || len(b.reading) != 0 {
			t.Errorf("left: %d bytes, %d reading", n, len(b.reading))
		}
	})
}

// FX-8: a client that sends half a request and stops does not keep others out.
func TestAStalledRequestIsEvictedWhenOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		evicted := false
		stalled := &grant{}
		stalled.evict = func() {
			evicted = true
			b.abandon(stalled)
		}
		wantGranted(t, acquire(t, b, stalled, 100), true)
		next := &grant{evict: func() { t.Error("evicted the one that waits") }}
		start := time.Now()
		if err := b.acquire(t.Context(), next, 50); err != nil {
			t.Fatal(err)
		}
		if !evicted || time.Since(start) > 2*stallTimeout {
			t.Errorf("evicted: %v, after %v", evicted, time.Since(start))
		}
		b.abandon(next)
		if n := b.used.Load(); n != 0 {
			t.Errorf("%d bytes are in use", n)
		}
	})
}

func TestAWaitForMemoryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		first, second := &grant{}, &grant{}
		wantGranted(t, acquire(t, b, first, 100), true)
		b.complete(first)
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() { done <- b.acquire(ctx, second, 10) }()
		synctest.Wait()
		cancel(ErrShutdown)
		if err := <-done; !errors.Is(err, ErrShutdown) {
			t.Errorf("got %v", err)
		}
		b.abandon(second)
		b.finish(first)
		if b.used.Load() != 0 || b.waiting.Load() != 0 || len(b.reading) != 0 {
			t.Errorf("left: %d bytes, %d waiting, %d reading", b.used.Load(), b.waiting.Load(), len(b.reading))
		}
	})
}

// FX-8: clients that stop in the middle of large frames, and together hold all
// memory for requests, delay no small request of another, and a large one for
// no longer than it takes to evict them.
func TestStalledClientsDelayNoSmallRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startPipe(t, Options{RequestMemoryBytes: 1 << 20})
		frame := frameOf(produce(1, "topic", make([]byte, 600<<10)), 1)
		for range 20 {
			w := f.connect()
			w.send(frame[:readBufBytes]) // which is charged as if it flowed on
			defer w.close()
		}
		synctest.Wait()
		if f.s.memory.waiting.Load() == 0 {
			t.Fatal("the stalled clients do not hold all memory")
		}
		start := time.Now()
		w := f.connect()
		w.send(frameOf(produce(1, "topic", make([]byte, 1<<10)), 2))
		w.wantCorrelation(2)
		if d := time.Since(start); d > 0 {
			t.Errorf("a small request waited %v", d)
		}
		w.send(frame)
		w.wantCorrelation(1)
		w.close()
		if d := time.Since(start); d > 12*stallTimeout {
			t.Errorf("a large request waited %v", d)
		}
		f.stop()
	})
}

// FX-8: over connections: more large requests at once than fit into memory are
// all answered, while some clients stall within theirs.
func TestManyLargeRequestsAreAllAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startPipe(t, Options{RequestMemoryBytes: 1 << 20})
		frame := frameOf(produce(1, "topic", make([]byte, 600<<10)), 1)
		for range 3 {
			w := f.connect()
			w.send(frame[:300<<10])
			defer w.close()
		}
		done := make(chan struct{}, 10)
		for range cap(done) {
			w := f.connect()
			go func() {
				w.send(frame)
				w.wantCorrelation(1)
				w.close()
				done <- struct{}{}
			}()
		}
		for range cap(done) {
			<-done
		}
		f.stop()
	})
}
