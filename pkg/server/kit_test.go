package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// fakeHandler speaks a few APIs; handle is what the test wants.
type fakeHandler struct {
	handle func(ctx context.Context, req *Request) Reply
}

func (h fakeHandler) Lookup(key int16) (Spec, bool) {
	switch kmsg.Key(key) {
	case kmsg.Produce:
		return Spec{Key: key, Min: 3, Max: 13, Overlap: true}, true
	case kmsg.Fetch:
		return Spec{Key: key, Min: 4, Max: 18}, true
	case kmsg.Metadata:
		return Spec{Key: key, Min: 0, Max: 13}, true
	case kmsg.ApiVersions:
		return Spec{Key: key, Min: 0, Max: 4, AnyVersion: true}, true
	case kmsg.CreateTopics:
		return Spec{Key: key, Min: 2, Max: 7}, true
	}
	return Spec{}, false
}

func (h fakeHandler) Handle(ctx context.Context, req *Request) Reply { return h.handle(ctx, req) }

// answer is a complete reply with the empty response of req.
func answer(req *Request) Reply {
	return Reply{Response: func() (*Response, error) { return emptyResponse(req), nil }}
}

func emptyResponse(req *Request) *Response {
	if req.Body == nil {
		resp := kmsg.NewPtrApiVersionsResponse()
		resp.ErrorCode = 35
		return &Response{Body: resp, HeaderV0: true}
	}
	resp := req.Body.ResponseKind()
	return &Response{Body: resp, HeaderV0: req.Key == int16(kmsg.ApiVersions)}
}

func answerAll(_ context.Context, req *Request) Reply { return answer(req) }

// A pipeListener makes connections of net.Pipe, which work in a bubble.
type pipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l.conns <- server
	return client
}

// A fixture is a running server.
type fixture struct {
	t     testing.TB
	s     *Server
	serve sync.WaitGroup
	dial  func() net.Conn
}

// startPipe starts a server on pipes. It stops with the test; in a bubble call
// stop at its end.
func startPipe(t testing.TB, opts Options) *fixture {
	ln := newPipeListener()
	return start(t, opts, ln, ln.dial)
}

func startTCP(t testing.TB, opts Options) *fixture {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return start(t, opts, ln, func() net.Conn {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
}

func start(t testing.TB, opts Options, ln net.Listener, dial func() net.Conn) *fixture {
	if opts.Handler == nil {
		opts.Handler = fakeHandler{answerAll}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	f := &fixture{t: t, s: New(opts), dial: dial}
	f.serve.Go(func() {
		if err := f.s.Serve(context.Background(), ln, "PLAINTEXT"); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return f
}

func (f *fixture) stop() {
	f.t.Helper()
	if err := f.s.Shutdown(context.Background()); err != nil {
		f.t.Errorf("Shutdown: %v", err)
	}
	f.serve.Wait()
	if n := f.s.memory.used.Load(); n != 0 {
		f.t.Errorf("%d bytes of request memory are still charged", n)
	}
	if n := f.s.memory.answering.Load(); n != 0 {
		f.t.Errorf("%d bytes of answered requests are still charged", n)
	}
}

// A wire is the client's side of a connection.
type wire struct {
	t testing.TB
	net.Conn
}

func (f *fixture) connect() *wire { return &wire{f.t, f.dial()} }

var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("test"))

func frameOf(req kmsg.Request, correlation int32) []byte {
	return formatter.AppendRequest(nil, req, correlation)
}

// close hangs up. What the server has sent and nobody read does not matter.
func (w *wire) close() { _ = w.Close() }

func (w *wire) send(frames ...[]byte) {
	w.t.Helper()
	if _, err := w.Write(bytes.Join(frames, nil)); err != nil {
		w.t.Fatalf("send: %v", err)
	}
}

// receive reads one response: its correlation id, and what is behind it.
func (w *wire) receive() (correlation int32, rest []byte) {
	w.t.Helper()
	b, err := readResponse(w)
	if err != nil {
		w.t.Fatalf("receive: %v", err)
	}
	return int32(binary.BigEndian.Uint32(b)), b[4:]
}

func readResponse(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r, b)
	return b, err
}

func (w *wire) wantCorrelation(want int32) []byte {
	w.t.Helper()
	got, rest := w.receive()
	if got != want {
		w.t.Fatalf("answer to request %d, want %d", got, want)
	}
	return rest
}

// wantClosed expects that the server closes the connection without a word.
func (w *wire) wantClosed() {
	w.t.Helper()
	_ = w.SetReadDeadline(time.Now().Add(30 * time.Second)) // fails if it is closed already
	b, err := io.ReadAll(w)
	if len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatalf("got %d bytes, want a closed connection", len(b))
	}
	// A reset is as good as an end.
}

// roundTrip shows that the server lives.
func (f *fixture) roundTrip() {
	f.t.Helper()
	w := f.connect()
	defer w.close()
	w.send(frameOf(metadata(12), 7))
	w.wantCorrelation(7)
}

func metadata(version int16) kmsg.Request {
	req := kmsg.NewPtrMetadataRequest()
	req.SetVersion(version)
	return req
}

func produce(acks int16, topic string, records []byte) kmsg.Request {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(9)
	req.Acks = acks
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Records = records
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

func fetch() kmsg.Request {
	req := kmsg.NewPtrFetchRequest()
	req.SetVersion(12)
	return req
}
