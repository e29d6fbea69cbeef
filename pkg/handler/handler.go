// Package handler is the Kafka APIs, one file each: from a decoded request to
// the domain and back. What is spoken is one table, and ApiVersions is derived
// from it. The package has no state of its own beyond what it is given; it
// validates what belongs to a request as a whole, everything else belongs to
// the package whose noun it is about.
package handler

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/endpoint"
	"github.com/dozekafka/doze-kafka/pkg/fetchsession"
	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/txn"
)

// Deps is what the APIs work on. All fields are required.
type Deps struct {
	Registry     *topic.Registry
	Groups       *group.Coordinator
	Settings     *config.Settings
	Endpoint     *endpoint.Endpoint
	Sessions     *fetchsession.Cache
	Transactions *txn.Coordinator
	Clock        clock.Clock // of fetch sessions
	Logger       *slog.Logger
	ClusterID    string
	// NodeID is the one broker's id: it leads every partition and coordinates everything.
	NodeID int32
	// Epoch is the broker epoch of this start, and so the leader epoch of every partition (ST-57).
	Epoch int32
}

// Handler answers requests; it is the server.Handler of a broker.
type Handler struct {
	Deps
	byKey []api // by API key; the zero api is not spoken
	// The pools are per Handler, not per process: what they hold has channels
	// and timers, which a testing/synctest bubble does not let out.
	produces, fetches, answers sync.Pool
	replicas                   []int32 // the replicas of every partition; not to be changed
}

var _ server.Handler = (*Handler)(nil)

// New makes the Handler of a broker.
func New(d Deps) *Handler {
	h := &Handler{Deps: d, replicas: []int32{d.NodeID}}
	for _, a := range apis() {
		for int(a.spec.Key) >= len(h.byKey) {
			h.byKey = append(h.byKey, api{})
		}
		h.byKey[a.spec.Key] = a
	}
	h.produces.New = func() any { return newProduceCall(h) }
	h.fetches.New = func() any { return newFetchCall(h) }
	h.answers.New = func() any { return newFetchAnswer(h) }
	return h
}

// Lookup implements server.Handler.
func (h *Handler) Lookup(key int16) (server.Spec, bool) {
	if key < 0 || int(key) >= len(h.byKey) || h.byKey[key].start == nil {
		return server.Spec{}, false
	}
	return h.byKey[key].spec, true
}

// Handle implements server.Handler.
func (h *Handler) Handle(ctx context.Context, req *server.Request) server.Reply {
	return h.byKey[req.Key].start(h, ctx, req)
}

// A start begins a request, in the order of its connection.
type start func(*Handler, context.Context, *server.Request) server.Reply

// atOnce is a start for an API that looks at memory and the page cache alone.
// The answer then goes out from the goroutine that read the request.
func atOnce(answer func(*Handler, *server.Request) kmsg.Response) start {
	return func(h *Handler, _ context.Context, req *server.Request) server.Reply {
		body := answer(h, req)
		return server.Reply{Response: func() (*server.Response, error) {
			return &server.Response{Body: body}, nil
		}}
	}
}

// inReply is a start for an API that waits for a commit: all of it happens in the Reply.
func inReply(answer func(*Handler, context.Context, *server.Request) kmsg.Response) start {
	return func(h *Handler, _ context.Context, req *server.Request) server.Reply {
		var body kmsg.Response
		return server.Reply{
			Wait:     func(ctx context.Context) { body = answer(h, ctx, req) },
			Response: func() (*server.Response, error) { return &server.Response{Body: body}, nil },
		}
	}
}

// self is the address of this broker as the client of conn is told it (FX-10).
func (h *Handler) self(conn *server.ConnInfo) (host string, port int32) {
	return h.Endpoint.For(conn.Listener, addrPort(conn.Local), addrPort(conn.Remote))
}

// addrPort is the address of a TCP connection, and the zero value for another kind (a pipe in a test).
func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort()
	}
	return netip.AddrPort{}
}
