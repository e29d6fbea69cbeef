package record

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// keep copies a record out of the iteration.
func keep(r Record) Record {
	r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	var headers []Header
	for _, h := range r.Headers {
		headers = append(headers, Header{Key: h.Key, Value: bytes.Clone(h.Value)})
	}
	r.Headers = headers
	return r
}

// all collects the records of b.
func all(tb testing.TB, b Batch) []Record {
	tb.Helper()
	var got []Record
	for r, err := range b.Records() {
		if err != nil {
			tb.Fatalf("%s record %d: %v", b.Codec(), len(got), err)
		}
		got = append(got, keep(r))
	}
	return got
}

// equalRecords compares null and empty as different things.
func equalRecords(tb testing.TB, b Batch, want []Record) {
	tb.Helper()
	if got := all(tb, b); !reflect.DeepEqual(got, want) {
		tb.Fatalf("%s: the records are others: %d, want %d", b.Codec(), len(got), len(want))
	}
}

func TestRecordsAreThoseThatWereBuilt(t *testing.T) {
	for _, c := range allCodecs {
		for _, n := range []int{0, 1, 3, 4000} {
			b := sample(t, Options{Codec: c}, n)
			equalRecords(t, b, sampleRecords(n))
			if got := kgoRecords(t, b); !reflect.DeepEqual(got, sampleRecords(n)) {
				t.Errorf("%s of %d: franz-go reads others", c, n)
			}
		}
	}
}

// Records larger than a block are gathered, and the next is read from where it begins.
func TestRecordsLargerThanABlock(t *testing.T) {
	for _, c := range allCodecs {
		b := NewBuilder(Options{Codec: c})
		var want []Record
		for i, size := range []int{10, 100_000, 0, 70_000, 3 << 20, 5} {
			r := Record{OffsetDelta: int32(i), Timestamp: now, Value: compressible(size)}
			if r.Value == nil {
				r.Value = []byte{}
			}
			want = append(want, r)
			if err := b.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		batch, err := b.Batch()
		if err != nil {
			t.Fatal(err)
		}
		equalRecords(t, batch, want)
		mustValidate(t, batch)
	}
}

func TestIterationCanStopAnywhere(t *testing.T) {
	for _, c := range allCodecs {
		b := sample(t, Options{Codec: c}, 100)
		n := 0
		for _, err := range b.Records() {
			if n++; n == 10 || err != nil {
				break
			}
		}
		equalRecords(t, b, sampleRecords(100)) // with the decompressor that was left half way
	}
}

// A size that lies is an error, not an allocation.
func TestLyingRecordSizeDoesNotAllocate(t *testing.T) {
	plain := sample(t, Options{}, 1)
	lie := []byte{0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 1, 1, 0} // 2^31-1
	z := NewBuilder(Options{Codec: Zstd})
	if err := z.write(lie); err != nil {
		t.Fatal(err)
	}
	if err := z.w.finish(); err != nil {
		t.Fatal(err)
	}
	for _, b := range []Batch{withPayload(plain, None, lie), withPayload(plain, Zstd, z.out.Bytes()[HeaderSize:])} {
		before := allocated()
		for _, err := range b.Records() {
			if !errors.Is(err, kerr.InvalidRecord) {
				t.Errorf("%s: %v", b.Codec(), err)
			}
		}
		if used := allocated() - before; used > 4<<20 {
			t.Errorf("%s: %d bytes allocated", b.Codec(), used)
		}
	}
}

func TestTrailingBytesEndTheIterationWithAnError(t *testing.T) {
	b := sample(t, Options{}, 3)
	b = withPayload(b, None, append(b[HeaderSize:], 0))
	var last error
	n := 0
	for _, err := range b.Records() {
		if last = err; err == nil {
			n++
		}
	}
	if n != 3 || !errors.Is(last, kerr.InvalidRecord) {
		t.Errorf("%d records, then %v", n, last)
	}
}

func TestHeaderKeysThatRepeatAreNotCopied(t *testing.T) {
	b := NewBuilder(Options{})
	for range 1000 {
		if err := b.Append(now, nil, nil, Header{Key: "a long header key"}); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10, func() {
		for _, err := range batch.Records() {
			if err != nil {
				t.Fatal(err)
			}
		}
	}); n > 10 {
		t.Errorf("%v allocations", n)
	}
}

func TestTimestampSearch(t *testing.T) {
	for _, c := range allCodecs {
		b := NewBuilder(Options{Codec: c, BaseOffset: 100})
		for _, ts := range []int64{10, 30, 20, 30, 5} {
			if err := b.Append(ts, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		batch, err := b.Batch()
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []struct{ ts, from, offset, found int64 }{
			{0, 0, 100, 10}, {10, 0, 100, 10}, {11, 0, 101, 30}, {30, 0, 101, 30}, {31, 0, -1, 0},
			{0, 102, 102, 20}, {21, 102, 103, 30}, {6, 104, -1, 0}, {0, 105, -1, 0},
		} {
			offset, ts, ok, err := batch.FirstAtOrAfterFrom(q.ts, q.from)
			if err != nil || ok != (q.offset >= 0) || ok && (offset != q.offset || ts != q.found) {
				t.Errorf("%s %+v: offset %d, ts %d, %v, %v", c, q, offset, ts, ok, err)
			}
		}
		if offset, ts, ok, err := batch.FirstWithMaxTimestamp(); !ok || err != nil || offset != 101 || ts != 30 {
			t.Errorf("%s max: %d at %d, %v, %v", c, ts, offset, ok, err)
		}
	}
}

// Every record of a LogAppendTime batch has its max timestamp.
func TestTimestampSearchOfLogAppendTime(t *testing.T) {
	b := sample(t, Options{BaseOffset: 7, LogAppendTime: true, AppendTime: 50}, 5)
	if offset, ts, ok, err := b.FirstAtOrAfter(50); !ok || err != nil || offset != 7 || ts != 50 {
		t.Errorf("%d at %d, %v, %v", ts, offset, ok, err)
	}
	if _, _, ok, _ := b.FirstAtOrAfter(51); ok {
		t.Error("found a later record")
	}
}
