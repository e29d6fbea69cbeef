package lines

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"
)

func TestTheSameLinesOnEveryMachine(t *testing.T) {
	h := sha256.New()
	if err := Write(h, 10_000); err != nil {
		t.Fatal(err)
	}
	const want = "c32e9b8d04001c061322671e32fd075ed1978ec90554ee4abb4da034de175bdf"
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != want {
		t.Errorf("sha256 of 10,000 lines is %s, want %s", got, want)
	}
}

func TestCheckerFindsEveryFault(t *testing.T) {
	want := Slice(10)
	cases := map[string][]int{"twice": {0, 1, 1, 2}, "out of order": {0, 2, 1}, "lost": {0, 1, 2, 3, 4, 5, 6, 7, 8}}
	for name, order := range cases {
		c := NewChecker(want)
		var err error
		for _, n := range order {
			if err == nil {
				err = c.Add(0, want[n])
			}
		}
		if err == nil {
			err = c.Done()
		}
		if err == nil {
			t.Errorf("%s: not found", name)
		}
	}
	c := NewChecker(want)
	changed := bytes.Replace(want[3], []byte("req="), []byte("reQ="), 1)
	if c.Add(0, changed) == nil || c.Add(0, []byte("something else")) == nil {
		t.Error("a changed line: not found")
	}
	twice := NewChecker(want)
	if twice.Add(0, want[4]) != nil || twice.Add(1, want[4]) == nil {
		t.Error("twice, from two partitions: not found")
	}
	for n, line := range want {
		if err := c.Add(int32(n%3), line); err != nil {
			t.Error(err)
		}
	}
	if err := c.Done(); err != nil || c.Partitions() != 3 {
		t.Errorf("a perfect run: %v", err)
	}
}
