package server

import "testing"

func TestBuffersHaveTheLengthAskedFor(t *testing.T) {
	for _, n := range []int{0, 1, 511, 512, 513, 4096, 1 << 20, 1<<23 - 1, 1 << 23, 1<<23 + 1} {
		for range 2 {
			buf := getBuffer(n)
			if len(buf.b) != n {
				t.Errorf("%d bytes for %d", len(buf.b), n)
			}
			buf.free()
		}
	}
}

func TestGrowingABufferKeepsItsBeginning(t *testing.T) {
	buf := getBuffer(600)
	copy(buf.b, "beginning")
	buf = buf.grow(1000, 9)
	buf = buf.grow(5000, 9)
	if len(buf.b) != 5000 || string(buf.b[:9]) != "beginning" {
		t.Errorf("%d bytes, %q", len(buf.b), buf.b[:9])
	}
	buf.free()
}

func TestABufferThatWasReplacedIsNotPooled(t *testing.T) {
	buf := getBuffer(512)
	buf.b = make([]byte, 100)
	buf.free()
	for range 100 {
		if got := getBuffer(512); len(got.b) != 512 {
			t.Fatalf("the pool gave %d bytes for 512", len(got.b))
		}
	}
}
