package commitlog

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// ST-42: the map is a map, also beyond its bound, and bounded in memory up to it.
func TestKeyMapKnowsTheLatestOffset(t *testing.T) {
	for _, most := range []int{1, 3, 1000, 5000} {
		m, want := NewKeyMap(most), map[string]int64{}
		for range 2 {
			for offset := range int64(10_000) {
				if m.full() != (len(want) >= most) {
					t.Fatalf("full with %d of %d keys: %v", len(want), most, m.full())
				}
				key := fmt.Sprint("key", rand.IntN(3000))
				m.put([]byte(key), offset)
				want[key] = offset
			}
			for i := range 3200 {
				key := fmt.Sprint("key", i)
				at, ok := m.latest([]byte(key))
				if w, has := want[key]; ok != has || ok && at != w {
					t.Fatalf("most %d: %s: %d, %v, want %d, %v", most, key, at, ok, w, has)
				}
			}
			m.reset()
			clear(want)
		}
	}
}

func TestKeyMapIsBounded(t *testing.T) {
	const most = 100_000
	m := NewKeyMap(most)
	for i := 0; !m.full(); i++ {
		m.put(fmt.Append(nil, i), int64(i))
	}
	if m.count != most || len(m.slots) > most*5/4+2 {
		t.Errorf("%d keys take %d slots", m.count, len(m.slots))
	}
}

func BenchmarkKeyMap(b *testing.B) {
	m := NewKeyMap(1 << 20)
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
