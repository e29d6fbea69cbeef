package record

import (
	"reflect"
	"testing"
)

// ST-13: every level that the topic configs allow makes batches that clients read.
func TestEveryLevelIsReadable(t *testing.T) {
	levels := map[Codec][]int{
		Gzip: {-1, 0, 1, 5, 9}, Snappy: {0}, LZ4: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17}, Zstd: {-131072, -1, 0, 1, 3, 7, 19, 22},
	}
	for c, all := range levels {
		for _, level := range all {
			b := sample(t, Options{Codec: c, Level: level}, 500)
			mustValidate(t, b)
			if !reflect.DeepEqual(kgoRecords(t, b), sampleRecords(500)) {
				t.Errorf("%s level %d: franz-go reads other records", c, level)
			}
		}
	}
}

func TestLevelsOutOfRangeAreErrors(t *testing.T) {
	for c, levels := range map[Codec][]int{Gzip: {-2, 10}, LZ4: {-1, 18}, Zstd: {23, -131073}} {
		for _, level := range levels {
			if _, err := NewBuilder(Options{Codec: c, Level: level}).Batch(); err == nil {
				t.Errorf("%s has a level %d", c, level)
			}
		}
	}
	if _, err := NewBuilder(Options{Codec: 6}).Batch(); err == nil {
		t.Error("there is a codec 6")
	}
}

// ST-13: a higher level does more.
func TestLevelsDiffer(t *testing.T) {
	for c, pair := range map[Codec][2]int{Gzip: {1, 9}, LZ4: {9, 17}, Zstd: {1, 19}} {
		low, high := sample(t, Options{Codec: c, Level: pair[0]}, 1), sample(t, Options{Codec: c, Level: pair[1]}, 1)
		build := func(level int) int {
			b := NewBuilder(Options{Codec: c, Level: level})
			if err := b.Append(now, nil, compressible(200_000)); err != nil {
				t.Fatal(err)
			}
			batch, err := b.Batch()
			if err != nil {
				t.Fatal(err)
			}
			return len(batch)
		}
		if a, b := build(pair[0]), build(pair[1]); a <= b {
			t.Errorf("%s: level %d makes %d bytes, level %d makes %d", c, pair[0], a, pair[1], b)
		}
		equalRecords(t, low, sampleRecords(1))
		equalRecords(t, high, sampleRecords(1))
	}
}
