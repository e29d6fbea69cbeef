package server

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var errClosedByReply = errors.New("closed after its reply")

// handle starts the request of x.
func (c *conn) handle(x *exchange) {
	defer func() {
		if r := recover(); r != nil {
			c.panicked(x, r)
			x.reply = Reply{Close: true}
		}
	}()
	x.reply = c.s.opts.Handler.Handle(c.ctx, &x.req)
}

// finish waits for the reply of x, sends it, and gives back all that the
// request held. An error means that the connection can't go on.
func (c *conn) finish(x *exchange) error {
	defer c.finished(x)
	resp, err := c.response(x)
	if err != nil {
		c.s.stats.HandlerErrors.Add(1)
		c.log(slog.LevelError, "closing a connection: its request has no answer",
			"api", kmsg.NameForKey(x.req.Key), "version", x.req.Version, "error", err.Error())
		return err
	}
	x.req.Body = nil // a client that does not read its answer does not hold its request (ST-22)
	if resp != nil {
		if resp.Release != nil {
			defer resp.Release()
		}
		if c.isClosed() {
			return ErrConnClosed
		}
		if err := c.send(x, resp); err != nil {
			return err
		}
		c.touch()
	}
	if x.reply.Close {
		return errClosedByReply
	}
	return nil
}

// response runs Wait and Response of the reply. A panic in them is an error.
func (c *conn) response(x *exchange) (resp *Response, err error) {
	defer func() {
		if r := recover(); r != nil {
			c.panicked(x, r)
			resp, err = nil, fmt.Errorf("panic: %v", r)
		}
	}()
	if x.reply.Wait != nil {
		c.waiting.Add(1)
		defer func() {
			c.touch() // before it counts as idle again
			c.waiting.Add(-1)
		}()
		x.reply.Wait(c.ctx)
	}
	if x.reply.Response == nil {
		return nil, nil
	}
	return x.reply.Response()
}

// finished gives back the memory of the request. Only the frames of Produce
// and Fetch, of which there are many and large ones, are used again: what a
// handler might wrongly keep of another request's stays what it was.
func (c *conn) finished(x *exchange) {
	c.s.memory.finish(&x.grant)
	if x.frame == nil {
		return
	}
	if k := kmsg.Key(x.req.Key); k == kmsg.Produce || k == kmsg.Fetch {
		x.frame.free()
	}
	x.frame = nil
}

// panicked logs a panic of a handler: the connection ends, the broker lives.
func (c *conn) panicked(x *exchange, r any) {
	c.s.stats.Panics.Add(1)
	c.log(slog.LevelError, "panic in a request handler", "api", kmsg.NameForKey(x.req.Key),
		"version", x.req.Version, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
}
