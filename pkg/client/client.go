// Package client sends a few requests to a broker over one connection: what
// `broker healthcheck` and small tools need. It has no retries, no metadata
// cache and no pool; for those there is franz-go.
package client

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxResponseBytes bounds what a server that is no Kafka broker makes us read.
const maxResponseBytes = 256 << 20

// Options are the settings of a connection. The zero value is a plain one.
type Options struct {
	TLS      *tls.Config // nil: plain TCP
	ClientID string      // "doze-kafka" if empty
	// Dial connects; nil is a net.Dialer. TLS, if set, is laid on top.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// A Conn is a connection whose broker has told which versions it speaks. It is
// safe for concurrent use; requests go one after the other.
type Conn struct {
	addr      string
	formatter *kmsg.RequestFormatter
	versions  map[int16]kmsg.ApiVersionsResponseApiKey

	mu          sync.Mutex
	nc          net.Conn
	r           *bufio.Reader
	correlation int32
	broken      error // sticky: the stream has lost its place
}

// Dial connects to a broker (host:port) and negotiates versions (ApiVersions,
// KIP-35).
func Dial(ctx context.Context, addr string, opts Options) (*Conn, error) {
	dial := opts.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	nc, err := dial(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	if opts.TLS != nil {
		if nc, err = handshake(ctx, nc, addr, opts.TLS); err != nil {
			return nil, fmt.Errorf("TLS handshake with %s: %w", addr, err)
		}
	}
	id := opts.ClientID
	if id == "" {
		id = "doze-kafka"
	}
	c := &Conn{addr: addr, nc: nc, r: bufio.NewReader(nc), formatter: kmsg.NewRequestFormatter(kmsg.FormatterClientID(id))}
	if err := c.negotiate(ctx); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return c, nil
}

// handshake lays TLS on nc, which it closes if that fails.
func handshake(ctx context.Context, nc net.Conn, addr string, cfg *tls.Config) (net.Conn, error) {
	if cfg.ServerName == "" && !cfg.InsecureSkipVerify {
		cfg = cfg.Clone()
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, errors.Join(err, nc.Close())
		}
		cfg.ServerName = host
	}
	tc := tls.Client(nc, cfg)
	if err := tc.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return tc, nil
}

// negotiate asks what the broker speaks. It asks with version 0, which every
// broker answers in a form that every client reads.
func (c *Conn) negotiate(ctx context.Context) error {
	req := kmsg.NewPtrApiVersionsRequest()
	resp, err := c.roundTrip(ctx, req)
	if err != nil {
		return err
	}
	answer := resp.(*kmsg.ApiVersionsResponse)
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		return fmt.Errorf("%s: ApiVersions: %w", c.addr, err)
	}
	c.versions = make(map[int16]kmsg.ApiVersionsResponseApiKey, len(answer.ApiKeys))
	for _, k := range answer.ApiKeys {
		c.versions[k.ApiKey] = k
	}
	return nil
}

// Do sends req in the highest version that both sides speak, and returns its
// response. Error codes within a response are the caller's to look at. After
// an error of the connection every further Do fails.
func (c *Conn) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	k, ok := c.versions[req.Key()]
	name := kmsg.NameForKey(req.Key())
	if !ok {
		return nil, fmt.Errorf("%s does not speak %s", c.addr, name)
	}
	version := min(req.MaxVersion(), k.MaxVersion)
	if version < k.MinVersion {
		return nil, fmt.Errorf("%s speaks %s v%d to v%d, this client at most v%d", c.addr, name, k.MinVersion, k.MaxVersion, version)
	}
	req.SetVersion(version)
	return c.roundTrip(ctx, req)
}

// Close closes the connection.
func (c *Conn) Close() error { return c.nc.Close() }

// roundTrip sends req as it is.
func (c *Conn) roundTrip(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, fmt.Errorf("%s: connection is broken: %w", c.addr, c.broken)
	}
	// The end of ctx interrupts reading and writing.
	stop := context.AfterFunc(ctx, func() {
		_ = c.nc.SetDeadline(time.Unix(1, 0)) // a closed connection is interrupted already
	})
	resp, err := c.exchange(req)
	if !stop() && err == nil {
		err = context.Cause(ctx) // the deadline is set: the connection can't go on
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		c.broken = err
		return nil, fmt.Errorf("%s: %s: %w", c.addr, kmsg.NameForKey(req.Key()), err)
	}
	return resp, nil
}

func (c *Conn) exchange(req kmsg.Request) (kmsg.Response, error) {
	c.correlation++
	if _, err := c.nc.Write(c.formatter.AppendRequest(nil, req, c.correlation)); err != nil {
		return nil, err
	}
	b, err := c.readFrame()
	if err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(b)); got != c.correlation {
		return nil, fmt.Errorf("answer to request %d instead of %d", got, c.correlation)
	}
	b = b[4:]
	resp := req.ResponseKind()
	// Responses of flexible versions have tags in their header, but for
	// ApiVersions: its reader can't know the version yet.
	if req.IsFlexible() && req.Key() != int16(kmsg.ApiVersions) {
		if b, err = skipTags(b); err != nil {
			return nil, err
		}
	}
	if err := resp.ReadFrom(b); err != nil {
		return nil, fmt.Errorf("answer of %d bytes: %w", len(b), err)
	}
	return resp, nil
}

func (c *Conn) readFrame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		if err == io.EOF {
			return nil, errors.New("the broker closed the connection without an answer (is this a Kafka listener, without TLS or SASL?)")
		}
		return nil, err
	}
	size := int32(binary.BigEndian.Uint32(head[:]))
	if size < 4 || size > maxResponseBytes {
		return nil, fmt.Errorf("the answer begins with %q: not a Kafka listener", head[:])
	}
	// Grows with what arrives: the size may be anybody's.
	b, err := io.ReadAll(io.LimitReader(c.r, int64(size)))
	if err == nil && len(b) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// skipTags cuts the tagged fields of a response header off.
func skipTags(b []byte) ([]byte, error) {
	count, b, ok := uvarint(b)
	for ; ok && count > 0; count-- {
		if _, b, ok = uvarint(b); !ok {
			break
		}
		var size uint64
		if size, b, ok = uvarint(b); !ok || size > uint64(len(b)) {
			ok = false
			break
		}
		b = b[size:]
	}
	if !ok {
		return nil, errors.New("the answer's header is cut short")
	}
	return b, nil
}

func uvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}
