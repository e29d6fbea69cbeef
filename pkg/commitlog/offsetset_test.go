package commitlog

import (
	"math/rand/v2"
	"testing"
)

// A set of offsets is a set, of those far apart too.
func TestOffsetSetIsASet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var s offsetSet
	for _, span := range []int64{100, 5000, 1 << 40} {
		s.reset()
		want := map[int64]bool{}
		for range 20_000 {
			offset := rng.Int64N(span)
			if s.has(offset) != want[offset] {
				t.Fatalf("span %d: offset %d: %v", span, offset, s.has(offset))
			}
			if rng.IntN(4) == 0 {
				s.add(offset)
				want[offset] = true
			}
		}
		for offset := range want {
			if !s.has(offset) {
				t.Fatalf("span %d: offset %d is not there", span, offset)
			}
		}
		if least := len(want) / pageOffsets * pageBytes; s.bytes() < least {
			t.Errorf("%d offsets in %d bytes", len(want), s.bytes())
		}
	}
}
