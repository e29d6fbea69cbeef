package commitlog

import (
	"runtime"
	"sync/atomic"
)

// A mark is how far the log goes, at one instant.
type mark struct {
	Offsets
	base int64 // of the newest segment
	size int64 // its length at End, in bytes: readers stop there
}

// marks is a mark that is read without a lock and never seen half-changed: a
// sequence lock. Odd means that a change is under way. Writers hold Log.mu.
//
// A pointer to an immutable mark would do, too, at an allocation for each append.
type marks struct {
	sequence                    atomic.Uint64
	start, stable, end, flushed atomic.Int64
	base, size                  atomic.Int64
}

func (m *marks) load() mark {
	for {
		before := m.sequence.Load()
		if before%2 == 0 {
			end := m.end.Load()
			v := mark{
				Offsets: Offsets{
					LogStart: m.start.Load(), LastStable: m.stable.Load(), HighWatermark: end, End: end, Flushed: m.flushed.Load(),
				},
				base: m.base.Load(), size: m.size.Load(),
			}
			if m.sequence.Load() == before {
				return v
			}
		}
		runtime.Gosched()
	}
}

// store publishes a mark. The high watermark is the end: there is one replica.
func (m *marks) store(v mark) {
	m.sequence.Add(1)
	m.start.Store(v.LogStart)
	m.stable.Store(v.LastStable)
	m.end.Store(v.End)
	m.flushed.Store(v.Flushed)
	m.base.Store(v.base)
	m.size.Store(v.size)
	m.sequence.Add(1)
}
