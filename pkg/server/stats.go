package server

import "sync/atomic"

// maxKeys is more than the highest API key there is; requests above it are
// never spoken.
const maxKeys = 128

// Stats are the counters of a Server since it was made. They may be read at any
// time; those without "Open", "InMemory" only grow.
type Stats struct {
	ConnectionsOpen   atomic.Int64
	ConnectionsTotal  atomic.Int64
	ConnectionsIdle   atomic.Int64 // closed because nothing moved
	ConnectionsFailed atomic.Int64 // closed because of what the client sent
	BytesIn           atomic.Int64 // frames, with their size fields
	BytesOut          atomic.Int64 // responses, with their size fields
	FileBytesOut      atomic.Int64 // of BytesOut, what came from regions of files
	HandlerErrors     atomic.Int64 // answers that could not be made or read
	Panics            atomic.Int64 // in handlers
	Evictions         atomic.Int64 // half-read requests that held memory others waited for

	requests [maxKeys]atomic.Int64
	memory   *budget
}

// Requests is how many requests of an API were handled.
func (s *Stats) Requests(key int16) int64 {
	if key < 0 || key >= maxKeys {
		return 0
	}
	return s.requests[key].Load()
}

// RequestBytesInMemory is how much of Options.RequestMemoryBytes is in use.
func (s *Stats) RequestBytesInMemory() int64 { return s.memory.used.Load() }
