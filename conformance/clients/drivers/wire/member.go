package wire

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
)

// Member is what a driver's consumer owns and has read. Its methods write the events.
type Member struct {
	out *output

	mu    sync.Mutex
	owned []int
	next  map[int]int64 // per owned partition: the offset after the last record that was written
}

// Assigned adds partitions to the assignment.
func (m *Member) Assigned(partitions []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owned = slices.Compact(slices.Sorted(slices.Values(append(m.owned, partitions...))))
	m.write(Line{Event: "assigned", Partitions: partitions, Owned: m.owned})
}

// Revoked takes partitions out of the assignment, before the client lets go of them; lost says that the membership is gone already.
func (m *Member) Revoked(partitions []int, lost bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owned = slices.DeleteFunc(m.owned, func(p int) bool { return slices.Contains(partitions, p) })
	for _, p := range partitions {
		delete(m.next, p)
	}
	m.write(Line{Event: "revoked", Partitions: partitions, Owned: m.owned, Lost: lost})
}

// RevokedAll gives up the whole assignment, as an eager client does.
func (m *Member) RevokedAll() {
	if owned := m.Owned(); len(owned) > 0 {
		m.Revoked(owned, false)
	}
}

// Record writes a record and moves the position of its partition behind it. A record of a partition that is not owned (any more) is passed
// over: the client had fetched it before it let go.
func (m *Member) Record(partition int, offset int64, key, value, header string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.owned, partition) {
		return
	}
	m.next[partition] = offset + 1
	m.write(Line{Event: "record", Partition: partition, Offset: offset, Key: key, Value: value, Header: header})
}

// Error tells of an error that does not end the consumer.
func (m *Member) Error(err error) { m.write(Line{Event: "error", Error: err.Error()}) }

// Closed tells that the consumer ended by itself.
func (m *Member) Closed(err error) { m.write(Line{Event: "closed", Error: err.Error()}) }

// Owned is the assignment.
func (m *Member) Owned() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.owned)
}

// Positions are those of the owned partitions that a record came from.
func (m *Member) Positions() map[int]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.next)
}

// write ends the process when nobody reads its output any more.
func (m *Member) write(l Line) {
	if err := m.out.write(l); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
