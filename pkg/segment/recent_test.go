package segment

import "testing"

func TestRecentFindsOnlyWhatItIsSureOf(t *testing.T) {
	r, end := new(recent), int64(0)
	for i := range int64(40) { // offsets 10i to 10i+9, 100 bytes each
		r.add(end, 10*i+9)
		end += 100
		for offset := int64(-1); offset < 10*i+12; offset++ {
			pos, size, ok := r.find(offset, end)
			want := max(offset, 0) / 10
			if sure := want > i-recentBatches+1 || i < recentBatches; ok != sure {
				t.Fatalf("%d batches, offset %d: sure %v", i+1, offset, ok)
			}
			if wantSize := 100; ok && want <= i && (pos != want*100 || size != wantSize) {
				t.Fatalf("%d batches, offset %d: %d bytes at %d", i+1, offset, size, pos)
			}
			if ok && want > i && (pos != end || size != 0) {
				t.Fatalf("%d batches, offset %d: %d bytes at %d, want the end", i+1, offset, size, pos)
			}
		}
	}
}
