package record

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"

	"github.com/pierrec/lz4/v4"
)

// One LZ4 frame, and exactly the frames that Kafka's Lz4BlockInputStream
// reads: independent blocks, no dictionary, and nothing is looked at after the
// end mark (no second frame; a content checksum has to be there, and may be
// anything). It is read here
// and not by lz4.Reader so that no frame is stored that a Java consumer can't read.
//
//	0  4  magic 0x184D2204, little endian like all of it
//	4  1  flags: version 01, independent, block sums, content size, content sum, 00
//	5  1  largest block: 4 to 7, for 64 KiB, 256 KiB, 1 MiB, 4 MiB
//	6  8  content size, if flagged
//	   1  second byte of xxHash32 of the bytes from 4 on
//	      blocks: 4 bytes of length (top bit: stored as is), the block, its xxHash32 if flagged
//	   4  end mark 0
//	   4  content checksum, if flagged
const (
	lz4Magic       = 0x184D2204
	lz4Stored      = 1 << 31
	lz4VersionBits = 0xc0
	lz4Version     = 0x40
	lz4Independent = 0x20
	lz4BlockSum    = 0x10
	lz4ContentSize = 0x08
	lz4ContentSum  = 0x04
	lz4Reserved    = 0x03
	lz4Ratio       = 255 // a block's greatest
)

var (
	errLZ4Magic   = errors.New("lz4: Stream unsupported (invalid magic bytes)")
	errLZ4Flags   = errors.New("lz4: unsupported frame (version, dependent blocks, dictionary or block size)")
	errLZ4Header  = errors.New("lz4: Stream frame descriptor corrupted")
	errLZ4Block   = errors.New("lz4: block exceeds the largest that the frame says")
	errLZ4Sum     = errors.New("lz4: Block checksum mismatch")
	errLZ4Content = errors.New("lz4: block corrupted")
)

type lz4Frame struct {
	in         []byte
	out        []byte
	maxBlock   int
	blockSum   bool
	contentSum bool
}

// reset reads the frame's header.
func (l *lz4Frame) reset(p []byte) error {
	l.in = p
	if len(p) < 7 {
		return io.ErrUnexpectedEOF
	}
	if binary.LittleEndian.Uint32(p) != lz4Magic {
		return errLZ4Magic
	}
	flags, blocks := p[4], p[5]
	if flags&lz4VersionBits != lz4Version || flags&lz4Independent == 0 || flags&lz4Reserved != 0 ||
		blocks&0x8f != 0 || blocks>>4 < 4 {
		return errLZ4Flags
	}
	size := 6
	if flags&lz4ContentSize != 0 {
		size += 8
	}
	if len(p) <= size {
		return io.ErrUnexpectedEOF
	}
	if p[size] != byte(xxHash32(p[4:size])>>8) {
		return errLZ4Header
	}
	l.in = p[size+1:]
	l.maxBlock = 1 << (2*(blocks>>4) + 8)
	l.blockSum = flags&lz4BlockSum != 0
	l.contentSum = flags&lz4ContentSum != 0
	return nil
}

// next returns the next block, in place where it is stored as is.
func (l *lz4Frame) next() ([]byte, error) {
	if len(l.in) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	length := binary.LittleEndian.Uint32(l.in)
	size := int64(length &^ lz4Stored)
	if size == 0 {
		if l.contentSum && len(l.in) < 8 {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, io.EOF
	}
	if size > int64(l.maxBlock) {
		return nil, errLZ4Block
	}
	p := l.in[4:]
	after := size
	if l.blockSum {
		after += 4
	}
	if after > int64(len(p)) {
		return nil, io.ErrUnexpectedEOF
	}
	block := p[:size]
	if l.blockSum && binary.LittleEndian.Uint32(p[size:]) != xxHash32(block) {
		return nil, errLZ4Sum
	}
	l.in = p[after:]
	if length&lz4Stored != 0 {
		return block, nil
	}
	return l.inflate(block)
}

// inflate decompresses block into a buffer of the size that it can fill, which
// is often far below the frame's largest block.
func (l *lz4Frame) inflate(block []byte) ([]byte, error) {
	if room := min(l.maxBlock, lz4Ratio*len(block)); cap(l.out) < room {
		l.out = make([]byte, room)
	}
	out := l.out[:min(cap(l.out), l.maxBlock)]
	n, err := lz4.UncompressBlock(block, out)
	if err != nil || n < 0 || n > len(out) {
		return nil, errLZ4Content
	}
	return out[:n], nil
}

// lz4Memory is the largest block that the frame in p can hold.
func lz4Memory(p []byte) (int64, error) {
	var l lz4Frame
	if err := l.reset(p); err != nil {
		return 0, err
	}
	return int64(min(l.maxBlock, lz4Ratio*len(p))), nil
}

// xxHash32 is the checksum of LZ4 frames, with seed 0.
func xxHash32(p []byte) uint32 {
	const p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	total := uint32(len(p))
	var h uint32 = p5
	if len(p) >= 16 {
		var seed uint32
		v := [4]uint32{seed + p1, seed + p2, seed, seed - p1}
		v[0] += p2
		for ; len(p) >= 16; p = p[16:] {
			for i := range v {
				v[i] = bits.RotateLeft32(v[i]+binary.LittleEndian.Uint32(p[4*i:])*p2, 13) * p1
			}
		}
		h = bits.RotateLeft32(v[0], 1) + bits.RotateLeft32(v[1], 7) + bits.RotateLeft32(v[2], 12) + bits.RotateLeft32(v[3], 18)
	}
	h += total
	for ; len(p) >= 4; p = p[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(p)*p3, 17) * p4
	}
	for _, c := range p {
		h = bits.RotateLeft32(h+uint32(c)*p5, 11) * p1
	}
	h = (h ^ h>>15) * p2
	h = (h ^ h>>13) * p3
	return h ^ h>>16
}
