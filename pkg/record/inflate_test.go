package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// withPayload makes a batch with the header of plain around a payload that was made elsewhere.
func withPayload(plain Batch, c Codec, payload []byte) Batch {
	b := append(bytes.Clone(plain[:HeaderSize]), payload...)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-LengthEnd))
	batch := Batch(b)
	batch.SetAttributes(plain.Attributes()&^attrCodec | int16(c))
	batch.SetCRC()
	return batch
}

// kgoRecords reads the records of b as franz-go's client does.
func kgoRecords(tb testing.TB, b Batch) []Record {
	tb.Helper()
	p, err := kgo.DefaultDecompressor().Decompress(b[HeaderSize:], kgo.CompressionCodecType(b.Codec()))
	if err != nil {
		tb.Fatal(err)
	}
	var all []Record
	for len(p) > 0 {
		n, size := binary.Varint(p)
		var k kmsg.Record
		if err := k.ReadFrom(p[:size+int(n)]); err != nil {
			tb.Fatal(err)
		}
		p = p[size+int(n):]
		r := Record{OffsetDelta: k.OffsetDelta, Timestamp: b.timestamp(k.TimestampDelta64), Key: k.Key, Value: k.Value}
		for _, h := range k.Headers {
			r.Headers = append(r.Headers, Header{Key: h.Key, Value: h.Value})
		}
		all = append(all, r)
	}
	return all
}

// ST-10: what franz-go compresses is read, in every codec.
func TestReadsWhatFranzGoCompresses(t *testing.T) {
	plain := sample(t, Options{}, 1000)
	for _, codec := range []kgo.CompressionCodec{kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		c, err := kgo.DefaultCompressor(codec)
		if err != nil {
			t.Fatal(err)
		}
		payload, kind := c.Compress(new(bytes.Buffer), plain[HeaderSize:])
		b := withPayload(plain, Codec(kind), payload)
		equalRecords(t, b, sampleRecords(1000))
		mustValidate(t, b)
	}
}

// ST-10: snappy comes in two framings, of which the Java clients write the other.
func TestReadsXerialSnappy(t *testing.T) {
	plain := sample(t, Options{}, 1000)
	header := []byte("\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
	frame := func(chunk int, headers bool) []byte {
		p := bytes.Clone(header)
		for rest := []byte(plain[HeaderSize:]); len(rest) > 0; {
			n := min(chunk, len(rest))
			block := s2.EncodeSnappy(nil, rest[:n])
			p = binary.BigEndian.AppendUint32(p, uint32(len(block)))
			p = append(p, block...)
			if rest = rest[n:]; headers {
				p = append(p, header...) // as concatenated streams have
			}
		}
		return p
	}
	for _, p := range [][]byte{frame(32<<10, false), frame(100, false), frame(1000, true), frame(1<<20, false)} {
		b := withPayload(plain, Snappy, p)
		equalRecords(t, b, sampleRecords(1000))
		mustValidate(t, b)
	}
}

func TestReadsConcatenatedStreams(t *testing.T) {
	plain := sample(t, Options{}, 1000)
	half := (len(plain) + HeaderSize) / 2
	gz := func(p []byte) []byte {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write(p) // a buffer takes everything
		_ = w.Close()
		return out.Bytes()
	}
	zs := func(p []byte) []byte {
		w, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return w.EncodeAll(p, nil)
	}
	for _, b := range []Batch{
		withPayload(plain, Gzip, append(gz(plain[HeaderSize:half]), gz(plain[half:])...)),
		// GZIPInputStream takes what is no member for the end.
		withPayload(plain, Gzip, append(gz(plain[HeaderSize:]), make([]byte, 40)...)),
		withPayload(plain, Zstd, append(zs(plain[HeaderSize:half]), zs(plain[half:])...)),
		withPayload(plain, Zstd, append([]byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}, zs(plain[HeaderSize:])...)),
	} {
		equalRecords(t, b, sampleRecords(1000))
		mustValidate(t, b)
	}
}

// ST-11: a payload that is no stream of its codec is refused as Kafka does, with UNKNOWN_SERVER_ERROR, wherever it breaks.
func TestBrokenPayloadsAreRefused(t *testing.T) {
	plain := sample(t, Options{}, 1000)
	for _, c := range allCodecs[1:] {
		b := sample(t, Options{Codec: c}, 1000)
		payload := b[HeaderSize:]
		for _, n := range []int{0, 1, 5, 7, 10, 20, len(payload) / 2, len(payload) - 1} {
			cut := withPayload(plain, c, payload[:n])
			if _, err := Validate(cut, rules()); err == nil {
				t.Errorf("%s cut to %d bytes is valid", c, n)
			} else if !errors.Is(err, kerr.UnknownServerError) {
				// A framing of blocks can end early in good order, and no
				// zstd frame at all is an empty stream: the records are cut.
				if c != Snappy && (c != Zstd || n > 0) {
					t.Errorf("%s cut to %d bytes: %v", c, n, err)
				}
			}
		}
		junk := withPayload(plain, c, bytes.Repeat([]byte{0xa5}, 300))
		if _, err := Validate(junk, rules()); !errors.Is(err, kerr.UnknownServerError) {
			t.Errorf("%s junk: %v", c, err)
		}
	}
}

// A checksum inside the payload is verified although the records end before it.
func TestChecksumsOfStreamsAreVerified(t *testing.T) {
	b := sample(t, Options{Codec: Gzip}, 10)
	b[len(b)-5] ^= 1 // the CRC in the gzip trailer
	b.SetCRC()
	if _, err := Validate(b, rules()); !errors.Is(err, kerr.UnknownServerError) {
		t.Errorf("gzip: %v", err)
	}
	z := sample(t, Options{Codec: Zstd}, 10)
	z[len(z)-1] ^= 1 // the frame's checksum
	z.SetCRC()
	if _, err := Validate(z, rules()); !errors.Is(err, kerr.UnknownServerError) {
		t.Errorf("zstd: %v", err)
	}
}

// ST-10: raw snappy is buffered only as far as its input can reach.
func TestSnappyThatLiesAboutItsLengthIsCorrupt(t *testing.T) {
	plain := sample(t, Options{}, 10)
	for _, declared := range []uint64{1 << 20, 1 << 30, 1<<32 - 1} {
		raw := append(binary.AppendUvarint(nil, declared), 0, 'x')
		chunk := append(binary.BigEndian.AppendUint32([]byte(xerialMagic+"\x00\x00\x00\x01\x00\x00\x00\x01"), uint32(len(raw))), raw...)
		for _, payload := range [][]byte{raw, chunk} {
			b := withPayload(plain, Snappy, payload)
			before := allocated()
			if _, err := Validate(b, rules()); !errors.Is(err, kerr.UnknownServerError) {
				t.Errorf("declared %d: %v", declared, err)
			}
			if used := allocated() - before; used > 512<<10 {
				t.Errorf("declared %d: %d bytes were allocated", declared, used)
			}
		}
	}
}

// A raw block larger than the whole budget waits for the whole, not for ever.
func TestSnappyBeyondTheBudget(t *testing.T) {
	defer func(size int64) { memory.size, memory.free = size, size }(memory.size)
	memory.size, memory.free = 2<<20, 2<<20
	b := sample(t, Options{}, 1)
	b = withPayload(b, Snappy, s2.EncodeSnappy(nil, appendRecord(nil, Record{Value: make([]byte, 5<<20)}, 0)))
	mustValidate(t, b)
	if memory.free != memory.size {
		t.Errorf("%d bytes of the budget are lost", memory.size-memory.free)
	}
}

// A valid block never exceeds the bound: its densest is copies of 64 bytes.
func TestDensestSnappyIsWithinTheBound(t *testing.T) {
	p := make([]byte, 1<<20)
	block := s2.EncodeSnappy(nil, p)
	if _, err := snappyLength(block); err != nil {
		t.Errorf("%d bytes in %d: %v", len(p), len(block), err)
	}
}

func TestS2IsNotSnappy(t *testing.T) {
	plain := sample(t, Options{}, 1000)
	b := withPayload(plain, Snappy, s2.EncodeBest(nil, plain[HeaderSize:]))
	if !extended(b[HeaderSize:]) {
		t.Skip("the encoder found no use for its extension")
	}
	if _, err := Validate(b, rules()); !errors.Is(err, kerr.UnknownServerError) {
		t.Errorf("S2: %v", err)
	}
	for _, size := range []int{0, 1, 50, 60, 61, 300, 70_000, 17 << 20} { // all lengths of literals
		if extended(s2.EncodeSnappy(nil, compressible(size))) || extended(s2.EncodeSnappy(nil, bytes.Repeat([]byte{1}, size))) {
			t.Errorf("Snappy of %d bytes is taken for S2", size)
		}
	}
}

// ST-10: the frames that Kafka's Lz4BlockInputStream reads, and no others.
func TestReadsTheLZ4FramesThatKafkaReads(t *testing.T) {
	plain := sample(t, Options{}, 5000)
	frame := func(options ...lz4.Option) []byte {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		if err := w.Apply(options...); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(plain[HeaderSize:]); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	good := [][]byte{
		frame(),
		frame(lz4.BlockSizeOption(lz4.Block64Kb), lz4.BlockChecksumOption(true)),
		frame(lz4.BlockSizeOption(lz4.Block256Kb), lz4.ChecksumOption(false)),
		frame(lz4.SizeOption(uint64(len(plain) - HeaderSize))),
		frame(lz4.CompressionLevelOption(lz4.Level9)),
		append(frame(), "what follows the end mark is not looked at"...),
	}
	for i, p := range good {
		b := withPayload(plain, LZ4, p)
		if _, err := Validate(b, rules()); err != nil {
			t.Errorf("frame %d: %v", i, err)
		}
	}
	for name, patch := range map[string]func(p []byte){
		"magic":      func(p []byte) { p[0]++ },
		"version":    func(p []byte) { p[4] ^= 0x80 },
		"dependent":  func(p []byte) { p[4] &^= lz4Independent },
		"dictionary": func(p []byte) { p[4] |= 1 },
		"block size": func(p []byte) { p[5] = 0x30 },
		"header sum": func(p []byte) { p[6]++ },
	} {
		p := frame()
		patch(p)
		if name != "header sum" && name != "magic" {
			p[6] = byte(xxHash32(p[4:6]) >> 8)
		}
		b := withPayload(plain, LZ4, p)
		if _, err := Validate(b, rules()); !errors.Is(err, kerr.UnknownServerError) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for cut := 1; cut < 5; cut++ { // Kafka wants the content checksum to be there (produce-codecs), and does not look at it
		p := frame(lz4.ChecksumOption(true))
		if _, err := Validate(withPayload(plain, LZ4, p[:len(p)-cut]), rules()); !errors.Is(err, kerr.UnknownServerError) {
			t.Errorf("content checksum without its last %d bytes: %v", cut, err)
		}
	}
	p := frame(lz4.BlockChecksumOption(true))
	p[20]++
	if _, err := Validate(withPayload(plain, LZ4, p), rules()); !errors.Is(err, kerr.UnknownServerError) {
		t.Errorf("block checksum: %v", err)
	}
}

func TestXXHash32KnownValues(t *testing.T) {
	for s, want := range map[string]uint32{
		"":    0x02cc5d05,
		"a":   0x550d7456,
		"abc": 0x32d153ff,
		"Nobody inspects the spammish repetition": 0xe2293b2f,
	} {
		if got := xxHash32([]byte(s)); got != want {
			t.Errorf("%q: %08x, want %08x", s, got, want)
		}
	}
}

// ST-10: zstd windows up to 128 MiB are accepted, as libzstd does.
func TestZstdWindows(t *testing.T) {
	plain := sample(t, Options{}, 1000)
	payload := func(window int) []byte {
		var out bytes.Buffer
		w, err := zstd.NewWriter(&out, zstd.WithWindowSize(window))
		if err != nil {
			t.Fatal(err)
		}
		// Flushed: the encoder then does not know the length, and writes a window.
		_, err = w.Write(plain[HeaderSize:])
		err = errors.Join(err, w.Flush(), w.Close())
		if err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for _, window := range []int{1 << 20, 8 << 20, 128 << 20} {
		p := payload(window)
		if got, err := zstdMemory(p); err != nil || got != int64(window) {
			t.Errorf("window %d is seen as %d, %v", window, got, err)
		}
		mustValidate(t, withPayload(plain, Zstd, p))
	}
	small, large := payload(1<<20), payload(64<<20)
	for _, two := range [][]byte{append(bytes.Clone(small), large...), append(bytes.Clone(large), small...)} {
		if got, err := zstdMemory(two); err != nil || got != 64<<20 {
			t.Errorf("the larger of two windows is seen as %d, %v", got, err)
		}
	}
	big := withPayload(plain, Zstd, payload(256<<20))
	if _, err := Validate(big, rules()); !errors.Is(err, kerr.UnknownServerError) {
		t.Errorf("256 MiB: %v", err)
	}
	if memory.free != maxWindow {
		t.Errorf("%d bytes of the budget are lost", maxWindow-memory.free)
	}
}

func TestInflaterReadsToTheEndOnce(t *testing.T) {
	b := sample(t, Options{Codec: LZ4}, 10)
	f, err := newInflater(LZ4, b[HeaderSize:])
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	var sum uint32
	for {
		p, err := f.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		sum = crc32.Update(sum, castagnoli, p)
	}
	if _, err := f.next(); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	if plain := sample(t, Options{}, 10); sum != crc32.Checksum(plain[HeaderSize:], castagnoli) {
		t.Error("other bytes than the records")
	}
}

func TestUnknownCodecIsAnUnknownServerError(t *testing.T) {
	for c := Codec(5); c < 8; c++ {
		b := withPayload(sample(t, Options{}, 1), c, []byte("x"))
		var invalid *InvalidError
		if _, err := Validate(b, rules()); !errors.As(err, &invalid) || invalid.Err.Message != "UNKNOWN_SERVER_ERROR" {
			t.Errorf("%s: %v", c, err)
		}
	}
}

// ST-10: many connections validate at once, with windows that together exceed the budget.
func TestManyValidateAtOnce(t *testing.T) {
	plain := sample(t, Options{}, 100)
	batches := []Batch{plain}
	for _, c := range allCodecs[1:] {
		batches = append(batches, sample(t, Options{Codec: c}, 100))
	}
	for _, window := range []int{8 << 20, 32 << 20, 128 << 20} {
		var out bytes.Buffer
		w, err := zstd.NewWriter(&out, zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Write(plain[HeaderSize:])
		if err = errors.Join(err, w.Flush(), w.Close()); err != nil {
			t.Fatal(err)
		}
		batches = append(batches, withPayload(plain, Zstd, out.Bytes()))
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for _, b := range batches {
				if v, err := Validate(b, rules()); err != nil || v.MaxTimestamp != now+3 {
					t.Errorf("%s: %+v, %v", b.Codec(), v, err)
				}
			}
		})
	}
	all.Wait()
	if memory.free != maxWindow {
		t.Errorf("%d bytes of the budget are lost", maxWindow-memory.free)
	}
}
