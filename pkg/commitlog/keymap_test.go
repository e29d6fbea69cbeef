package commitlog

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// ST-42: the map is a map, also beyond its bound, and bounded in memory up to it.
func TestKeyMapKnowsTheLatestOffset(t *testing.T) {
	for _, most := range []int{1, 3, 1000, 5000} {
		m, want := NewKeyMap(most), map[string]int64{}
		for _, expected := range []int64{10_000, 20} {
			m.reset(expected, false)
			for offset := range int64(10_000) {
				if m.full() != (len(want) >= most) {
					t.Fatalf("full with %d of %d keys: %v", len(want), most, m.full())
				}
				key := fmt.Sprint("key", rand.IntN(3000))
				before, has := want[key]
				if got := m.put([]byte(key), offset); has && got != before || !has && got != -1 {
					t.Fatalf("most %d: %s at %d supersedes %d, not %d", most, key, offset, got, before)
				}
				want[key] = offset
			}
			for i := range 3200 {
				key := fmt.Sprint("key", i)
				at, ok := m.latest([]byte(key))
				if w, has := want[key]; ok != has || ok && at != w {
					t.Fatalf("most %d: %s: %d, %v, want %d, %v", most, key, at, ok, w, has)
				}
			}
			if !m.whole() || m.next() {
				t.Fatal("the map was confined")
			}
			clear(want)
		}
	}
}

func TestKeyMapIsBounded(t *testing.T) {
	const most = 100_000
	m := NewKeyMap(most)
	m.reset(1<<40, false)
	for i := 0; !m.full(); i++ {
		m.put(fmt.Append(nil, i), int64(i))
	}
	if m.count != most || len(m.slots) > most*5/4+2 {
		t.Errorf("%d keys take %d slots", m.count, len(m.slots))
	}
}

// ST-42: a map that is too small has each key in one of its rounds, in no more memory than its bound.
func TestKeyMapGoesThroughKeysInRounds(t *testing.T) {
	for most, rounds := range map[int]int{1000: 8, 300: 30, 50: 200, 5000: 1} {
		m, latest := NewKeyMap(most), map[string]int64{}
		m.reset(6_000, true)
		n, known := 0, 0
		for more := true; more; more = m.next() {
			n++
			for offset := range int64(6_000) {
				m.put(fmt.Append(nil, offset*7%4001), offset)
				if m.count > most {
					t.Fatalf("%d keys, where %d fit", m.count, most)
				}
			}
			for offset := range int64(6_000) {
				key := fmt.Sprint(offset * 7 % 4001)
				if at, ok := m.latest([]byte(key)); ok {
					latest[key] = at
				}
			}
			known += m.count
		}
		if len(m.slots) > max(most*5/4+2, leastSlots) {
			t.Errorf("most %d: %d slots", most, len(m.slots))
		}
		want := map[string]int64{}
		for offset := range int64(6_000) {
			want[fmt.Sprint(offset*7%4001)] = offset
		}
		if !maps.Equal(latest, want) || known != len(want) {
			t.Errorf("most %d: %d keys of %d, each once: %d", most, len(latest), len(want), known)
		}
		if n > rounds {
			t.Errorf("most %d: %d rounds for %d keys", most, n, len(want))
		}
	}
}

func BenchmarkKeyMap(b *testing.B) {
	m := NewKeyMap(1 << 20)
	m.reset(1<<20, true)
	key, i := []byte("user-00000000"), 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		for n, d := i%1_000_000, len(key)-1; n > 0; n, d = n/10, d-1 {
			key[d] = byte('0' + n%10)
		}
		m.put(key, int64(i))
	}
}
