package commitlog

import (
	"hash/maphash"
	"math/bits"
)

// A KeyMap is the latest offset of each key of a pass, bounded in memory: 24
// bytes a key and a quarter more, whatever the keys' lengths (ST-42; Kafka's SkimpyOffsetMap).
//
// It knows keys by a hash of 128 bits, seeded anew in each process. Two
// different keys among n that share one have a chance of n*n / 2^129: below 4e-26 for 5 million. Then
// the latest record of one of them would be lost.
type KeyMap struct {
	seeds [2]maphash.Seed
	most  int // keys that fit
	count int
	slots []keySlot
}

// A keySlot is free while it has no next.
type keySlot struct {
	hash [2]uint64
	next int64 // offset of the key's latest record plus 1
}

const leastSlots = 1 << 10

// NewKeyMap makes a map for so many keys; its memory grows with those that it gets.
func NewKeyMap(most int) *KeyMap {
	return &KeyMap{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, most: max(most, 1)}
}

// reset forgets all keys and keeps the memory.
func (m *KeyMap) reset() {
	clear(m.slots)
	m.count = 0
}

// full says whether a key that is not known might not fit any more.
func (m *KeyMap) full() bool { return m.count >= m.most }

// put notes a record of a key; offsets ascend. It takes keys beyond the bound, too: the
// caller stops at a batch's end, so that every pass gets on.
func (m *KeyMap) put(key []byte, offset int64) {
	if m.count*5 >= len(m.slots)*4 {
		m.grow()
	}
	hash := m.hash(key)
	s := m.slot(hash)
	if s.next == 0 {
		s.hash = hash
		m.count++
	}
	s.next = offset + 1
}

// latest is the offset of the key's latest record; ok is false for a key that has none in the pass.
func (m *KeyMap) latest(key []byte) (offset int64, ok bool) {
	if m.count == 0 {
		return 0, false
	}
	s := m.slot(m.hash(key))
	return s.next - 1, s.next > 0
}

func (m *KeyMap) hash(key []byte) [2]uint64 {
	return [2]uint64{maphash.Bytes(m.seeds[0], key), maphash.Bytes(m.seeds[1], key)}
}

// slot is the place of a hash: the one that has it, or the free one where it belongs.
func (m *KeyMap) slot(hash [2]uint64) *keySlot {
	at, _ := bits.Mul64(hash[0], uint64(len(m.slots)))
	for i := int(at); ; {
		s := &m.slots[i]
		if s.next == 0 || s.hash == hash {
			return s
		}
		if i++; i == len(m.slots) {
			i = 0
		}
	}
}

// grow doubles the map, but not beyond what its bound of keys takes, as long as that is enough.
func (m *KeyMap) grow() {
	size := max(leastSlots, 2*len(m.slots))
	if bound := m.most + m.most/4 + 2; len(m.slots) < bound {
		size = min(size, max(bound, leastSlots))
	}
	old := m.slots
	m.slots = make([]keySlot, size)
	for i := range old {
		if old[i].next > 0 {
			*m.slot(old[i].hash) = old[i]
		}
	}
}
