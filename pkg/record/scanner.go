package record

import (
	"io"
	"math"
)

// A scanner walks through the records of a batch without holding them. buf is
// what can be looked at: the whole of an uncompressed batch in place, or the
// block that the decompressor made last.
type scanner struct {
	buf  []byte
	pos  int       // of the next byte in buf
	base int64     // bytes before buf
	more *inflater // nil: buf is everything
	err  error     // why there is no more: io.EOF, or the payload is broken
	most int32     // the largest size of a record; only a compressed batch's are held to it
}

// A head is what the walk takes from a record: all but its bytes.
type head struct {
	timestampDelta     int64
	offsetDelta        int32
	keySize, valueSize int32 // negative: null
}

// open starts at the first record of b. The caller closes.
func (s *scanner) open(b Batch) error {
	*s = scanner{most: math.MaxInt32}
	payload := b[HeaderSize:]
	if b.Codec() == None {
		s.buf = payload
		return nil
	}
	f, err := newInflater(b.Codec(), payload)
	if err != nil {
		return err
	}
	s.more = f
	return nil
}

// close gives the decompressor back. What buf aliased is invalid afterwards.
func (s *scanner) close() {
	if s.more != nil {
		s.more.close()
		s.more = nil
	}
	s.buf = nil
}

// offset is the position in the uncompressed records.
func (s *scanner) offset() int64 { return s.base + int64(s.pos) }

// refill gets the next block when buf is used up.
func (s *scanner) refill() bool {
	for s.err == nil && s.more != nil {
		p, err := s.more.next()
		if err != nil {
			s.err = err
			break
		}
		s.base += int64(len(s.buf))
		s.buf, s.pos = p, 0
		if len(p) > 0 {
			return true
		}
	}
	return false
}

// atEnd says that no byte is left; the error is a payload that breaks here.
func (s *scanner) atEnd() (bool, error) {
	if s.pos < len(s.buf) || s.refill() {
		return false, nil
	}
	if s.err != nil && s.err != io.EOF {
		return false, s.err
	}
	return true, nil
}

// failure is why a read stopped: a broken payload, the end, or a bad varint.
func (s *scanner) failure() error {
	if s.err != nil && s.err != io.EOF {
		return s.err
	}
	if s.pos >= len(s.buf) {
		return errPremature
	}
	return errStructure
}

// varint reads a zigzag varint of at most 5 bytes (ByteUtils.readVarint: bits above 32 are dropped).
func (s *scanner) varint() (int32, bool) {
	if s.pos < len(s.buf) {
		if c := s.buf[s.pos]; c < 0x80 {
			s.pos++
			return int32(c>>1) ^ -int32(c&1), true
		}
	}
	return s.varintSlow()
}

func (s *scanner) varintSlow() (int32, bool) {
	var u uint32
	for shift := 0; shift < 35; shift += 7 {
		if s.pos >= len(s.buf) && !s.refill() {
			return 0, false
		}
		c := s.buf[s.pos]
		s.pos++
		u |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return int32(u>>1) ^ -int32(u&1), true
		}
	}
	s.pos-- // the byte to blame, so that failure does not say premature
	return 0, false
}

// varlong reads a zigzag varint of at most 10 bytes.
func (s *scanner) varlong() (int64, bool) {
	var u uint64
	for shift := 0; shift < 70; shift += 7 {
		if s.pos >= len(s.buf) && !s.refill() {
			return 0, false
		}
		c := s.buf[s.pos]
		s.pos++
		u |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), true
		}
	}
	s.pos--
	return 0, false
}

// skip passes over n bytes.
func (s *scanner) skip(n int64) bool {
	for n > int64(len(s.buf)-s.pos) {
		n -= int64(len(s.buf) - s.pos)
		s.pos = len(s.buf)
		if !s.refill() {
			return false
		}
	}
	s.pos += int(n)
	return true
}

// skipField passes over a length and as many bytes, which must lie before end.
// A negative length is null and has none.
func (s *scanner) skipField(end int64) (int32, error) {
	n, ok := s.varint()
	if !ok {
		return 0, s.failure()
	}
	if n > 0 {
		if s.offset()+int64(n) > end {
			return 0, errStructure
		}
		if !s.skip(int64(n)) {
			return 0, s.failure()
		}
	}
	return n, nil
}

// start reads a record's size and its first fields; end is where it must end.
func (s *scanner) start(h *head) (end int64, err error) {
	size, ok := s.varint()
	if !ok {
		return 0, s.failure()
	}
	end = s.offset() + int64(size)
	if size < 0 || s.more == nil && int(size) > len(s.buf)-s.pos {
		return 0, errSize
	}
	if size > s.most {
		return 0, errLong
	}
	if !s.skip(1) { // attributes: no bit is used
		return 0, s.failure()
	}
	if h.timestampDelta, ok = s.varlong(); !ok {
		return 0, s.failure()
	}
	if h.offsetDelta, ok = s.varint(); !ok {
		return 0, s.failure()
	}
	return end, nil
}

// next passes over one record and tells what it was.
func (s *scanner) next(h *head) error {
	if size, i := varintAt(s.buf, s.pos); i > 0 && size >= 0 && size <= s.most && int(size) <= len(s.buf)-i {
		s.pos = i + int(size)
		return h.parse(s.buf[i:s.pos])
	}
	return s.nextStreamed(h)
}

// parse reads a record that is wholly there, which most are.
func (h *head) parse(body []byte) error {
	var i int
	if h.timestampDelta, i = varlongAt(body, 1); i <= 0 {
		return errStructure
	}
	if h.offsetDelta, i = varintAt(body, i); i <= 0 {
		return errStructure
	}
	if h.keySize, i = fieldAt(body, i); i <= 0 {
		return errStructure
	}
	if h.valueSize, i = fieldAt(body, i); i <= 0 {
		return errStructure
	}
	headers, i := varintAt(body, i)
	if i <= 0 || headers < 0 {
		return errStructure
	}
	for range headers {
		var key int32
		if key, i = fieldAt(body, i); i <= 0 || key < 0 { // a header's key is never null
			return errStructure
		}
		if _, i = fieldAt(body, i); i <= 0 {
			return errStructure
		}
	}
	if i != len(body) {
		return errSize
	}
	return nil
}

// varintAt reads the varint at p[i] and returns what follows it, 0 if there is none.
func varintAt(p []byte, i int) (int32, int) {
	if i < len(p) {
		if c := p[i]; c < 0x80 {
			return int32(c>>1) ^ -int32(c&1), i + 1
		}
	}
	return varintAtSlow(p, i)
}

// varintAtSlow stays out of line so that varintAt is inlined.
//
//go:noinline
func varintAtSlow(p []byte, i int) (int32, int) {
	var u uint32
	for shift := 0; shift < 35 && i < len(p); shift += 7 {
		c := p[i]
		i++
		u |= uint32(c&0x7f) << shift
		if c < 0x80 {
			return int32(u>>1) ^ -int32(u&1), i
		}
	}
	return 0, 0
}

func varlongAt(p []byte, i int) (int64, int) {
	var u uint64
	for shift := 0; shift < 70 && i < len(p); shift += 7 {
		c := p[i]
		i++
		u |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), i
		}
	}
	return 0, 0
}

// fieldAt reads a length and passes over as many bytes; 0 if they are not there.
func fieldAt(p []byte, i int) (int32, int) {
	n, i := varintAt(p, i)
	if n > 0 {
		if int(n) > len(p)-i {
			return 0, 0
		}
		i += int(n)
	}
	return n, i
}

// nextStreamed reads a record that goes beyond the block, and says what is
// wrong with one that goes beyond everything.
func (s *scanner) nextStreamed(h *head) error {
	end, err := s.start(h)
	if err != nil {
		return err
	}
	if h.keySize, err = s.skipField(end); err != nil {
		return err
	}
	if h.valueSize, err = s.skipField(end); err != nil {
		return err
	}
	headers, ok := s.varint()
	if !ok {
		return s.failure()
	}
	if headers < 0 {
		return errStructure
	}
	for range headers {
		if n, err := s.skipField(end); err != nil {
			return err
		} else if n < 0 {
			return errStructure
		}
		if _, err := s.skipField(end); err != nil {
			return err
		}
	}
	if s.offset() != end {
		return errSize
	}
	return nil
}
