package crashfs

import (
	"io"
	"slices"
)

// sectorSize is what a disk writes as a whole or not at all, in bytes.
const sectorSize = 512

// versionsMax bounds how many earlier states of one sector are kept between
// two syncs: the durable one and the latest of the others.
const versionsMax = 8

// content is the bytes of a file, and what a power cut may leave of them.
type content struct {
	data []byte // what a reader sees

	// dirty has, for each sector written since the last sync, its earlier
	// states, oldest first: the first is the one on the disk.
	dirty map[int64][][]byte
	// lost has what is on the disk of the sectors whose data a failed sync
	// dropped, or may have dropped: it failed at one of them. A reader sees data
	// all the same, and no later sync writes it.
	lost map[int64][]byte

	durableSize      int64 // the length at the last sync
	minSize, maxSize int64 // the shortest and longest since
}

// readAt is io.ReaderAt.
func (c *content) readAt(p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if off >= int64(len(c.data)) {
		return 0, io.EOF
	}
	n := copy(p, c.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// writeAt copies p into the file.
func (c *content) writeAt(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	end := off + int64(len(p))
	c.touch(off, end)
	if end > int64(len(c.data)) {
		c.resize(end)
	}
	copy(c.data[off:], p)
}

// truncate cuts the file or extends it with zeros.
func (c *content) truncate(size int64) {
	if old := int64(len(c.data)); size < old {
		c.touch(size, old)
	}
	c.resize(size)
}

func (c *content) resize(size int64) {
	old := int64(len(c.data))
	if size > old {
		c.data = slices.Grow(c.data, int(size-old))[:size]
		clear(c.data[old:]) // the capacity may hold what was truncated
	}
	c.data = c.data[:size]
	c.minSize = min(c.minSize, size)
	c.maxSize = max(c.maxSize, size)
}

// touch keeps the states of the sectors in [from, to) before they change.
func (c *content) touch(from, to int64) {
	if c.dirty == nil {
		c.dirty = map[int64][][]byte{}
	}
	for s := from / sectorSize; s*sectorSize < to; s++ {
		states := c.dirty[s]
		if onDisk, ok := c.lost[s]; ok {
			// The page is written whole again, with what was dropped.
			states = append(states, onDisk)
			delete(c.lost, s)
		}
		if len(states) == versionsMax {
			states = slices.Delete(states, 1, 2)
		}
		c.dirty[s] = append(states, c.sector(s))
	}
}

// sector is a copy of sector s as a reader sees it, with zeros beyond the end.
func (c *content) sector(s int64) []byte {
	b := make([]byte, sectorSize)
	if at := s * sectorSize; at < int64(len(c.data)) {
		copy(b, c.data[at:])
	}
	return b
}

// sync makes what a reader sees durable, but for what a failed sync dropped.
func (c *content) sync() {
	c.dirty = nil
	size := int64(len(c.data))
	c.durableSize, c.minSize, c.maxSize = size, size, size
}

// drop is a failed sync: the system marks the dirty pages clean although the
// disk has not got them. A reader still sees them, the next sync returns nil,
// and a power cut shows that they were never written.
func (c *content) drop() {
	if c.lost == nil {
		c.lost = map[int64][]byte{}
	}
	for s, states := range c.dirty {
		c.lost[s] = states[0]
	}
	c.dirty = nil
}

// clone is an independent copy with the same unsynced state. The states of
// sectors are never written, so both may have them.
func (c *content) clone() *content {
	n := *c
	n.data = slices.Clone(c.data)
	n.lost = cloneMap(c.lost)
	n.dirty = cloneMap(c.dirty)
	for s, states := range n.dirty {
		n.dirty[s] = slices.Clone(states)
	}
	return &n
}

// settle turns the content into what a power cut leaves of it.
func (c *content) settle(f fate) {
	size := f.size(c.durableSize, int64(len(c.data)), c.minSize, c.maxSize)
	after := make([]byte, size)
	copy(after, c.data)
	put := func(s int64, state []byte) {
		if at := s * sectorSize; at < size {
			copy(after[at:], state)
		}
	}
	for _, s := range sortedKeys(c.dirty) {
		if state := f.sector(c.dirty[s]); state != nil {
			put(s, state)
		}
	}
	lost := f.lost()
	for _, s := range sortedKeys(c.lost) {
		if !lost.survives() { // it was written before the sync failed at another
			put(s, c.lost[s])
		}
	}
	*c = content{data: after}
	c.sync()
}
