package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// The steps in which a frame is read, so that a client which announces much
// and sends little holds little.
const (
	firstStep    = 32 << 10  // when little has come in yet
	flowingStep  = 256 << 10 // when the bytes are flowing: the read buffer was full
	stepGrowth   = 4
	readBufBytes = 4 << 10
)

var errShutdownRead = errors.New("no more requests: the broker is shutting down")

// readFrame reads the next request into memory that it charges to x.grant.
// io.EOF means that the client closed the connection between two requests.
func (c *conn) readFrame(x *exchange) error {
	head, err := c.br.Peek(4)
	if err != nil {
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	size := int(int32(binary.BigEndian.Uint32(head)))
	if size < 0 || size > c.s.opts.SocketRequestMaxBytes {
		return unspokenf(&c.s.toldSize, "frame of %d bytes, at most %d are allowed (socket.request.max.bytes); it begins with %q: no TLS and no HTTP are spoken here",
			size, c.s.opts.SocketRequestMaxBytes, head)
	}
	if size < minHeader {
		return malformedf("frame of %d bytes is too short for a request header", size)
	}
	if _, err := c.br.Discard(4); err != nil {
		return err
	}
	// Nothing is charged before all of the body is here, or its first byte if
	// it does not fit into the read buffer.
	read, first := c.readWhole, size
	if size > readBufBytes {
		read, first = c.readBody, 1
	}
	if _, err := c.br.Peek(first); err != nil {
		return noEOF(err)
	}
	if err := read(x, size); err != nil {
		c.s.memory.abandon(&x.grant)
		if x.frame != nil {
			x.frame.free()
			x.frame = nil
		}
		return err
	}
	c.s.memory.complete(&x.grant)
	c.s.stats.BytesIn.Add(int64(size) + 4)
	return nil
}

// readWhole fills x.frame with size bytes, all of which are in the read buffer.
func (c *conn) readWhole(x *exchange, size int) error {
	if err := c.s.memory.acquireWhole(c.ctx, &x.grant, int64(size)); err != nil {
		return err
	}
	x.frame = getBuffer(size)
	_, err := io.ReadFull(c.br, x.frame.b)
	return err
}

// readBody fills x.frame with size bytes, in steps.
func (c *conn) readBody(x *exchange, size int) error {
	step := firstStep
	if c.br.Buffered() >= readBufBytes-4 {
		step = flowingStep
	}
	for got := 0; got < size; step *= stepGrowth {
		upto := min(size, step)
		if err := c.s.memory.acquire(c.ctx, &x.grant, int64(upto-got)); err != nil {
			return err
		}
		if x.frame == nil {
			x.frame = getBuffer(upto)
		} else {
			x.frame = x.frame.grow(upto, got)
		}
		for got < upto {
			n, err := c.br.Read(x.frame.b[got:upto])
			if n == 0 && err != nil {
				return noEOF(err)
			}
			got += n
			c.touch()
			x.grant.moved()
		}
	}
	return nil
}

// noEOF makes the end of the connection within a frame an unexpected one.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A malformedError is a fault of the client's that closes its connection.
type malformedError struct {
	what string
	warn bool // it is one that people want to know of, and the first of its kind
}

func (e *malformedError) Error() string { return e.what }

func malformedf(format string, args ...any) error {
	return &malformedError{what: fmt.Sprintf(format, args...)}
}

// unspokenf is malformedf for a client of another age, or one that is no Kafka
// client: the first of a kind is logged where people see it (FX-7).
func unspokenf(told *atomic.Bool, format string, args ...any) error {
	return &malformedError{fmt.Sprintf(format, args...), told.CompareAndSwap(false, true)}
}
