package server

import (
	"errors"
	"log/slog"
	"time"
)

// The defaults of Options.
const (
	// DefaultSocketRequestMaxBytes is Kafka's socket.request.max.bytes.
	DefaultSocketRequestMaxBytes = 100 << 20
	// DefaultRequestMemoryBytes bounds the requests in memory.
	DefaultRequestMemoryBytes = 256 << 20
	// DefaultConnectionsMaxIdle is Kafka's connections.max.idle.ms.
	DefaultConnectionsMaxIdle = 10 * time.Minute
	// DefaultReplyQueue bounds the replies under way on one connection.
	DefaultReplyQueue = 128
	// ShutdownTimeout is how long Shutdown lets replies drain (ST-50).
	ShutdownTimeout = 5 * time.Second
)

// The causes (context.Cause) of the end of the context that a handler gets.
var (
	// ErrConnClosed: the client is gone, nobody reads the answer.
	ErrConnClosed = errors.New("connection closed")
	// ErrShutdown: the broker stops; the answer is still sent.
	ErrShutdown = errors.New("broker is shutting down")
)

// Options are the settings of a Server. Handler is required; zero values of the
// others mean their defaults.
type Options struct {
	Handler Handler
	Logger  *slog.Logger // slog.Default()

	// SocketRequestMaxBytes is the largest frame. A larger one, or one of
	// negative size, closes its connection.
	SocketRequestMaxBytes int
	// RequestMemoryBytes bounds the bytes of all requests that are being read
	// or answered, over all connections (FX-8).
	RequestMemoryBytes int64
	// ConnectionsMaxIdle closes a connection on which nothing moved for so
	// long (real time). A request that waits, such as a long poll, is not idle.
	ConnectionsMaxIdle time.Duration
	// ReplyQueue is how many replies one connection may have under way before
	// no more of its requests are read.
	ReplyQueue int

	// OnConn, if set, is called when a connection opens, and when it is gone.
	OnConn func(conn *ConnInfo, open bool)
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.SocketRequestMaxBytes == 0 {
		o.SocketRequestMaxBytes = DefaultSocketRequestMaxBytes
	}
	if o.RequestMemoryBytes == 0 {
		o.RequestMemoryBytes = DefaultRequestMemoryBytes
	}
	if o.ConnectionsMaxIdle == 0 {
		o.ConnectionsMaxIdle = DefaultConnectionsMaxIdle
	}
	if o.ReplyQueue == 0 {
		o.ReplyQueue = DefaultReplyQueue
	}
	return o
}
