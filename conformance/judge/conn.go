package judge

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// patience is how long a broker may take for an answer: much more than it needs, so that a slow machine is no difference.
const patience = 20 * time.Second

// Conn is one connection to the broker. What is sent on it, and what comes back, is recorded. It dials when it is first used, and again
// after the broker closed it.
type Conn struct {
	env         *Env
	quiet       bool
	step        string // the one under way, for messages
	nc          net.Conn
	read        []byte // already
	correlation int32
	formatter   *kmsg.RequestFormatter
}

type options struct {
	sorted  []string
	texts   []string
	hidden  []string
	bytes   bool
	version int16 // of the response; -1: the request's
	hang    time.Duration
}

// Option changes how an exchange is recorded.
type Option func(*options)

// Sorted orders the lists under these field names, where Kafka's order is that of a hash map.
func Sorted(fields ...string) Option { return func(o *options) { o.sorted = fields } }

// Bytes records the response also byte by byte. It has to be the same in every run.
func Bytes() Option { return func(o *options) { o.bytes = true } }

// MayHang is for requests that Kafka never answers although it should: after a second they have no response, and the connection is given up.
func MayHang() Option { return func(o *options) { o.hang = time.Second } }

// AnsweredAs says that the response is of another version than the request.
func AnsweredAs(version int16) Option { return func(o *options) { o.version = version } }

// Do sends a request at a version and records what comes of it: a response, which it returns; a closed connection; or, for a Produce with
// acks=0, that there is no response. In the latter two cases it returns nil.
func (c *Conn) Do(step string, version int16, req kmsg.Request, opts ...Option) kmsg.Response {
	c.env.t.Helper()
	c.step = step
	req.SetVersion(version)
	c.correlation++
	c.write(c.formatter.AppendRequest(nil, req, c.correlation))
	produce, ok := req.(*kmsg.ProduceRequest)
	return c.outcome(step, req, ok && produce.Acks == 0, c.correlation, opts)
}

// Pipeline sends all requests at once, without waiting for a response in between, and then records what comes of each.
func (c *Conn) Pipeline(step string, version int16, reqs ...kmsg.Request) []kmsg.Response {
	c.env.t.Helper()
	c.step = step
	var frames []byte
	first := c.correlation + 1
	for _, req := range reqs {
		req.SetVersion(version)
		c.correlation++
		frames = append(frames, c.formatter.AppendRequest(nil, req, c.correlation)...) // it wants an empty slice
	}
	c.write(frames)
	var all []kmsg.Response
	for i, req := range reqs {
		all = append(all, c.outcome(fmt.Sprintf("%s: %d", step, i+1), req, false, first+int32(i), nil))
	}
	return all
}

func (c *Conn) outcome(step string, req kmsg.Request, unanswered bool, correlation int32, opts []Option) kmsg.Response {
	c.env.t.Helper()
	o := options{version: -1}
	if _, ok := req.(*kmsg.ProduceRequest); ok {
		o.sorted = []string{"Topics", "Partitions"} // Kafka collects them in a hash map
	}
	for _, opt := range opts {
		opt(&o)
	}
	x := Exchange{Step: step, API: kmsg.NameForKey(req.Key()), Version: req.GetVersion(), Request: summary(c.env.masks.render(req))}
	defer func() { c.record(x) }()
	if unanswered {
		x.Outcome = c.probe()
		return nil
	}
	if o.hang > 0 && c.hangs(o.hang) {
		x.Outcome = outcomeNone
		return nil
	}
	frame, ok := c.readFrame()
	if !ok {
		x.Outcome = outcomeClosed
		return nil
	}
	resp, body := c.decode(step, req, frame, correlation, o.version)
	if ids, ok := resp.(*kmsg.InitProducerIDResponse); ok {
		c.env.masks.learnProducer(ids.ProducerID)
	}
	x.Response = c.env.masks.render(resp)
	if o.bytes {
		x.Bytes = hex.EncodeToString(body)
	}
	if !bytes.Equal(resp.AppendTo(nil), body) {
		x.Encoding = "not as kmsg encodes it"
	}
	hideTexts(x.Response, o.texts)
	hide(x.Response, o.hidden)
	sortLists(x.Response, o.sorted)
	return resp
}

// decode checks the response header and reads the body.
func (c *Conn) decode(step string, req kmsg.Request, frame []byte, correlation int32, version int16) (kmsg.Response, []byte) {
	c.env.t.Helper()
	if len(frame) < 4 || int32(binary.BigEndian.Uint32(frame)) != correlation {
		c.env.Fatalf("%s: response to another request: %x, want correlation id %d", step, frame[:min(len(frame), 40)], correlation)
	}
	body := frame[4:]
	if req.IsFlexible() && req.Key() != kmsg.ApiVersions.Int16() {
		if len(body) == 0 || body[0] != 0 {
			c.env.Fatalf("%s: response header v1 with tags: %x", step, frame[:min(len(frame), 40)])
		}
		body = body[1:]
	}
	resp := req.ResponseKind()
	if version >= 0 {
		resp.SetVersion(version)
	}
	if err := resp.ReadFrom(body); err != nil {
		c.env.Fatalf("%s: %s v%d: response can't be read: %v\n%x", step, kmsg.NameForKey(req.Key()), resp.GetVersion(), err, body)
	}
	return resp, body
}

// Raw sends bytes as they are and records the first response, header included, or that the connection was closed. The bytes have to be
// such that the broker does one of the two.
func (c *Conn) Raw(step string, send []byte) []byte { return c.RawHead(step, send, -1) }

// RawHead is Raw of which the first n bytes of the response are recorded.
func (c *Conn) RawHead(step string, send []byte, n int) []byte {
	c.env.t.Helper()
	c.step = step
	c.write(send)
	x := Exchange{Step: step, Request: printableFrame(send)}
	frame, ok := c.readFrame()
	if ok {
		x.Bytes = hex.EncodeToString(frame)
		if n >= 0 && n < len(frame) {
			x.Bytes = hex.EncodeToString(frame[:n]) + "..."
		}
	} else {
		x.Outcome = outcomeClosed
	}
	c.record(x)
	return frame
}

// RawThenEnd sends bytes, on a connection of their own, and then the end of the stream.
func (c *Conn) RawThenEnd(step string, send []byte) []byte {
	c.env.t.Helper()
	c.Close()
	defer c.Close()
	c.write(send)
	if err := c.nc.(*net.TCPConn).CloseWrite(); err != nil {
		c.env.Fatalf("%s: %v", step, err)
	}
	return c.Raw(step, nil)
}

func printableFrame(b []byte) string {
	if len(b) > 200 {
		return fmt.Sprintf("0x%s... (%d bytes)", hex.EncodeToString(b[:60]), len(b))
	}
	return "0x" + hex.EncodeToString(b)
}

// Frame is a request frame built by hand: its size, then header v1 or, for a flexible request, v2, then body.
func Frame(key, version int16, correlation int32, flexible bool, body []byte) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 4), uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(correlation))
	b = append(b, 0, 4, 'j', 'u', 'd', 'g')
	if flexible {
		b = append(b, 0)
	}
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// probe tells a request that is not answered from one whose connection is closed, without waiting: the next response is that of an
// ApiVersions request sent after it.
func (c *Conn) probe() string {
	c.env.t.Helper()
	c.correlation++
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrApiVersionsRequest(), c.correlation)
	if _, err := c.nc.Write(frame); err != nil {
		c.Close()
		return outcomeClosed
	}
	answer, ok := c.readFrame()
	switch {
	case !ok:
		return outcomeClosed
	case len(answer) >= 4 && int32(binary.BigEndian.Uint32(answer)) == c.correlation:
		return outcomeNone
	}
	c.env.Fatalf("a response where none was expected: %x", answer[:min(len(answer), 40)])
	return ""
}

func (c *Conn) write(b []byte) {
	c.env.t.Helper()
	if c.nc == nil {
		nc, err := net.DialTimeout("tcp", c.env.Addr, patience)
		if err != nil {
			c.env.Fatalf("dial: %v", err)
		}
		c.nc = nc
	}
	if err := c.nc.SetDeadline(time.Now().Add(patience)); err != nil {
		c.env.Fatalf("deadline: %v", err)
	}
	if _, err := c.nc.Write(b); err != nil && !hungUp(err) {
		c.env.Fatalf("write: %v", err)
	}
}

// hangs says that nothing at all comes within d, in which case it gives the connection up.
func (c *Conn) hangs(d time.Duration) bool {
	c.env.t.Helper()
	if !c.silent(d) {
		return false
	}
	c.Close()
	return true
}

// silent says that nothing at all comes within d.
func (c *Conn) silent(d time.Duration) bool {
	c.env.t.Helper()
	if err := c.nc.SetReadDeadline(time.Now().Add(d)); err != nil {
		c.env.Fatalf("deadline: %v", err)
	}
	var first [1]byte
	n, err := c.nc.Read(first[:])
	c.read = append(c.read, first[:n]...)
	if err := c.nc.SetReadDeadline(time.Now().Add(patience)); err != nil {
		c.env.Fatalf("deadline: %v", err)
	}
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// readFrame returns the next response; false when the broker closed the connection instead.
func (c *Conn) readFrame() ([]byte, bool) {
	c.env.t.Helper()
	from := io.MultiReader(bytes.NewReader(c.read), c.nc)
	c.read = nil
	var size [4]byte
	if _, err := io.ReadFull(from, size[:]); err != nil {
		if !hungUp(err) {
			c.env.Fatalf("step %q: neither a response nor the end of the connection: %v", c.step, err)
		}
		c.Close()
		return nil, false
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(from, frame); err != nil {
		c.env.Fatalf("a response that ends in the middle: %v", err)
	}
	return frame, true
}

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Close ends the connection; the next use dials again.
func (c *Conn) Close() {
	if c.nc != nil {
		c.nc.Close() //nolint:errcheck // nothing is left to be lost
		c.nc = nil
	}
}

func (c *Conn) record(x Exchange) {
	if !c.quiet {
		c.env.record(x)
	}
}
