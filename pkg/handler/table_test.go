package handler

import (
	"slices"
	"testing"
)

// advertised is what a client is told, written out: the ranges of Kafka 4.4.
var advertised = [][3]int16{
	{0, 0, 13}, {1, 4, 18}, {2, 1, 11}, {3, 0, 13}, {8, 2, 10}, {9, 1, 10}, {10, 0, 6},
	{11, 0, 9}, {12, 0, 4}, {13, 0, 5}, {14, 0, 5}, {15, 0, 6}, {16, 0, 5}, {18, 0, 5},
	{19, 2, 7}, {20, 1, 6}, {21, 0, 2}, {22, 0, 5}, {23, 2, 4},
	{24, 0, 5}, {25, 0, 4}, {26, 0, 5}, {27, 1, 2}, {28, 0, 6}, {32, 1, 4}, {33, 0, 2},
	{35, 1, 5}, {37, 0, 3}, {42, 0, 3}, {44, 0, 1}, {47, 0, 0}, {60, 0, 2},
	{61, 0, 0}, {65, 0, 0}, {66, 0, 2}, {74, 0, 1}, {75, 0, 0},
}

// ST-15: Produce v0 to v2 are advertised but not accepted (KAFKA-18659); nothing else differs.
func TestLookupAcceptsWhatIsAdvertised(t *testing.T) {
	h := New(Deps{})
	var overlapping []int16
	for key := int16(-1); key < 200; key++ {
		spec, ok := h.Lookup(key)
		i := slices.IndexFunc(advertised, func(a [3]int16) bool { return a[0] == key })
		if ok != (i >= 0) {
			t.Fatalf("key %d: spoken %v", key, ok)
		}
		if !ok {
			continue
		}
		if spec.AdvertMin != advertised[i][1] || spec.Max != advertised[i][2] || spec.Key != key {
			t.Fatalf("%+v, want %v", spec, advertised[i])
		}
		if spec.Min != spec.AdvertMin && (key != 0 || spec.Min != 3) {
			t.Fatalf("%+v accepts other versions than it advertises", spec)
		}
		if spec.Overlap {
			overlapping = append(overlapping, key)
		}
		if spec.AnyVersion != (key == 18) {
			t.Fatalf("%+v", spec)
		}
	}
	if !slices.Equal(overlapping, []int16{0}) {
		t.Fatalf("keys %v overlap, want Produce alone", overlapping)
	}
}
