package history_test

import "testing"

// A value is its record's alone.
func TestValuesSayWhoseTheyAre(t *testing.T) {
	h, one, two, other := fixture(t)
	seen := map[string]bool{}
	for _, v := range logOf(one, two, other, h.Send("a", 1, 1, 2, -1)) {
		if seen[string(v)] || len(v) > 200 {
			t.Errorf("%q", v)
		}
		seen[string(v)] = true
	}
}
