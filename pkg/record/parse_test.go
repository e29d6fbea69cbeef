package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

var allCodecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

// sample builds a batch of n records with every shape of key, value and header.
func sample(tb testing.TB, o Options, n int) Batch {
	tb.Helper()
	b := NewBuilder(o)
	for _, r := range sampleRecords(n) {
		if err := b.Add(r); err != nil {
			tb.Fatal(err)
		}
	}
	batch, err := b.Batch()
	if err != nil {
		tb.Fatal(err)
	}
	return batch
}

func sampleRecords(n int) []Record {
	keys := [][]byte{[]byte("key"), nil, {}}
	values := [][]byte{bytes.Repeat([]byte("value "), 50), {}, nil, []byte("v")}
	var all []Record
	for i := range n {
		r := Record{OffsetDelta: int32(i), Timestamp: now + int64(i%7) - 3, Key: keys[i%3], Value: values[i%4]}
		if i%5 == 0 {
			r.Headers = []Header{{Key: "trace", Value: []byte("abc")}, {Key: "", Value: nil}, {Key: "empty", Value: []byte{}}}
		}
		all = append(all, r)
	}
	return all
}

const now int64 = 1_700_000_000_000

func TestParseSplitsBatches(t *testing.T) {
	first, second := sample(t, Options{}, 3), sample(t, Options{Codec: Zstd}, 9)
	b, rest, err := Parse(append(bytes.Clone(first), second...))
	if err != nil || !bytes.Equal(b, first) {
		t.Fatalf("first batch: %v", err)
	}
	b, rest, err = Parse(rest)
	if err != nil || !bytes.Equal(b, second) || len(rest) != 0 {
		t.Fatalf("second batch: %v, %d bytes left", err, len(rest))
	}
	if cap(b) != len(b) {
		t.Error("an append to the batch would overwrite what follows it")
	}
}

func TestParseOfACutBatchIsShort(t *testing.T) {
	b := sample(t, Options{}, 3)
	for n := range b {
		if _, _, err := Parse(b[:n]); !errors.Is(err, ErrShort) {
			t.Fatalf("first %d bytes: %v", n, err)
		}
	}
}

// ST-11: lengths and magics that Kafka refuses have its codes.
func TestParseRefusesBadLengthsAndMagics(t *testing.T) {
	good := sample(t, Options{}, 3)
	for _, c := range []struct {
		name   string
		length int32
		magic  byte
		want   error
	}{
		{"negative length", -1, 2, kerr.CorruptMessage},
		{"below a v0 message", 13, 2, kerr.CorruptMessage},
		{"below a v0 message, format v0", 13, 0, kerr.CorruptMessage},
		{"a v0 message", 14, 0, kerr.InvalidRecord},
		{"below a v2 header", 48, 2, kerr.CorruptMessage},
		{"least", 49, 2, nil},
		{"unknown magic", 60, 3, kerr.CorruptMessage},
		{"negative magic", 60, 0xff, kerr.CorruptMessage},
		{"format v0", 60, 0, kerr.InvalidRecord},
		{"format v1", 60, 1, kerr.InvalidRecord},
		{"beyond the buffer", 1 << 30, 2, ErrShort},
		{"largest", 1<<31 - 1, 2, ErrShort},
	} {
		b := bytes.Clone(good)
		binary.BigEndian.PutUint32(b[8:], uint32(c.length))
		b[16] = c.magic
		if _, _, err := Parse(b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestCheckCRCFindsEveryChangedByte(t *testing.T) {
	b := sample(t, Options{}, 3)
	if err := b.CheckCRC(); err != nil {
		t.Fatal(err)
	}
	for i := 17; i < len(b); i++ {
		b[i] ^= 0x40
		if err := b.CheckCRC(); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d: %v", i, err)
		}
		b[i] ^= 0x40
	}
	if err := b[:len(b)-1].CheckCRC(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("cut batch: %v", err)
	}
}
