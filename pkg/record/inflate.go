package record

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// chunkSize is how much is inflated at a time by the codecs that have no blocks to show.
	chunkSize = 32 << 10
	// keepMemory is the largest decompressor that is kept for the next batch.
	// It covers the windows of zstd's usual levels.
	keepMemory = 4 << 20
	// minMember is the least that can hold another gzip member (GZIPInputStream.readTrailer).
	minMember = 18
)

var (
	errSnappyLength = errors.New("snappy: the declared length is beyond what the input can hold")
	errWindow       = errors.New("zstd: the window is larger than 128 MiB")
)

// An inflater decompresses one batch's records block by block. It holds a
// block or a window, never the whole.
type inflater struct {
	codec Codec
	src   bytes.Reader // gzip, zstd
	gz    *gzip.Reader
	zs    *zstd.Decoder
	chunk []byte // gzip, zstd
	lz    lz4Frame
	sn    snappyBlocks
	need  int64 // the most it holds, in bytes
	done  bool
}

// inflaters are kept by codec.
var inflaters [Zstd + 1]sync.Pool

// newInflater starts to decompress payload. It may wait for memory (budget).
func newInflater(c Codec, payload []byte) (*inflater, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	need, err := memoryFor(c, payload)
	if err != nil {
		return nil, undecodable(c, err)
	}
	memory.acquire(need)
	f, _ := inflaters[c].Get().(*inflater)
	if f == nil {
		f = &inflater{codec: c}
	}
	f.need, f.done = need, false
	if err := f.reset(payload); err != nil {
		f.close()
		return nil, undecodable(c, err)
	}
	return f, nil
}

// memoryFor is how many bytes the decompressor holds for this payload.
func memoryFor(c Codec, payload []byte) (int64, error) {
	switch c {
	case Snappy:
		return snappyMemory(payload)
	case LZ4:
		return lz4Memory(payload)
	case Zstd:
		return zstdMemory(payload)
	}
	return chunkSize, nil
}

func (f *inflater) reset(payload []byte) error {
	switch f.codec {
	case Snappy:
		return f.sn.reset(payload)
	case LZ4:
		return f.lz.reset(payload)
	}
	if f.chunk == nil {
		f.chunk = make([]byte, chunkSize)
	}
	f.src.Reset(payload)
	if f.codec == Gzip {
		return f.resetGzip()
	}
	return f.resetZstd()
}

func (f *inflater) resetGzip() error {
	var err error
	if f.gz == nil {
		f.gz, err = gzip.NewReader(&f.src)
	} else {
		err = f.gz.Reset(&f.src)
	}
	if err != nil {
		return noEOF(err)
	}
	f.gz.Multistream(false) // members are told apart in nextGzip
	return nil
}

func (f *inflater) resetZstd() error {
	var err error
	if f.zs == nil {
		// One block at a time on the caller's goroutine: no goroutine to stop,
		// and a decoder that nobody holds is garbage.
		f.zs, err = zstd.NewReader(&f.src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	} else {
		err = f.zs.Reset(&f.src)
	}
	return err
}

// next returns the next block, which is valid until the call after; io.EOF
// after the last, and anything else for a payload that is broken.
func (f *inflater) next() ([]byte, error) {
	if f.done {
		return nil, io.EOF
	}
	p, err := f.block()
	if err != nil && err != io.EOF {
		err = undecodable(f.codec, err)
	}
	f.done = err != nil
	return p, err
}

func (f *inflater) block() ([]byte, error) {
	switch f.codec {
	case Gzip:
		return f.nextGzip()
	case Snappy:
		return f.sn.next()
	case LZ4:
		return f.lz.next()
	}
	n, err := f.zs.Read(f.chunk)
	if n > 0 {
		return f.chunk[:n], nil // the error, if any, comes again
	}
	return nil, err
}

// nextGzip reads on into further members, and like GZIPInputStream takes
// whatever else follows a member for its end.
func (f *inflater) nextGzip() ([]byte, error) {
	for {
		n, err := f.gz.Read(f.chunk)
		if n > 0 {
			return f.chunk[:n], nil
		}
		if err != io.EOF {
			return nil, err
		}
		if f.src.Len() <= minMember || f.resetGzip() != nil {
			return nil, io.EOF
		}
	}
}

// close gives the decompressor back, and its memory where it has a lot.
func (f *inflater) close() {
	need := f.need // another goroutine may have f as soon as it is put back
	f.src.Reset(nil)
	f.sn.in, f.lz.in = nil, nil
	if need <= keepMemory {
		inflaters[f.codec].Put(f)
	}
	memory.release(need)
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
