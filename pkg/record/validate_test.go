package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kerr"
)

func rules() *Rules {
	return &Rules{Partition: "demo-0", Now: now, BeforeMaxMs: math.MaxInt64, AfterMaxMs: 3_600_000, MaxBytes: 64 << 20}
}

func mustValidate(tb testing.TB, b Batch) Verdict {
	tb.Helper()
	v, err := Validate(b, rules())
	if err != nil {
		tb.Fatalf("%s batch: %v", b.Codec(), err)
	}
	return v
}

// refused validates a batch that must be refused with want.
func refused(tb testing.TB, b Batch, r *Rules, want *kerr.Error) {
	tb.Helper()
	if invalid(tb, b, r, want) == nil {
		tb.Fatal("no error")
	}
}

// invalid is refused, and returns why.
func invalid(tb testing.TB, b Batch, r *Rules, want *kerr.Error) *InvalidError {
	tb.Helper()
	_, err := Validate(b, r)
	e, ok := errors.AsType[*InvalidError](err)
	if !ok || e.Err != want {
		tb.Fatalf("%v, want %s", err, want.Message)
	}
	if ke, ok := errors.AsType[*kerr.Error](err); !ok || ke != want {
		tb.Fatalf("no Kafka error in %v", err)
	}
	return e
}

func TestValidateAcceptsWhatBuilderBuilds(t *testing.T) {
	for _, c := range allCodecs {
		for _, n := range []int{1, 2, 100, 5000} {
			v := mustValidate(t, sample(t, Options{Codec: c, Producer: &Producer{ID: 5, BaseSequence: 0}}, n))
			if !v.Consecutive {
				t.Errorf("%s of %d: not consecutive", c, n)
			}
			wantTS, wantDelta := now+3, int32(6)
			if n < 7 {
				wantTS, wantDelta = now-3+int64(n-1), int32(n-1)
			}
			if v.MaxTimestamp != wantTS || v.MaxTimestampDelta != wantDelta {
				t.Errorf("%s of %d: max timestamp %d at %d", c, n, v.MaxTimestamp-now, v.MaxTimestampDelta)
			}
		}
	}
}

func TestNoTimestampGivesNoMaxTimestamp(t *testing.T) {
	b := NewBuilder(Options{})
	if err := b.Append(NoTimestamp, nil, nil); err != nil {
		t.Fatal(err)
	}
	batch, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	if v := mustValidate(t, batch); v.MaxTimestamp != NoTimestamp || v.MaxTimestampDelta != -1 {
		t.Errorf("%+v", v)
	}
}

func patched(b Batch, patch func(Batch)) Batch {
	b = bytes.Clone(b)
	patch(b)
	b.SetCRC()
	return b
}

func putInt32(at int, v int32) func(Batch) {
	return func(b Batch) { binary.BigEndian.PutUint32(b[at:], uint32(v)) }
}

// ST-11: the checks of the batch, their codes and their texts.
func TestValidateRefusesBadBatches(t *testing.T) {
	good := sample(t, Options{Producer: &Producer{ID: 1, BaseSequence: 0}}, 3)
	for _, c := range []struct {
		name  string
		patch func(Batch)
		want  *kerr.Error
		text  string
	}{
		{"base offset", func(b Batch) { b.SetBaseOffset(1) }, kerr.InvalidRecord, "The baseOffset of the record batch in the append to demo-0 should be 0, but it is 1"},
		{"negative span", putInt32(23, -1), kerr.InvalidRecord, "Batch has an invalid offset range: [0, -1] in topic partition demo-0"},
		{"no records", putInt32(57, 0), kerr.InvalidRecord, "Invalid reported count for record batch: 0 in topic partition demo-0"},
		{"negative count", putInt32(57, -5), kerr.InvalidRecord, "Invalid reported count for record batch: -5 in topic partition demo-0"},
		{"count and span", putInt32(57, 4), kerr.InvalidRecord, "Inconsistent batch offset range [0, 2] and count of records 4 in topic partition demo-0"},
		{"control", func(b Batch) { b.SetAttributes(attrControl) }, kerr.InvalidRecord, "Clients are not allowed to write control records in topic partition demo-0"},
		{"sequence", putInt32(53, -1), kerr.InvalidRecord, "Invalid sequence number -1 in record batch with producerId 1 in topic partition demo-0"},
		{"log append time", func(b Batch) { b.SetAttributes(attrLogAppendTime); b.SetMaxTimestamp(NoTimestamp) }, kerr.InvalidTimestamp, "One or more records have been rejected due to invalid timestamp"},
	} {
		if e := invalid(t, patched(good, c.patch), rules(), c.want); e.Message != c.text {
			t.Errorf("%s: %s", c.name, e.Message)
		}
	}
}

// ST-11: Kafka looks at the base offset before the size, at the size before the checksum, and at the checksum before all else.
func TestOrderOfChecks(t *testing.T) {
	b := sample(t, Options{}, 3)
	b.SetAttributes(attrControl | 7)
	b.SetBaseOffset(3)
	r := rules()
	r.MaxBytes = len(b) - 1
	refused(t, b, r, kerr.InvalidRecord)
	b.SetBaseOffset(0)
	e := invalid(t, b, r, kerr.MessageTooLarge)
	if !strings.Contains(e.Message, "in the append to demo-0 is ") {
		t.Error(e.Message)
	}
	r.MaxBytes = len(b)
	refused(t, b, r, kerr.CorruptMessage)
	b.SetCRC()
	refused(t, b, r, kerr.UnknownServerError)
	b.SetAttributes(attrControl)
	b.SetCRC()
	refused(t, b, r, kerr.InvalidRecord)
}

func TestValidateRefusesACutBatch(t *testing.T) {
	b := sample(t, Options{}, 3)
	for _, cut := range []Batch{nil, b[:10], b[:HeaderSize], b[:len(b)-1]} {
		refused(t, cut, rules(), kerr.CorruptMessage)
	}
}

// ST-11: records that can't be read are INVALID_RECORD, in every codec.
func TestValidateRefusesUnreadableRecords(t *testing.T) {
	valid := appendRecord(nil, Record{Key: []byte("k"), Value: []byte("v"), Headers: []Header{{Key: "h"}}}, 0)
	for name, records := range map[string][]byte{
		"none":                 {},
		"cut":                  valid[:len(valid)-1],
		"trailing":             append(bytes.Clone(valid), 0),
		"size too small":       append([]byte{valid[0] - 2}, valid[1:]...),
		"size too large":       append([]byte{valid[0] + 2}, valid[1:]...),
		"after the headers":    append(append([]byte{valid[0] + 2}, valid[1:]...), 0),
		"size negative":        {1, 0, 0, 0, 1, 1, 0},
		"size lies":            {0xfe, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 1, 1, 0},
		"size unending":        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"key lies":             {12, 0, 0, 0, 0xfe, 0xff, 0x7f},
		"value lies":           {14, 0, 0, 0, 1, 0x80, 0x80, 0x08},
		"headers lie":          {12, 0, 0, 0, 1, 1, 0x7e},
		"headers negative":     {12, 0, 0, 0, 1, 1, 1},
		"header key null":      {16, 0, 0, 0, 1, 1, 2, 1, 1},
		"header key lies":      {16, 0, 0, 0, 1, 1, 2, 40, 1},
		"timestamp unending":   append([]byte{30, 0}, bytes.Repeat([]byte{0xff}, 14)...),
		"offset unending":      append([]byte{30, 0, 0}, bytes.Repeat([]byte{0xff}, 13)...),
		"zeros":                make([]byte, 100),
		"size of nothing":      {0},
		"attributes and no mo": {2, 0},
	} {
		var compressors = map[Codec]func(io.Writer) io.WriteCloser{
			Gzip: func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
			LZ4:  func(w io.Writer) io.WriteCloser { return lz4.NewWriter(w) },
		}
		plain := sample(t, Options{}, 1)
		refused(t, withPayload(plain, None, records), rules(), kerr.InvalidRecord)
		for c, compress := range compressors {
			var out bytes.Buffer
			w := compress(&out)
			_, err := w.Write(records)
			if err = errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
			b := withPayload(plain, c, out.Bytes())
			if _, err := Validate(b, rules()); !errors.Is(err, kerr.InvalidRecord) {
				t.Errorf("%s in %s: %v", name, c, err)
			}
			for _, err := range b.Records() {
				if err == nil {
					continue
				}
				if !errors.Is(err, kerr.InvalidRecord) {
					t.Errorf("%s in %s, iterated: %v", name, c, err)
				}
			}
		}
	}
}

// ST-11: a broken record outweighs the bad ones before it.
func TestUnreadableRecordOutweighsBadOnes(t *testing.T) {
	b := sample(t, Options{}, 9)
	r := rules()
	r.RequireKey = true
	if e := invalid(t, b, r, kerr.InvalidRecord); len(e.Records) != 3 {
		t.Fatalf("%d bad records, want 3", len(e.Records))
	}
	b = withPayload(b, None, b[HeaderSize:len(b)-1])
	if e := invalid(t, b, r, kerr.InvalidRecord); len(e.Records) != 0 {
		t.Fatalf("%d bad records in a batch that can't be read", len(e.Records))
	}
}

// bomb compresses one record of a value of n zeros.
func bomb(tb testing.TB, c Codec, n int64) Batch {
	tb.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch c {
	case Gzip:
		w, err = gzip.NewWriterLevel(&out, gzip.BestSpeed)
	case Zstd:
		w, err = zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	case LZ4:
		w = lz4.NewWriter(&out)
	}
	if err != nil {
		tb.Fatal(err)
	}
	head := binary.AppendVarint([]byte{0, 0, 0, 1}, n) // attributes, deltas, null key
	if _, err := w.Write(append(binary.AppendVarint(nil, int64(len(head))+n+1), head...)); err != nil {
		tb.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for left := n; left > 0; left -= int64(len(zeros)) {
		if _, err := w.Write(zeros[:min(left, int64(len(zeros)))]); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := w.Write([]byte{0}); err != nil { // no headers
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return withPayload(sample(tb, Options{}, 1), c, out.Bytes())
}

// ST-10: a batch of about 1 MiB that inflates to 1 GiB is valid, and validating
// it allocates at most 32 MiB in all, let alone at one time.
func TestValidatingABombNeedsLittleMemory(t *testing.T) {
	size := int64(1 << 30)
	if testing.Short() || raceDetector {
		size = 1 << 27
	}
	for _, c := range []Codec{Gzip, LZ4, Zstd} {
		b := bomb(t, c, size)
		runtime.GC()
		before := allocated()
		mustValidate(t, b)
		if used := allocated() - before; used > 32<<20 {
			t.Errorf("%s: %d MiB were allocated for a batch of %d KiB", c, used>>20, len(b)>>10)
		}
		before = allocated()
		if _, _, ok, err := b.FirstAtOrAfter(now - 3); err != nil || !ok {
			t.Errorf("%s: search: %v, %v", c, ok, err)
		}
		if _, err := RebuildWithin(b, None, 0, 1<<20); !errors.Is(err, kerr.MessageTooLarge) {
			t.Errorf("%s: rebuilt: %v", c, err)
		}
		if used := allocated() - before; used > 32<<20 {
			t.Errorf("%s: %d MiB were allocated by search and rebuild", c, used>>20)
		}
	}
}

// allocated is how many bytes the heap has ever given out: it bounds every peak.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// Validation of uncompressed records is on the path of every produce: it allocates nothing.
func TestValidatingUncompressedAllocatesNothing(t *testing.T) {
	b := sample(t, Options{}, 100)
	r := rules()
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Validate(b, r); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// ST-11: max.decompressed.message.bytes bounds each record of a compressed batch, whether it is read in one piece or over several blocks.
func TestValidateLimitsRecordsOfCompressedBatches(t *testing.T) {
	for _, c := range allCodecs {
		for _, n := range []int{100, 1 << 20} {
			b := NewBuilder(Options{Codec: c})
			for _, size := range []int{1, n, 1} {
				if err := b.Append(now, nil, make([]byte, size)); err != nil {
					t.Fatal(err)
				}
			}
			batch, err := b.Batch()
			if err != nil {
				t.Fatal(err)
			}
			// Attributes, two deltas, a null key, no headers: a byte each. The value's length: two for 100, four for 1 MiB.
			size := int32(5 + 2 + n)
			if n > 100 {
				size += 2
			}
			r := rules()
			r.MaxRecordBytes = size
			if _, err := Validate(batch, r); err != nil {
				t.Errorf("%s, a record of %d bytes: %v", c, size, err)
			}
			r.MaxRecordBytes--
			if c == None {
				if _, err := Validate(batch, r); err != nil {
					t.Errorf("uncompressed: %v", err)
				}
				continue
			}
			if e := invalid(t, batch, r, kerr.InvalidRecord); e.Records != nil {
				t.Errorf("%s: %v names records", c, e)
			}
		}
	}
}
