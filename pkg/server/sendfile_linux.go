package server

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// canSendfile says whether regions go from file to socket within the kernel.
const canSendfile = true

// sendfilePiece is the most that one sendfile call is asked for: a call that
// reads cold pages keeps its thread busy.
const sendfilePiece = 4 << 20

// sendfile sends n bytes of the file fd from offset. The file's own position
// is neither used nor moved, so that any number of connections can.
func (c *conn) sendfile(fd uintptr, offset int64, n int) error {
	var failed error
	err := c.raw.Write(func(socket uintptr) (done bool) {
		for n > 0 {
			m, err := unix.Sendfile(int(socket), int(fd), &offset, min(n, sendfilePiece))
			if m > 0 {
				n -= m
				c.touch()
				continue
			}
			switch err {
			case unix.EINTR:
			case unix.EAGAIN:
				return false // the send buffer is full: wait
			case nil:
				failed = fmt.Errorf("%w: at %d", errShortRegion, offset)
				return true
			default:
				failed = sendError("sendfile", err)
				return true
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	return failed
}

// sendMore sends b, to which more is about to follow: the kernel does not make
// a packet of its own of it.
func (c *conn) sendMore(b []byte) error {
	var failed error
	err := c.raw.Write(func(socket uintptr) (done bool) {
		for len(b) > 0 {
			n, err := unix.SendmsgN(int(socket), b, nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
			switch err {
			case nil:
				b = b[n:]
			case unix.EINTR:
			case unix.EAGAIN:
				return false
			default:
				failed = sendError("send", err)
				return true
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	return failed
}

// sendError is the error of a system call on the connection, as package net
// wraps it.
func sendError(call string, err error) error {
	return &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError(call, err)}
}
