package record

import "sync"

const (
	// freeMemory is what one decompressor may hold without asking: most hold less.
	freeMemory = 1 << 20
	// maxWindow is the largest zstd window that is read, as in libzstd (ZSTD_WINDOWLOG_LIMIT_DEFAULT).
	maxWindow = 128 << 20
)

// memory bounds what all decompressors together hold beyond freeMemory each
// (ST-10): one of the largest windows, or many of the usual 2 MiB ones.
var memory = budget{size: maxWindow, free: maxWindow}

// A budget is a semaphore weighted by bytes, first come first served, so that
// a large claim is not overtaken for ever.
type budget struct {
	size    int64 // of the whole; a claim beyond it waits for the whole
	mu      sync.Mutex
	free    int64
	waiting []claim
}

type claim struct {
	n     int64
	ready chan struct{}
}

// acquire waits until n bytes are free and takes them; what is below
// freeMemory is not counted.
func (b *budget) acquire(n int64) {
	if n = b.counted(n); n == 0 {
		return
	}
	b.mu.Lock()
	if len(b.waiting) == 0 && b.free >= n {
		b.free -= n
		b.mu.Unlock()
		return
	}
	c := claim{n: n, ready: make(chan struct{})}
	b.waiting = append(b.waiting, c)
	b.mu.Unlock()
	<-c.ready
}

// release gives n bytes back and lets in who waits for them.
func (b *budget) release(n int64) {
	if n = b.counted(n); n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	for len(b.waiting) > 0 && b.free >= b.waiting[0].n {
		b.free -= b.waiting[0].n
		close(b.waiting[0].ready)
		b.waiting = b.waiting[1:]
	}
}

func (b *budget) counted(n int64) int64 {
	if n <= freeMemory {
		return 0
	}
	return min(n, b.size) // raw snappy of a very large batch is above the whole
}
