package commitlog

import (
	"hash/maphash"
	"math"
	"math/bits"
	"unsafe"
)

// A KeyMap is the latest offset of each key of a pass, bounded in memory: 24
// bytes a key and a quarter more, whatever the keys' lengths (ST-42; Kafka's SkimpyOffsetMap). Once it is full it confines
// itself to a range of hashes, so that the keys are gone through in several rounds, a part of them in each.
//
// It knows keys by a hash of 128 bits, seeded anew in each process. Two
// different keys among n that share one have a chance of n*n / 2^129: below 4e-26 for 5 million. Then
// the latest record of one of them would be lost.
type KeyMap struct {
	seeds     [2]maphash.Seed
	most      int  // keys that fit
	expected  int  // how many keys there may be in the pass
	mostDead  int  // what the offsets of superseded records may take in memory beside it, in bytes
	confines  bool // it confines itself; otherwise it takes what comes
	count     int
	slots     []keySlot
	low, high uint64 // keys whose first half of the hash lies in between, or is one of them, are taken
}

// A keySlot is free while it has no next. Its place goes by the second half of its hash, since the first may be confined.
type keySlot struct {
	hash [2]uint64
	next int64 // offset of the key's latest record plus 1
}

const (
	leastSlots = 1 << 10
	// growth is by how much slots grow at a time, so that one with little garbage becomes one of full size.
	growth = 16
	// finest is the least share of the hashes that one round of a pass is planned to take: a sixteenth.
	finest = math.MaxUint64 / 16
	// mostDead has room for the offsets of 80 million records, if they are close together.
	mostDead = 16 << 20
)

// NewKeyMap makes a map for so many keys; its memory grows with those that it gets.
func NewKeyMap(most int) *KeyMap {
	return &KeyMap{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, most: max(most, 1), mostDead: mostDead, high: math.MaxUint64}
}

// reset forgets all keys and keeps the memory. As many as expected may come; rounds says whether a part of them will do
// where they don't fit.
func (m *KeyMap) reset(expected int64, rounds bool) {
	m.clear()
	m.confines = rounds
	m.expected = int(min(expected, int64(m.most)))
	m.low, m.high = 0, math.MaxUint64
}

func (m *KeyMap) clear() {
	clear(m.slots)
	m.count = 0
}

// whole says whether the map takes all keys.
func (m *KeyMap) whole() bool { return m.low == 0 && m.high == math.MaxUint64 }

// Bytes is the memory that the map holds.
func (m *KeyMap) Bytes() int { return len(m.slots) * int(unsafe.Sizeof(keySlot{})) }

// full says whether another key would have the map grow beyond its bound, or confined to less than a round should take. The
// caller stops at a batch's end, so that every pass gets on.
func (m *KeyMap) full() bool { return m.count >= m.most && (!m.confines || (m.high-m.low)/2 < finest) }

// next confines the map to the next range of hashes, as large a one as what it has had lets expect to fit; false if there is none.
func (m *KeyMap) next() bool {
	if m.high == math.MaxUint64 {
		return false
	}
	width := max(float64(m.high-m.low)*0.95*float64(m.most)/float64(max(m.count, 1)), finest/2)
	m.clear()
	m.low, m.high = m.high+1, math.MaxUint64
	if left := float64(m.high - m.low); width < left {
		m.high = m.low + uint64(width)
	}
	return true
}

// put notes a record of a key; offsets ascend. superseded is the offset of the key's record before, -1 if there is none,
// or the key is not among those that the map takes.
func (m *KeyMap) put(key []byte, offset int64) (superseded int64) {
	hash := [2]uint64{maphash.Bytes(m.seeds[0], key)}
	if !m.takes(hash[0]) {
		return -1
	}
	hash[1] = maphash.Bytes(m.seeds[1], key)
	if m.count*5 >= len(m.slots)*4 {
		m.grow()
	}
	s := m.slot(hash)
	superseded = s.next - 1
	if s.next == 0 {
		for m.confines && m.count >= m.most && m.low < m.high {
			if m.confine(); !m.takes(hash[0]) {
				return -1
			}
			s = m.slot(hash)
		}
		s.hash = hash
		m.count++
	}
	s.next = offset + 1
	return superseded
}

func (m *KeyMap) takes(hash uint64) bool { return hash >= m.low && hash <= m.high }

// confine halves the range of hashes, and forgets the keys that are outside.
func (m *KeyMap) confine() {
	m.high = m.low + (m.high-m.low)/2
	old := m.slots
	// In place: what stays has to be where its hash belongs among what stays, which a slot before a free one is.
	start := 0
	for start < len(old) && old[start].next > 0 {
		start++
	}
	m.count = 0
	for i := range old {
		s := &old[(start+i)%len(old)]
		if s.next == 0 {
			continue
		}
		was := *s
		*s = keySlot{}
		if m.takes(was.hash[0]) {
			*m.slot(was.hash) = was
			m.count++
		}
	}
}

// latest is the offset of the key's latest record; ok is false for a key that the map does not know.
func (m *KeyMap) latest(key []byte) (offset int64, ok bool) {
	if m.count == 0 {
		return 0, false
	}
	hash := [2]uint64{maphash.Bytes(m.seeds[0], key)}
	if !m.takes(hash[0]) {
		return 0, false
	}
	hash[1] = maphash.Bytes(m.seeds[1], key)
	s := m.slot(hash)
	return s.next - 1, s.next > 0
}

// slot is the place of a hash: the one that has it, or the free one where it belongs.
func (m *KeyMap) slot(hash [2]uint64) *keySlot {
	at, _ := bits.Mul64(hash[1], uint64(len(m.slots)))
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

// grow makes the map larger, but not beyond what the keys take that are expected or, if that was wrong, that fit.
func (m *KeyMap) grow() {
	size := max(leastSlots, 2*len(m.slots))
	for _, keys := range [2]int{m.expected, m.most} {
		if bound := keys + keys/4 + 2; len(m.slots) < bound {
			size = min(max(leastSlots, growth*len(m.slots)), max(leastSlots, bound))
			break
		}
	}
	old := m.slots
	m.slots = make([]keySlot, size)
	for i := range old {
		if old[i].next > 0 {
			*m.slot(old[i].hash) = old[i]
		}
	}
}
