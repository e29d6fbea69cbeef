package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

const (
	// copyLimit is up to which size a region of a file, or bytes, are copied
	// behind the header and go out in one write with it: a second system call
	// costs more than copying so much.
	copyLimit = 16 << 10
	// gatherLimit is how much gathers before it goes out: what a client that
	// does not read its answer holds (ST-22).
	gatherLimit = 2 * copyLimit
	// copyPiece is how much of a region is in memory at a time where there is
	// no sendfile.
	copyPiece = 128 << 10
	// responseBuf is the first size of the buffer of a response.
	responseBuf = 512
)

// errShortRegion: a region has fewer bytes than the frame has promised, so the
// client can only be cut off.
var errShortRegion = errors.New("region of a file is shorter than announced")

// A sender writes one response: what can be copied cheaply gathers in buf, the
// rest goes out directly.
type sender struct {
	c   *conn
	buf *buffer
}

// send writes the response of x: its size, its header, its body.
func (c *conn) send(x *exchange, resp *Response) error {
	s := sender{c: c, buf: getBuffer(responseBuf)}
	defer func() { s.buf.free() }()
	b := append(s.buf.b[:0], 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(x.correlation))
	if x.flexible && !resp.HeaderV0 {
		b = append(b, 0) // no tagged fields
	}
	if resp.Body != nil {
		b = resp.Body.AppendTo(b)
	}
	s.adopt(b)
	size := len(b) - 4
	for i := range resp.Parts {
		size += resp.Parts[i].length()
	}
	if size > math.MaxInt32 {
		return fmt.Errorf("response of %d bytes", size)
	}
	binary.BigEndian.PutUint32(s.buf.b, uint32(size))
	if err := s.parts(resp.Parts); err != nil {
		c.sendFailed(x, err)
		return err
	}
	c.s.stats.BytesOut.Add(int64(size) + 4)
	return nil
}

// adopt makes b the content of the buffer, which it was appended to. If it
// outgrew the pooled one, that goes back, and b is left to the collector.
func (s *sender) adopt(b []byte) {
	if cap(b) != cap(s.buf.b) {
		s.buf.free()
		s.buf = &buffer{class: -1}
	}
	s.buf.b = b
}

func (p *Part) length() int {
	if p.File != nil {
		return p.Length
	}
	return len(p.Bytes)
}

// parts sends what is in the buffer, and the parts behind it.
func (s *sender) parts(parts []Part) error {
	for i := range parts {
		p := &parts[i]
		n := p.length()
		switch {
		case n <= copyLimit:
			if err := s.copyIn(p, n); err != nil {
				return err
			}
		case p.File == nil:
			if err := s.bytes(p.Bytes); err != nil {
				return err
			}
		default:
			if err := s.region(p.File, p.Offset, n); err != nil {
				return err
			}
			s.c.s.stats.FileBytesOut.Add(int64(n))
		}
	}
	return s.flush(false)
}

// copyIn puts a small part behind what is in the buffer.
func (s *sender) copyIn(p *Part, n int) error {
	have := len(s.buf.b)
	if have > 0 && have+n > gatherLimit {
		if err := s.flush(true); err != nil {
			return err
		}
		have = 0
	}
	s.buf = s.buf.grow(have+n, have)
	if p.File == nil {
		copy(s.buf.b[have:], p.Bytes)
		return nil
	}
	s.c.s.stats.FileBytesOut.Add(int64(n))
	return readRegion(p.File, s.buf.b[have:], p.Offset)
}

// bytes sends the buffer and b in one system call where there is writev.
func (s *sender) bytes(b []byte) error {
	bufs := net.Buffers{s.buf.b, b}
	if len(s.buf.b) == 0 {
		bufs = bufs[1:]
	}
	_, err := bufs.WriteTo(s.c.nc)
	s.buf.b = s.buf.b[:0]
	return err
}

// region sends the buffer and a region of a file: from file to socket within
// the kernel if both can, else through a pooled buffer.
func (s *sender) region(f vfs.File, offset int64, n int) error {
	if s.c.raw != nil {
		if fd, ok := f.Fd(); ok && canSendfile {
			if err := s.flush(true); err != nil {
				return err
			}
			return s.c.sendfile(fd, offset, n)
		}
	}
	return s.copyRegion(f, offset, n)
}

// copyRegion sends the buffer and a region in pieces. The buffer goes out with
// the first piece.
func (s *sender) copyRegion(f vfs.File, offset int64, n int) error {
	for n > 0 {
		have := len(s.buf.b)
		piece := min(n, copyPiece)
		s.buf = s.buf.grow(have+piece, have)
		if err := readRegion(f, s.buf.b[have:], offset); err != nil {
			return err
		}
		if err := s.flush(true); err != nil {
			return err
		}
		offset += int64(piece)
		n -= piece
	}
	return nil
}

// readRegion fills b from a file.
func readRegion(f vfs.File, b []byte, offset int64) error {
	n, err := f.ReadAt(b, offset)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("%w: %s at %d", errShortRegion, f.Name(), offset+int64(n))
	default:
		return err
	}
}

// flush sends what is in the buffer. more: something follows, so that a packet
// need not go out for it alone.
func (s *sender) flush(more bool) error {
	if len(s.buf.b) == 0 {
		return nil
	}
	var err error
	if more && s.c.raw != nil && canSendfile {
		err = s.c.sendMore(s.buf.b)
	} else {
		_, err = s.c.nc.Write(s.buf.b)
	}
	s.buf.b = s.buf.b[:0]
	return err
}

// sendFailed logs a failure that is not the client's.
func (c *conn) sendFailed(x *exchange, err error) {
	if _, ok := errNet(err); ok {
		return
	}
	c.s.stats.HandlerErrors.Add(1)
	c.log(slog.LevelError, "closing a connection: its answer could not be read from the disk",
		"api", kmsg.NameForKey(x.req.Key), "error", err.Error())
}

// errNet says whether err is one of the connection, not of a file.
func errNet(err error) (net.Error, bool) {
	var ne net.Error
	if errors.As(err, &ne) {
		return ne, true
	}
	return nil, errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, io.EOF)
}
