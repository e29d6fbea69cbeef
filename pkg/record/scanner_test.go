package record

import (
	"encoding/binary"
	"math"
	"testing"
)

// Records that span blocks, down to one byte each, are read as those in place.
func TestRecordsMaySpanBlocks(t *testing.T) {
	plain := sample(t, Options{}, 200)
	want := mustValidate(t, plain)
	for _, size := range []int{1, 2, 3, 10, 61, 300, 1 << 16} {
		b := inStoredBlocks(plain, size)
		equalRecords(t, b, sampleRecords(200))
		if got := mustValidate(t, b); got != want {
			t.Errorf("blocks of %d: %+v, want %+v", size, got, want)
		}
		n, err := Rebuild(b, None, 0)
		if err != nil {
			t.Fatal(err)
		}
		equalRecords(t, n, sampleRecords(200))
	}
}

// The varints agree with encoding/binary, in place and byte by byte.
func TestVarints(t *testing.T) {
	for _, v := range []int64{0, -1, 1, 63, 64, -64, -65, 8191, 8192, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64} {
		p := binary.AppendVarint(nil, v)
		s := scanner{buf: p}
		if got, ok := s.varlong(); !ok || got != v {
			t.Errorf("varlong %d: %d, %v", v, got, ok)
		}
		if got, i := varlongAt(p, 0); i != len(p) || got != v {
			t.Errorf("varlongAt %d: %d, %d", v, got, i)
		}
		if int64(int32(v)) != v {
			continue
		}
		s = scanner{buf: p}
		if got, ok := s.varint(); !ok || got != int32(v) {
			t.Errorf("varint %d: %d, %v", v, got, ok)
		}
		if got, i := varintAt(p, 0); i != len(p) || got != int32(v) {
			t.Errorf("varintAt %d: %d, %d", v, got, i)
		}
		for cut := range p {
			if _, i := varintAt(p[:cut], 0); i != 0 {
				t.Errorf("%d cut to %d bytes is read", v, cut)
			}
		}
	}
	if _, i := varintAt([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0}, 0); i != 0 {
		t.Error("a varint of 6 bytes is read")
	}
	if _, i := varlongAt(append(make([]byte, 0, 11), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0), 0); i != 0 {
		t.Error("a varlong of 11 bytes is read")
	}
}
