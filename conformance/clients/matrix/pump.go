//go:build unix

package matrix

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// The order of what different processes write is known only as far as one line was there before another was written. A member that gives up a
// partition writes that before the next one can be assigned it. So when an assignment was read, everything that the other pipes hold by then
// is read before it is judged: a revoked that came first is there.

// source is the output of one driver.
type source struct {
	driver *driver
	pipe   *os.File
	rest   []byte   // of a line
	lines  [][]byte // read and not handled yet
	ended  bool
}

// fd is the descriptor, which the runtime has made non-blocking.
func (s *source) fd() (fd int) {
	conn, err := s.pipe.SyscallConn()
	if err == nil {
		err = conn.Control(func(n uintptr) { fd = int(n) })
	}
	if err != nil {
		return -1 // closed: poll passes over it
	}
	return fd
}

// drain reads what is there and says whether an assignment is in it.
func (s *source) drain() (assignment bool, err error) {
	buf := make([]byte, 64<<10)
	for !s.ended {
		n, err := unix.Read(s.fd(), buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return assignment, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return assignment, err
		case n == 0:
			s.ended = true
		}
		s.rest = append(s.rest, buf[:n]...)
		for {
			line, rest, whole := bytes.Cut(s.rest, []byte("\n"))
			if !whole {
				break
			}
			s.lines = append(s.lines, bytes.Clone(line))
			assignment = assignment || bytes.Contains(line, []byte(`"assigned"`))
			s.rest = rest
		}
	}
	return assignment, nil
}

// wait returns when one of the sources has something to read, or after 20 ms: there may be new sources by then.
func wait(sources []*source) error {
	var fds []unix.PollFd
	for _, s := range sources {
		if !s.ended {
			fds = append(fds, unix.PollFd{Fd: int32(s.fd()), Events: unix.POLLIN})
		}
	}
	if _, err := unix.Poll(fds, 20); err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	return nil
}

// drainAll reads every source, again and again as long as that brings an assignment.
func drainAll(sources []*source) error {
	for again := true; again; {
		again = false
		for _, s := range sources {
			assignment, err := s.drain()
			if err != nil {
				return err
			}
			again = again || assignment
		}
	}
	return nil
}
