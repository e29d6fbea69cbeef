package record

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/klauspost/compress/snappy"
)

// Snappy comes in two framings: one raw block, and the chunks of snappy-java's
// SnappyOutputStream ("xerial"), which Kafka's own clients write:
//
//	 0  8  magic 0x82 "SNAPPY" 0
//	 8  4  version                 1
//	12  4  least compatible version 1
//	16     chunks: 4 bytes of length, a raw block; another header may come between
const (
	xerialMagic      = "\x82SNAPPY\x00"
	xerialHeaderSize = 16
	xerialChunk      = 32 << 10
	// snappyRatio is a bound on how much a block holds per byte of input: a
	// copy of 3 bytes makes 64, which is 22 times its length.
	snappyRatio = 32
)

var (
	errXerialVersion = errors.New("snappy: incompatible xerial version")
	errXerialChunk   = errors.New("snappy: bad xerial chunk")
	errS2            = errors.New("snappy: not Snappy but S2")
)

// snappyBlocks reads either framing block by block.
type snappyBlocks struct {
	in  []byte
	raw bool
	out []byte
}

func (s *snappyBlocks) reset(p []byte) error {
	s.in, s.raw = p, !isXerial(p)
	return nil
}

func isXerial(p []byte) bool {
	return len(p) >= xerialHeaderSize && string(p[:len(xerialMagic)]) == xerialMagic
}

// next inflates the next block.
func (s *snappyBlocks) next() ([]byte, error) {
	var block []byte
	if s.raw {
		block, s.in, s.raw = s.in, nil, false
	} else {
		var err error
		if block, s.in, err = xerialNext(s.in); err != nil {
			return nil, err
		}
	}
	if extended(block) {
		return nil, errS2
	}
	out, err := snappy.Decode(s.out[:cap(s.out)], block)
	if err != nil {
		return nil, err
	}
	s.out = out
	return out, nil
}

// extended says that a block has copies of offset 0: the extension of S2,
// which the library reads and no Java consumer does. It steps from tag to tag,
// which together with the fast decoder is half of what snappy.DecodeStrict takes.
func extended(block []byte) bool {
	_, i := binary.Uvarint(block)
	if i <= 0 {
		return false // for the decoder to refuse
	}
	for i < len(block) {
		tag := block[i]
		switch tag & 3 {
		case 0: // a literal: its length less 1 in the tag, or in 1 to 4 bytes after it
			n, more := int64(tag>>2), 0
			if n >= 60 {
				if more = int(n) - 59; more >= len(block)-i {
					return false
				}
				n = 0
				for k := more; k > 0; k-- {
					n = n<<8 | int64(block[i+k])
				}
			}
			if n >= int64(len(block)-i) {
				return false
			}
			i += 1 + more + int(n) + 1
		case 1: // a copy of 11 bits of offset
			if i+1 < len(block) && tag>>5 == 0 && block[i+1] == 0 {
				return true
			}
			i += 2
		case 2: // 16 bits
			if i+2 < len(block) && block[i+1]|block[i+2] == 0 {
				return true
			}
			i += 3
		default: // 32 bits
			if i+4 < len(block) && binary.LittleEndian.Uint32(block[i+1:]) == 0 {
				return true
			}
			i += 5
		}
	}
	return false
}

// xerialNext splits the next block off p, past headers; io.EOF at the end.
func xerialNext(p []byte) (block, rest []byte, err error) {
	for isXerial(p) {
		if int32(binary.BigEndian.Uint32(p[8:])) < 1 {
			return nil, nil, errXerialVersion
		}
		p = p[xerialHeaderSize:]
	}
	if len(p) == 0 {
		return nil, nil, io.EOF
	}
	if len(p) < 4 {
		return nil, nil, errXerialChunk
	}
	n := int64(binary.BigEndian.Uint32(p))
	if p = p[4:]; n > int64(len(p)) {
		return nil, nil, errXerialChunk
	}
	return p[:n], p[n:], nil
}

// snappyMemory is the length of the largest block in p; a block that says to
// hold more than its bytes can is refused before anything is allocated for it.
func snappyMemory(p []byte) (int64, error) {
	if !isXerial(p) {
		return snappyLength(p)
	}
	var largest int64
	for {
		block, rest, err := xerialNext(p)
		if err == io.EOF {
			return largest, nil
		}
		if err != nil {
			return 0, err
		}
		n, err := snappyLength(block)
		if err != nil {
			return 0, err
		}
		largest, p = max(largest, n), rest
	}
}

func snappyLength(block []byte) (int64, error) {
	n, err := snappy.DecodedLen(block)
	if err != nil {
		return 0, err
	}
	if int64(n) > snappyRatio*int64(len(block)) {
		return 0, errSnappyLength
	}
	return int64(n), nil
}

// xerialWriter makes the chunks that SnappyOutputStream makes.
type xerialWriter struct {
	w     io.Writer
	buf   []byte // of the chunk under way
	out   []byte
	begun bool
}

func (x *xerialWriter) reset(w io.Writer) { x.w, x.buf, x.begun = w, x.buf[:0], false }

func (x *xerialWriter) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		n := min(len(p), xerialChunk-len(x.buf))
		x.buf = append(x.buf, p[:n]...)
		p = p[n:]
		if len(x.buf) == xerialChunk {
			if err := x.flush(); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

// flush writes the chunk under way, and the header before the first.
func (x *xerialWriter) flush() error {
	if !x.begun {
		if _, err := io.WriteString(x.w, xerialMagic+"\x00\x00\x00\x01\x00\x00\x00\x01"); err != nil {
			return err
		}
		x.begun = true
	}
	if len(x.buf) == 0 {
		return nil
	}
	if x.out == nil {
		x.out = make([]byte, 4+snappy.MaxEncodedLen(xerialChunk))
	}
	block := snappy.Encode(x.out[4:], x.buf)
	binary.BigEndian.PutUint32(x.out, uint32(len(block)))
	x.buf = x.buf[:0]
	_, err := x.w.Write(x.out[:4+len(block)])
	return err
}
