package record

import (
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

const (
	// defaultGzipLevel, defaultLZ4Level and defaultZstdLevel are the defaults
	// of compression.<codec>.level, which 0 stands for here.
	defaultGzipLevel = gzip.DefaultCompression
	defaultLZ4Level  = 9
	defaultZstdLevel = 3
	// encoderWindow bounds zstd's memory here and at the consumers; few batches are larger.
	encoderWindow = 1 << 20
)

// A deflater compresses the records of one batch as they come.
type deflater struct {
	kind kind
	gz   *gzip.Writer
	lz   *lz4.Writer
	zs   *zstd.Encoder
	sn   xerialWriter
	w    io.Writer // the one in use
	to   sink      // what they all write to
}

// A sink lets a kept compressor forget the batch that it wrote.
type sink struct{ w io.Writer }

func (s *sink) Write(p []byte) (int, error) { return s.w.Write(p) }

// A kind is what makes deflaters interchangeable: the codec, and its level
// as the library counts them.
type kind struct {
	codec Codec
	level int
}

var deflaters sync.Map // kind -> *sync.Pool

// kindOf checks a level: gzip -1 and 1..9, lz4 1..17, zstd -131072..22, and
// for each 0, the default. It is ignored by the codecs that have none.
func kindOf(c Codec, level int) (kind, error) {
	var low, high int
	switch c {
	case Gzip:
		low, high = -1, 9
	case LZ4:
		low, high = 1, 17
	case Zstd:
		low, high = -131072, 22
	default:
		return kind{codec: c}, c.check()
	}
	if level != 0 && (level < low || level > high) {
		return kind{}, fmt.Errorf("record: %s has no level %d: want %d to %d", c, level, low, high)
	}
	return kind{codec: c, level: libraryLevel(c, level)}, nil
}

func libraryLevel(c Codec, level int) int {
	switch {
	case c == Gzip && level == 0:
		return defaultGzipLevel
	case c == LZ4 && (level == 0 || level == defaultLZ4Level):
		// Kafka's default level is the fast compressor, all others the "high" one (Lz4BlockOutputStream).
		return int(lz4.Fast)
	case c == LZ4:
		return int(lz4.Level1) << (min(level, 9) - 1)
	case c == Zstd && level == 0:
		level = defaultZstdLevel
	}
	if c == Zstd {
		return int(zstd.EncoderLevelFromZstd(level))
	}
	return level
}

// newDeflater writes to w in the codec of k, which is not None.
func newDeflater(k kind, w io.Writer) (*deflater, error) {
	pool, _ := deflaters.LoadOrStore(k, &sync.Pool{})
	d, _ := pool.(*sync.Pool).Get().(*deflater)
	if d == nil {
		d = &deflater{kind: k}
		if err := d.make(); err != nil {
			return nil, err
		}
	}
	d.to.w = w
	switch k.codec {
	case Gzip:
		d.gz.Reset(&d.to)
	case Snappy:
		d.sn.reset(&d.to)
	case LZ4:
		d.lz.Reset(&d.to)
	case Zstd:
		d.zs.Reset(&d.to)
	}
	return d, nil
}

func (d *deflater) make() error {
	var err error
	switch d.kind.codec {
	case Gzip:
		d.gz, err = gzip.NewWriterLevel(nil, d.kind.level)
		d.w = d.gz
	case Snappy:
		d.w = &d.sn
	case LZ4:
		d.lz = lz4.NewWriter(nil)
		// 64 KiB blocks and no checksum of the content, as Kafka writes them.
		err = d.lz.Apply(lz4.BlockSizeOption(lz4.Block64Kb), lz4.ChecksumOption(false),
			lz4.ConcurrencyOption(1), lz4.CompressionLevelOption(lz4.CompressionLevel(d.kind.level)))
		d.w = d.lz
	case Zstd:
		d.zs, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevel(d.kind.level)), zstd.WithEncoderConcurrency(1),
			zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(encoderWindow))
		d.w = d.zs
	}
	return err
}

// Write compresses p.
func (d *deflater) Write(p []byte) (int, error) { return d.w.Write(p) }

// finish writes what is still held, and gives the compressor back.
func (d *deflater) finish() error {
	var err error
	switch d.kind.codec {
	case Gzip:
		err = d.gz.Close()
	case Snappy:
		err = d.sn.flush()
	case LZ4:
		err = d.lz.Close()
	case Zstd:
		err = d.zs.Close()
	}
	if err == nil {
		d.giveBack()
	}
	return err
}

// giveBack keeps the compressor, finished or not, for another batch.
func (d *deflater) giveBack() {
	d.to.w = nil
	if pool, ok := deflaters.Load(d.kind); ok {
		pool.(*sync.Pool).Put(d)
	}
}
