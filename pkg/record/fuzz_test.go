package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// addSeeds adds batches of every codec and shape.
func addSeeds(f *testing.F) {
	for _, c := range allCodecs {
		f.Add([]byte(sample(f, Options{Codec: c}, 3)))
		f.Add([]byte(sample(f, Options{Codec: c, Producer: &Producer{ID: 1, Epoch: 2, BaseSequence: 3}, Transactional: true}, 40)))
		f.Add([]byte(sample(f, Options{Codec: c, LogAppendTime: true, AppendTime: now, BaseOffset: 9}, 2)))
	}
	f.Add([]byte(sample(f, Options{}, 0)))
	m, err := NewMarker(Marker{Type: Commit, CoordinatorEpoch: 1}, 1, 2, now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(m))
	plain := sample(f, Options{}, 3)
	f.Add([]byte(withPayload(plain, Snappy, binary.AppendUvarint(nil, 1<<31))))
	f.Add([]byte(withPayload(plain, None, []byte{0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 1, 1, 0})))
}

// bounded fails if f allocates more than a batch of this size may: the window
// of a zstd frame apart, everything is bounded by the input (ST-10).
func bounded(t *testing.T, b Batch, f func()) {
	limit := uint64(32<<20) + snappyRatio*uint64(len(b))
	if b.Codec() == Zstd {
		limit += maxWindow + 1<<20
	}
	before := allocated()
	f()
	if used := allocated() - before; used > limit {
		t.Fatalf("%d bytes allocated for a batch of %d", used, len(b))
	}
}

// repaired makes a batch of p whose length and checksum are right, so that the
// fuzzer gets to what is behind them.
func repaired(p []byte) Batch {
	if len(p) < HeaderSize {
		return nil
	}
	b := Batch(bytes.Clone(p))
	putInt32(8, int32(len(b)-LengthEnd))(b)
	b[magicOffset] = Magic
	b.SetCRC()
	return b
}

// inStoredBlocks is b with its records in an LZ4 frame of blocks of size bytes
// that are stored as they are: every record spans many.
func inStoredBlocks(b Batch, size int) Batch {
	p := binary.LittleEndian.AppendUint32(nil, lz4Magic)
	p = append(p, lz4Version|lz4Independent, 4<<4)
	p = append(p, byte(xxHash32(p[4:])>>8))
	for rest := b[HeaderSize:]; len(rest) > 0; {
		n := min(size, len(rest))
		p = binary.LittleEndian.AppendUint32(p, uint32(n)|lz4Stored)
		p = append(p, rest[:n]...)
		rest = rest[n:]
	}
	return withPayload(b, LZ4, append(p, 0, 0, 0, 0))
}

func FuzzParse(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		b, rest, err := Parse(p)
		if err != nil {
			if b != nil || rest != nil {
				t.Fatal("an error and a batch")
			}
			if !errors.Is(err, ErrShort) && !errors.Is(err, ErrCorrupt) && !errors.Is(err, kerr.InvalidRecord) {
				t.Fatal(err)
			}
			return
		}
		if len(b)+len(rest) != len(p) || len(b) != b.Size() || len(b) < HeaderSize {
			t.Fatalf("%d bytes are split into %d and %d", len(p), len(b), len(rest))
		}
		_ = b.CheckCRC()     // must not panic
		_, _ = b.Marker()    // the same
		_ = b.LastSequence() // the same
		_, _ = b.DeleteHorizon()
	})
}

// FuzzValidate holds ST-10 and ST-11: nothing panics or allocates beyond its
// bound, and a batch that is accepted can be read, searched and rebuilt.
func FuzzValidate(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		b := repaired(p)
		if b == nil {
			return
		}
		b.SetBaseOffset(0)
		putInt32(23, b.Count()-1)(b)
		b.SetCRC()
		r := &Rules{Partition: "demo-0", Now: now, BeforeMaxMs: math.MaxInt64, AfterMaxMs: math.MaxInt64, MaxBytes: math.MaxInt32}
		var v Verdict
		var err error
		bounded(t, b, func() { v, err = Validate(b, r) })
		if b.Codec() == None && len(b) < 1<<14 {
			for _, size := range []int{1, 3} {
				if other, otherErr := Validate(inStoredBlocks(b, size), r); other != v || (err == nil) != (otherErr == nil) {
					t.Fatalf("in place %+v, %v; streamed %+v, %v", v, err, other, otherErr)
				}
			}
		}
		if err != nil {
			if _, ok := errors.AsType[*InvalidError](err); !ok {
				t.Fatalf("not an InvalidError: %v", err)
			}
			return
		}
		accepted(t, b, v, r)
	})
}

// accepted checks what must hold for a batch that Validate accepted.
func accepted(t *testing.T, b Batch, v Verdict, r *Rules) {
	n, highest, first := int32(0), NoTimestamp, int32(-1)
	bytesOfRecords := 0
	for rec, err := range b.Records() {
		if err != nil {
			t.Fatalf("record %d of a valid batch: %v", n, err)
		}
		if rec.Timestamp > highest {
			highest, first = rec.Timestamp, rec.OffsetDelta
		}
		bytesOfRecords += len(rec.Key) + len(rec.Value)
		n++
	}
	if n != b.Count() || highest != v.MaxTimestamp || first != v.MaxTimestampDelta {
		t.Fatalf("%d records, max timestamp %d at %d; count %d, verdict %+v", n, highest, first, b.Count(), v)
	}
	if bytesOfRecords < 1<<20 {
		rebuilt, err := Rebuild(b, Snappy, 0)
		if err != nil {
			t.Fatalf("rebuild: %v", err)
		}
		again, err := Validate(rebuilt, r)
		if err != nil || !again.Consecutive || again.MaxTimestamp != v.MaxTimestamp {
			t.Fatalf("rebuilt: %v, %+v", err, again)
		}
	}
	Stamp(b, 5, 1, v, -1)
	if err := b.CheckCRC(); err != nil {
		t.Fatal(err)
	}
	if b.MaxTimestamp() != v.MaxTimestamp || b.BaseOffset() != 5 {
		t.Fatal("not stamped")
	}
}

func FuzzRecords(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, p []byte) {
		b := repaired(p)
		if b == nil {
			return
		}
		var n int64
		var last error
		bounded(t, b, func() {
			for r, err := range b.Records() {
				if last = err; err != nil {
					continue
				}
				n++
				if len(r.Key)+len(r.Value) > 1<<26 {
					return // allowed, but not to be gathered here
				}
			}
		})
		if n > max(int64(b.Count()), 0) || last == nil && n != int64(b.Count()) && b.Count() >= 0 && n < int64(b.Count()) {
			t.Fatalf("%d records of %d, %v", n, b.Count(), last)
		}
		for _, ts := range []int64{math.MinInt64, now, b.MaxTimestamp()} {
			offset, found, ok, err := b.FirstAtOrAfterFrom(ts, b.BaseOffset())
			if ok && (found < ts || offset < b.BaseOffset() || err != nil) {
				t.Fatalf("search for %d: %d at %d, %v", ts, found, offset, err)
			}
		}
	})
}
