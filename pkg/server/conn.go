package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// A conn is one connection. One goroutine is its reader, always; another one is
// its writer, but only while replies wait. An idle connection
// costs one goroutine and a read buffer (ST-22).
type conn struct {
	s    *Server
	info ConnInfo
	nc   net.Conn
	raw  syscall.RawConn // of a plain TCP connection, for sendfile; else nil
	br   *bufio.Reader   // reader goroutine only

	ctx    context.Context // ends with ErrConnClosed or ErrShutdown
	cancel context.CancelCauseFunc

	clientID string // reader goroutine only
	evict    func() // hangUp, made once

	active  atomic.Int64 // the server's tick at which something last moved
	waiting atomic.Int32 // a request waits in its handler: not idle
	blind   atomic.Bool  // ... but the end of the connection would not be noticed

	mu      sync.Mutex
	changed sync.Cond   // the queue became shorter, or the connection closed
	queue   []*exchange // replies under way, oldest first; if there is one, there is a writer
	closed  bool        // no more bytes can be sent
}

// An exchange is one request and its reply.
type exchange struct {
	req         Request
	correlation int32
	flexible    bool // the response header has tagged fields
	overlap     bool
	frame       *buffer
	grant       grant
	reply       Reply
}

func (s *Server) newConn(nc net.Conn, listener string) *conn {
	c := &conn{s: s, nc: nc, br: bufio.NewReaderSize(nc, readBufBytes)}
	c.changed.L = &c.mu
	c.evict = c.hangUp
	c.info = ConnInfo{ID: s.lastID.Add(1), Listener: listener, Local: nc.LocalAddr(), Remote: nc.RemoteAddr()}
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	if tc, ok := nc.(*net.TCPConn); ok {
		if raw, err := tc.SyscallConn(); err == nil {
			c.raw = raw
		}
	}
	c.touch()
	return c
}

// touch notes that something moved on the connection.
func (c *conn) touch() { c.active.Store(c.s.tick.Load()) }

// serve begins the connection.
func (c *conn) serve() {
	c.read(c.handshake())
}

// read is the reader goroutine: it reads requests and starts them until err,
// or until another goroutine is the reader.
func (c *conn) read(err error) {
	for err == nil {
		var handedOver bool
		if handedOver, err = c.next(); handedOver {
			return
		}
	}
	c.logEnd(err)
	c.close(err)
	c.s.ended(c)
}

// next reads one request, starts it, and sees that it is answered.
func (c *conn) next() (handedOver bool, err error) {
	x := &exchange{}
	x.grant.evict = c.evict
	if err := c.readFrame(x); err != nil {
		return false, err
	}
	c.touch()
	if err := c.decode(x); err != nil {
		c.finished(x)
		return false, err
	}
	if !x.overlap {
		c.drain() // a barrier starts when the replies before it are complete
	}
	if c.s.stopping.Load() {
		c.finished(x)
		return false, errShutdownRead
	}
	c.s.stats.requests[x.req.Key].Add(1)
	c.handle(x)
	return c.answer(x)
}

// answer sees to the reply of x, which costs no switch between goroutines
// unless other replies are under way: if it is complete, this one sends it and
// reads on; if it waits, this one becomes the writer, and a new one reads on
// meanwhile.
func (c *conn) answer(x *exchange) (handedOver bool, err error) {
	if !c.queueEmpty() {
		c.enqueue(x) // x overlaps: a barrier has found the queue empty
		return false, nil
	}
	if x.reply.Wait == nil {
		return false, c.finish(x)
	}
	c.mu.Lock()
	c.queue = append(c.queue, x) // only the reader appends, so it is the first
	c.mu.Unlock()
	go func() { c.read(c.watch(x)) }()
	c.write()
	return true, nil
}

// watch is what the reader does while the reply of x waits. If x is a barrier,
// such as a long poll, the next request is not read before it is complete; but
// the end of the connection is noticed, unless bytes of the next request are in
// the way: then the sweep for idle connections takes it.
func (c *conn) watch(x *exchange) error {
	if x.overlap {
		return nil
	}
	_, err := c.br.Peek(1)
	if err != nil && !c.s.stopping.Load() {
		c.cancel(ErrConnClosed)
	}
	c.blind.Store(true)
	c.drain()
	c.blind.Store(false)
	return err
}

// queueEmpty says whether no reply is under way.
func (c *conn) queueEmpty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) == 0
}

// drain waits until no reply is under way.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 {
		c.changed.Wait()
	}
}

// enqueue queues x behind the replies under way, once there is room, and
// starts a writer if there is none.
func (c *conn) enqueue(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) >= c.s.opts.ReplyQueue {
		c.changed.Wait()
	}
	c.queue = append(c.queue, x)
	if len(c.queue) == 1 { // the writer has ended in the meantime
		go c.write()
	}
}

// write is the writer goroutine: it finishes the queued replies in order, and
// ends when there is none.
func (c *conn) write() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 {
		x := c.queue[0]
		c.mu.Unlock()
		if err := c.finish(x); err != nil {
			c.hangUp() // the reader notices
		}
		c.mu.Lock()
		c.queue = slices.Delete(c.queue, 0, 1)
		c.changed.Broadcast()
	}
}

// hangUp makes all reading and writing of the connection fail. Replies still
// run their course, unsent.
func (c *conn) hangUp() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(ErrConnClosed)
	// The error of a second Close, or of a connection that broke, says nothing.
	_ = c.nc.Close()
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// close ends the connection, for the reason that ended reading. Replies under
// way are still sent unless the client is gone.
func (c *conn) close(err error) {
	var malformed *malformedError
	if !errors.As(err, &malformed) && !c.s.stopping.Load() {
		c.cancel(ErrConnClosed)
	}
	c.drain()
	c.hangUp()
}

// logEnd tells why the connection ends, if that was not the client's doing or
// was a fault of the client's.
func (c *conn) logEnd(err error) {
	var malformed *malformedError
	switch {
	case errors.As(err, &malformed):
		c.s.stats.ConnectionsFailed.Add(1)
		level := slog.LevelDebug
		if malformed.warn {
			level = slog.LevelWarn
		}
		c.log(level, "closing a connection because of its request", "reason", malformed.what)
	case err == nil, c.s.stopping.Load(), c.isClosed(), errors.Is(err, io.EOF), errors.Is(err, os.ErrDeadlineExceeded):
	default:
		c.log(slog.LevelDebug, "connection ended", "reason", err.Error())
	}
}

func (c *conn) log(level slog.Level, msg string, args ...any) {
	log := c.s.opts.Logger
	if !log.Enabled(context.Background(), level) {
		return
	}
	log.Log(context.Background(), level, msg, append(args,
		"conn", c.info.ID, "remote", c.info.Remote.String(), "listener", c.info.Listener, "client", c.clientID)...)
}
