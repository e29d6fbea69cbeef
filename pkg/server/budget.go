package server

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// stallTimeout is how long a half-read request may keep memory without a byte
// coming in, while others wait for memory.
const stallTimeout = 10 * time.Second

// A budget is the byte-weighted semaphore over all requests in memory (FX-8).
//
// Memory is charged in steps, as the bytes of a frame arrive. Two rules keep
// that from a deadlock in which half-read requests hold everything and all of
// them wait for more. The oldest of them is let through whatever is in use, so
// it completes and gives back what it holds; not, however, while requests that
// are being answered hold half the limit, for those give it back by themselves:
// so at most one and a half limits and one frame are in use. And one that
// holds memory while its client sends nothing is dropped once others have
// waited for stallTimeout.
//
// A request that is completely in its connection's read buffer before it is
// charged holds nothing half-read, and waits for no request that is: only for
// those that are being answered. So clients that stop in the middle of large
// frames delay no fetch and no metadata of others.
type budget struct {
	limit     int64
	used      atomic.Int64
	answering atomic.Int64 // of used, what completely read requests hold
	waiting   atomic.Int32 // grants that wait; changed under mu
	evictions *atomic.Int64

	mu sync.Mutex
	// reading are the half-read requests, and whole ones that had to wait, oldest first.
	reading []*grant
}

// A grant is the share of one request. Apart from what budget.mu guards it
// belongs to the goroutine of its request.
type grant struct {
	held     int64
	evict    func()       // drops the connection
	progress atomic.Int64 // when bytes last came in, in Unix nanoseconds
	listed   bool

	// Guarded by budget.mu.
	want  int64         // > 0: waits
	ready chan struct{} // closed when want was granted
}

// acquireWhole charges the n bytes of a request that was read already, and
// waits if there is no room. It fails only when ctx ends.
func (b *budget) acquireWhole(ctx context.Context, g *grant, n int64) error {
	if b.used.Add(n) <= b.limit || b.answering.Load() < b.limit/2 {
		g.held = n
		return nil
	}
	b.release(n)
	return b.acquire(ctx, g, n)
}

// acquire charges n more bytes to g, whose request is half-read, and waits
// until there is room. It fails only when ctx ends.
func (b *budget) acquire(ctx context.Context, g *grant, n int64) error {
	b.mu.Lock()
	if !g.listed {
		g.listed = true
		b.reading = append(b.reading, g)
	}
	if b.waiting.Load() == 0 {
		if b.used.Add(n) <= b.limit {
			g.held += n
			g.moved()
			b.mu.Unlock()
			return nil
		}
		b.used.Add(-n) // whoever waits for this room is granted it below
	}
	g.want, g.ready = n, make(chan struct{})
	b.waiting.Add(1)
	b.grantLocked()
	b.mu.Unlock()
	return b.await(ctx, g, n)
}

// await waits until g got the n bytes it wants.
func (b *budget) await(ctx context.Context, g *grant, n int64) error {
	select {
	case <-g.ready:
		g.held += n
		return nil
	default:
	}
	tick := time.NewTicker(stallTimeout)
	defer tick.Stop()
	for {
		select {
		case <-g.ready:
			g.held += n
			return nil
		case <-tick.C:
			b.evictStalled()
		case <-ctx.Done():
			b.mu.Lock()
			if g.want == 0 { // granted in the same instant
				g.held += n
			} else {
				g.want = 0
				b.waiting.Add(-1)
			}
			b.mu.Unlock()
			return context.Cause(ctx)
		}
	}
}

// grantLocked lets through, in order of age, whoever fits; and the oldest
// half-read request by the rule above. The caller holds mu.
func (b *budget) grantLocked() {
	for i, g := range b.reading {
		if g.want == 0 {
			continue
		}
		oldest := i == 0 && b.answering.Load() < b.limit/2
		if !oldest && b.used.Load()+g.want > b.limit {
			return // those behind it wait for it: first come, first served
		}
		b.used.Add(g.want)
		g.want = 0
		g.moved()
		b.waiting.Add(-1)
		close(g.ready)
	}
}

// moved notes that bytes came in.
func (g *grant) moved() { g.progress.Store(time.Now().UnixNano()) }

// complete says that the frame of g was read: it is not half-read any more.
// What it holds stays charged until finish.
func (b *budget) complete(g *grant) {
	b.answering.Add(g.held)
	b.unlist(g)
}

// unlist takes g off the list of half-read requests.
func (b *budget) unlist(g *grant) {
	if !g.listed {
		return
	}
	g.listed = false
	b.mu.Lock()
	if i := slices.Index(b.reading, g); i >= 0 {
		b.reading = slices.Delete(b.reading, i, i+1)
	}
	b.grantLocked() // another one is the oldest now
	b.mu.Unlock()
}

// finish gives back what g holds after complete.
func (b *budget) finish(g *grant) {
	n := g.held
	g.held = 0
	b.answering.Add(-n)
	b.release(n)
}

// abandon gives back what g holds before complete.
func (b *budget) abandon(g *grant) {
	b.unlist(g)
	n := g.held
	g.held = 0
	b.release(n)
}

func (b *budget) release(n int64) {
	b.used.Add(-n)
	if b.waiting.Load() == 0 {
		return
	}
	b.mu.Lock()
	b.grantLocked()
	b.mu.Unlock()
}

// evictStalled drops the half-read requests whose bytes stopped coming.
func (b *budget) evictStalled() {
	var stalled []*grant
	b.mu.Lock()
	for _, g := range b.reading {
		if g.want == 0 && time.Now().UnixNano()-g.progress.Load() >= int64(stallTimeout) {
			stalled = append(stalled, g)
		}
	}
	b.mu.Unlock()
	for _, g := range stalled {
		b.evictions.Add(1)
		g.evict()
	}
}
