package record

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// compressible makes n bytes that codecs find something in.
func compressible(n int) []byte {
	words := bytes.Fields([]byte("the quick brown fox jumps over a lazy dog while kafka brokers keep every record that was acknowledged"))
	r := rand.New(rand.NewPCG(1, 2))
	var out []byte
	for len(out) < n {
		out = append(out, words[r.IntN(len(words))]...)
		out = append(out, byte('0'+r.IntN(10)), ' ')
	}
	return out[:n]
}

func benchBatch(tb testing.TB, c Codec, records, size int) Batch {
	tb.Helper()
	b := NewBuilder(Options{Codec: c})
	text := compressible(records*size + size)
	for i := range records {
		if err := b.Append(1_700_000_000_000+int64(i), []byte("key"), text[i*size:(i+1)*size]); err != nil {
			tb.Fatal(err)
		}
	}
	batch, err := b.Batch()
	if err != nil {
		tb.Fatal(err)
	}
	return batch
}

func BenchmarkValidate(b *testing.B) {
	rules := &Rules{Partition: "demo-0", Now: 1_700_000_000_000, BeforeMaxMs: 1 << 62, AfterMaxMs: 3_600_000, MaxBytes: 1 << 30}
	for _, c := range []Codec{None, Gzip, Snappy, LZ4, Zstd} {
		b.Run(c.String(), func(b *testing.B) {
			batch := benchBatch(b, c, 64, 1024)
			b.SetBytes(64 * 1024)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Validate(batch, rules); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("none/100B x 640", func(b *testing.B) {
		batch := benchBatch(b, None, 640, 100)
		b.SetBytes(int64(len(batch)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Validate(batch, rules); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCRC is what of an uncompressed batch's validation is the checksum.
func BenchmarkCRC(b *testing.B) {
	batch := benchBatch(b, None, 64, 1024)
	b.SetBytes(int64(len(batch)))
	for b.Loop() {
		batch.ComputeCRC()
	}
}

func BenchmarkRecords(b *testing.B) {
	for _, c := range []Codec{None, Zstd} {
		b.Run(c.String(), func(b *testing.B) {
			batch := benchBatch(b, c, 64, 1024)
			b.SetBytes(64 * 1024)
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range batch.Records() {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
