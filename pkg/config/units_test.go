package config

import (
	"strconv"
	"testing"
	"time"
)

func TestSizesTakeBinarySuffixes(t *testing.T) {
	for in, want := range map[string]string{"0": "0", "1048588": "1048588", "-1": "-1", "4KiB": "4096", "128 MiB": "134217728", "1GiB": "1073741824"} {
		if got, err := plainBytes(in); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "MiB", "1MB", "1k", "-1KiB", "1.5MiB", "9223372036854775807KiB", "0x10", "1_000"} {
		if got, err := plainBytes(in); err == nil {
			t.Errorf("%q was read as %s", in, got)
		}
	}
}

func FuzzSizes(f *testing.F) {
	f.Add("128MiB")
	f.Fuzz(func(t *testing.T, v string) {
		plain, err := plainBytes(v)
		if err != nil {
			return
		}
		if _, err := strconv.ParseInt(plain, 10, 64); err != nil {
			t.Fatalf("%q gave %q, which is no number", v, plain)
		}
		again, err := plainBytes(formatBytes(plain))
		n, _ := strconv.ParseInt(plain, 10, 64)
		m, _ := strconv.ParseInt(again, 10, 64)
		if err != nil || n != m {
			t.Fatalf("%q: %s formats as %s, which is %s, %v", v, plain, formatBytes(plain), again, err)
		}
	})
}

func TestDurationsNeedAUnit(t *testing.T) {
	if d, err := parseDuration("1m30s"); d != 90*time.Second || err != nil {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := parseDuration("500"); err == nil || err.Error() != "a duration needs a unit, such as 500ms" {
		t.Errorf("%v", err)
	}
}
