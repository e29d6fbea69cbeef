// Package server is Kafka's wire: TCP and TLS, framing, replies in order, a
// bound on the memory of requests, and a response writer that sends file
// regions without copying them. It knows no topics.
package server

import (
	"context"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// A Request is one decoded request.
type Request struct {
	Conn     *ConnInfo
	Key      int16
	Version  int16
	ClientID string // "" if null
	// Body is the decoded request (its version set). Its byte and string
	// fields may alias the frame: valid until the Reply is finished.
	Body kmsg.Request
}

// ConnInfo is what a handler may know about the connection of a request.
type ConnInfo struct {
	ID       uint64
	Listener string // the listener's name, such as PLAINTEXT
	Local    net.Addr
	Remote   net.Addr
	// Software is what ApiVersions told (KIP-511), for logs and the console.
	SoftwareName, SoftwareVersion string
}

// A Handler answers the requests of connections.
type Handler interface {
	// Lookup says whether a request is spoken, before its body is decoded.
	// An API or version that is not closes the connection, as Kafka does
	// (ApiVersions apart, which answers for itself: see Spec.AnyVersion).
	Lookup(key int16) (Spec, bool)
	// Handle starts the request, in the order of the connection. It may touch
	// the page cache but never waits for another client: the Reply does all
	// waiting.
	Handle(ctx context.Context, req *Request) Reply
}

// A Spec is one line of the table of what is spoken.
type Spec struct {
	Key        int16
	Min, Max   int16 // accepted
	AdvertMin  int16 // advertised least version (Produce: 0)
	AnyVersion bool  // ApiVersions: a version above Max reaches the handler undecoded (Body is nil)
	// Overlap lets the next request of the connection start before this
	// one's reply is complete. All others are barriers.
	Overlap bool
}

// A Reply is one answer under way. Exactly one goroutine finishes it.
type Reply struct {
	// Wait blocks until the answer is complete or ctx has ended (the
	// connection is gone or the broker stops, in which case a long poll
	// answers with what there is). nil: complete already.
	Wait func(ctx context.Context)
	// Response is called once, after Wait; nil answers nothing (acks=0).
	Response func() (*Response, error)
	// Close closes the connection after the answer, if any.
	Close bool
}

// A Response is what goes out: a kmsg response, or an already encoded body in
// parts, some of them regions of files.
type Response struct {
	Body    kmsg.Response // if set, Parts is empty
	Parts   []Part
	Release func() // called once, after the response was written or dropped; may be nil
	// HeaderV0 writes the response header without tags whatever the version (ApiVersions).
	HeaderV0 bool
}

// A Part is bytes, or a region of a file.
type Part struct {
	Bytes  []byte
	File   vfs.File // if set, Bytes is nil
	Offset int64
	Length int
}
