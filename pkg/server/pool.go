package server

import (
	"math/bits"
	"sync"
)

// Buffers are pooled by size class: powers of two from 512 bytes to 8 MiB.
// Larger ones are rare, and left to the garbage collector.
const (
	minClassBits = 9
	maxClassBits = 23
)

var pools [maxClassBits - minClassBits + 1]sync.Pool

// A buffer is bytes that go back to their pool.
type buffer struct {
	b     []byte
	class int8 // -1: not pooled
}

// getBuffer returns a buffer of length n. Its content is anything.
func getBuffer(n int) *buffer {
	class := max(bits.Len(uint(max(n, 1)-1)), minClassBits) - minClassBits
	if class >= len(pools) {
		return &buffer{b: make([]byte, n), class: -1}
	}
	if buf, ok := pools[class].Get().(*buffer); ok {
		buf.b = buf.b[:n]
		return buf
	}
	return &buffer{b: make([]byte, n, 1<<(class+minClassBits)), class: int8(class)}
}

// free gives the buffer back. Nothing may refer to its bytes any more. A
// buffer whose slice was replaced by a larger one is not pooled.
func (buf *buffer) free() {
	if buf.class >= 0 && cap(buf.b) == 1<<(int(buf.class)+minClassBits) {
		pools[buf.class].Put(buf)
	}
}

// grow returns a buffer of length n that begins with the first keep bytes of
// this one, which is freed.
func (buf *buffer) grow(n, keep int) *buffer {
	if cap(buf.b) >= n {
		buf.b = buf.b[:n]
		return buf
	}
	larger := getBuffer(n)
	copy(larger.b, buf.b[:keep])
	buf.free()
	return larger
}
