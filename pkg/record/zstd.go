package record

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// zstdMemory is the largest window of the frames in p, found by stepping from
// block header to block header, so that what decoding costs is known before.
func zstdMemory(p []byte) (int64, error) {
	var largest uint64
	for len(p) > 0 {
		var h zstd.Header
		if err := h.Decode(p); err != nil {
			return 0, noEOF(err)
		}
		if h.Skippable {
			if uint64(h.HeaderSize)+uint64(h.SkippableSize) > uint64(len(p)) {
				return 0, io.ErrUnexpectedEOF
			}
			p = p[h.HeaderSize+int(h.SkippableSize):]
			continue
		}
		window := h.WindowSize
		if h.SingleSegment {
			window = h.FrameContentSize
		}
		if window > maxWindow {
			return 0, errWindow
		}
		largest = max(largest, window)
		var err error
		if p, err = skipZstdBlocks(p[h.HeaderSize:], h.HasCheckSum); err != nil {
			return 0, err
		}
	}
	return int64(largest), nil
}

// skipZstdBlocks returns what follows the blocks and the checksum of a frame.
func skipZstdBlocks(p []byte, checksum bool) ([]byte, error) {
	const headerSize, typeRLE = 3, 1
	for last := false; !last; {
		if len(p) < headerSize {
			return nil, io.ErrUnexpectedEOF
		}
		h := uint32(p[0]) | uint32(p[1])<<8 | uint32(p[2])<<16
		last = h&1 != 0
		size := int(h >> 3)
		if h>>1&3 == typeRLE {
			size = 1
		}
		if size > len(p)-headerSize {
			return nil, io.ErrUnexpectedEOF
		}
		p = p[headerSize+size:]
	}
	if checksum {
		if len(p) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		p = p[4:]
	}
	return p, nil
}
