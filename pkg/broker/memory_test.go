package broker

import "testing"

func TestParseMemoryLimit(t *testing.T) {
	for s, want := range map[string]int64{
		"max\n":                 0,
		"268435456\n":           268435456,
		"9223372036854771712\n": 0, // cgroup version 1 without a limit
		"":                      0,
		"-1":                    0,
	} {
		if got := parseMemoryLimit(s); got != want {
			t.Errorf("parseMemoryLimit(%q) = %d, want %d", s, got, want)
		}
	}
}

// FX-8: REQUEST_MEMORY_BYTES is by default a quarter of the control group's limit, or of 1 GiB.
func TestRequestMemoryDefaultsToAQuarterOfTheLimit(t *testing.T) {
	for _, c := range []struct{ set, limit, want int64 }{
		{5, 1 << 30, 5}, {0, 512 << 20, 128 << 20}, {0, 0, 256 << 20},
	} {
		if got := requestMemory(c.set, c.limit); got != c.want {
			t.Errorf("requestMemory(%d, %d) = %d, want %d", c.set, c.limit, got, c.want)
		}
	}
}
