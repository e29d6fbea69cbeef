package handler

import (
	"context"
	"net"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/client"
	"github.com/dozekafka/doze-kafka/pkg/endpoint"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// watched is a server.Handler that sees which clients never come to the address that
// they were told (FX-13).
type watched struct {
	server.Handler
	endpoint *endpoint.Endpoint
	watch    *endpoint.Watch
}

// Watch is h with each client's coming and going noted: what is told to it by e, and
// whether it then comes there.
func Watch(h server.Handler, e *endpoint.Endpoint, w *endpoint.Watch) server.Handler {
	return &watched{h, e, w}
}

// Handle implements server.Handler.
func (w *watched) Handle(ctx context.Context, req *server.Request) server.Reply {
	reply := w.Handler.Handle(ctx, req)
	if req.ClientID == client.CheckID {
		return reply // the image's health check, each second
	}
	switch kmsg.Key(req.Key) {
	case kmsg.Metadata:
		local, remote := addrPort(req.Conn.Local), addrPort(req.Conn.Remote)
		if !remote.IsValid() {
			break // a pipe
		}
		host, port := w.endpoint.For(req.Conn.Listener, local, remote)
		w.watch.Told(asker(req), req.Conn.ID, net.JoinHostPort(host, strconv.Itoa(int(port))))
	case kmsg.ApiVersions:
		// Every connection begins with it.
	case kmsg.FindCoordinator, kmsg.InitProducerID, kmsg.DescribeCluster:
		// Clients send these also to the address that they were given to begin with.
		if init, ok := req.Body.(*kmsg.InitProducerIDRequest); !ok || init.TransactionalID == nil {
			w.watch.Sent(asker(req), req.Conn.ID)
			break
		}
		fallthrough // to a coordinator, whose address they were told
	default:
		w.watch.Came(asker(req))
	}
	return reply
}

func asker(req *server.Request) endpoint.Client {
	return endpoint.Client{Listener: req.Conn.Listener, Host: addrPort(req.Conn.Remote).Addr(), ID: req.ClientID}
}
