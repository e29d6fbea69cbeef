// Package endpoint says which address a client is told to connect to: the
// number one pain of Kafka in containers. Metadata, DescribeCluster and
// FindCoordinator answer by the connection that asks, so that one port serves
// clients on the same machine, in the same container network, and outside.
package endpoint

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dozekafka/doze-kafka/pkg/config"
)

// A Config is what was set.
type Config struct {
	// Advertised turns the automatic off for the listeners that it names. One
	// with a wildcard or empty host sets only the port, one with port 0 only
	// the host.
	Advertised []config.Listener
	// HostEndpoint is host:port as a client outside of the container reaches
	// a listener, by its name; "" stands for every one that has none of its own.
	HostEndpoint map[string]string
	// Container: the image says that it is one (DOZE_KAFKA_CONTAINER).
	Container bool
}

// Facts are what the machine says of its network.
type Facts struct {
	Interfaces []Interface
	Gateways   []netip.Addr
	Kubernetes bool // pods reach each other across subnets: no bridge, for all their veths
}

// An Interface is one of the machine, with its own addresses.
type Interface struct {
	Name     string
	Prefixes []netip.Prefix // address and subnet
	Veth     bool           // one end of a veth pair, whose other end is elsewhere
}

// An Endpoint answers for all listeners of a broker. It is safe for concurrent
// use; answering takes no lock.
type Endpoint struct {
	advertised map[string]config.Listener
	container  bool
	facts      Facts

	mu      sync.Mutex                          // held to change host
	host    atomic.Pointer[map[string]hostport] // by listener name; never changed in place
	changed chan struct{}                       // closed at the next change of host, and made anew
}

type hostport struct {
	host string
	port int32
}

// New makes an Endpoint. The error is that of a host endpoint that is none.
func New(cfg Config, facts Facts) (*Endpoint, error) {
	e := &Endpoint{advertised: map[string]config.Listener{}, container: cfg.Container, facts: facts, changed: make(chan struct{})}
	for _, l := range cfg.Advertised {
		e.advertised[l.Name] = l
	}
	e.host.Store(&map[string]hostport{})
	return e, e.SetHostEndpoints(cfg.HostEndpoint)
}

// SetHostEndpoints says how clients outside of the container reach the
// listeners (FX-11): host:port by the listener's name, "" for every one that
// has none of its own. It takes the place of what was set before, as a whole;
// an address that is none leaves all as it was.
func (e *Endpoint) SetHostEndpoints(addresses map[string]string) error {
	hosts := make(map[string]hostport, len(addresses))
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		h, err := parseHostPort(addresses[name])
		if err != nil {
			return err
		}
		hosts[strings.ToUpper(name)] = h
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.host.Store(&hosts)
	close(e.changed)
	e.changed = make(chan struct{})
	return nil
}

// longestQuoted bounds what of an address is repeated in an error, in bytes.
const longestQuoted = 300

func parseHostPort(address string) (hostport, error) {
	host, port, err := config.ParseHostPort(address)
	if err != nil {
		return hostport{}, fmt.Errorf("host endpoint %q: %w; want host:port that clients can connect to, such as localhost:19092", address[:min(len(address), longestQuoted)], err)
	}
	return hostport{host, port}, nil
}

// HostEndpoints is what SetHostEndpoints, or the Config, has set.
func (e *Endpoint) HostEndpoints() map[string]string {
	all := map[string]string{}
	for name, h := range *e.host.Load() {
		all[name] = net.JoinHostPort(h.host, strconv.Itoa(int(h.port)))
	}
	return all
}

// Await blocks until nothing is Missing of the listeners (WAIT_FOR_ENDPOINT).
// The error is the cause of ctx.
func (e *Endpoint) Await(ctx context.Context, listeners []string) error {
	for {
		e.mu.Lock()
		changed := e.changed
		e.mu.Unlock()
		if len(e.Missing(listeners)) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Missing are those of the listeners of which clients outside of the container
// are told a mere guess: they have no advertised address, and no host endpoint
// is set for them or for all.
func (e *Endpoint) Missing(listeners []string) []string {
	hosts := *e.host.Load()
	var missing []string
	for _, name := range listeners {
		l, ok := e.advertised[name]
		_, own := hosts[name]
		_, all := hosts[""]
		if !own && !all && (!ok || wildcard(l.Host)) {
			missing = append(missing, name)
		}
	}
	return missing
}

// wildcard says whether a host is none that anybody could connect to.
func wildcard(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.Unmap().IsUnspecified()
}

// For is what a client is told whose connection came in on a listener, from
// remote to local (FX-10, FX-12). The host is never empty or a wildcard.
func (e *Endpoint) For(listener string, local, remote netip.AddrPort) (host string, port int32) {
	if l, ok := e.advertised[listener]; ok {
		host, port = l.Host, int32(l.Port)
		if port == 0 {
			port = int32(local.Port())
		}
		if !wildcard(host) {
			return host, port
		}
		host, _ = e.auto(listener, local, remote)
		return host, port
	}
	return e.auto(listener, local, remote)
}

// auto is the automatic: the address that the client connected to, unless it
// came in through the port mapping of a bridged container.
func (e *Endpoint) auto(listener string, local, remote netip.AddrPort) (host string, port int32) {
	to, from := local.Addr().Unmap(), remote.Addr().Unmap()
	if !to.IsValid() || to.IsUnspecified() {
		return "localhost", int32(local.Port()) // a connection that is none of the network's
	}
	if e.mapped(to, from) {
		hosts := *e.host.Load()
		for _, name := range []string{listener, ""} {
			if h, ok := hosts[name]; ok {
				return h.host, h.port
			}
		}
		return "localhost", int32(local.Port())
	}
	// With its zone, if it has one: a link-local address is none without.
	return to.String(), int32(local.Port())
}

// mapped says whether a client came in through a port mapping: it is not in
// the container's own networks, or it is the gateway, which stands for the host.
func (e *Endpoint) mapped(local, remote netip.Addr) bool {
	if !e.container || e.facts.Kubernetes || remote.IsLoopback() {
		return false
	}
	local, remote = local.WithZone(""), remote.WithZone("")
	if !e.bridged(local) {
		return false
	}
	if slices.Contains(e.facts.Gateways, remote) {
		return true
	}
	for _, i := range e.facts.Interfaces {
		for _, p := range i.Prefixes {
			if p.Contains(remote) {
				return false
			}
		}
	}
	return true
}

// bridged says whether an address of ours is on one end of a veth pair. With
// host networking it is on an interface of the host's.
func (e *Endpoint) bridged(local netip.Addr) bool {
	for _, i := range e.facts.Interfaces {
		for _, p := range i.Prefixes {
			if p.Addr() == local {
				return i.Veth
			}
		}
	}
	return false
}
