package endpoint

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dozekafka/doze-kafka/pkg/config"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// The machines of the table: what each says of its network.
var (
	loopback = Interface{Name: "lo", Prefixes: []netip.Prefix{prefix("127.0.0.1/8"), prefix("::1/128")}}

	laptop = Facts{
		Interfaces: []Interface{loopback, {Name: "eth0", Prefixes: []netip.Prefix{prefix("192.168.1.5/24"), prefix("fe80::5/64"), prefix("2001:db8::5/64")}}},
		Gateways:   []netip.Addr{netip.MustParseAddr("192.168.1.1")},
	}
	// Host networking: the machine's own interfaces, its bridge, and the ends
	// of its containers' veth pairs.
	hostNetwork = Facts{
		Interfaces: []Interface{
			loopback,
			{Name: "eth0", Prefixes: []netip.Prefix{prefix("192.168.1.5/24")}},
			{Name: "docker0", Prefixes: []netip.Prefix{prefix("172.17.0.1/16")}},
			{Name: "veth12ab", Veth: true},
		},
		Gateways: []netip.Addr{netip.MustParseAddr("192.168.1.1")},
	}
	bridged = Facts{
		Interfaces: []Interface{
			loopback,
			{Name: "eth0", Prefixes: []netip.Prefix{prefix("172.18.0.2/16"), prefix("fd00:18::2/64"), prefix("fe80::42/64")}, Veth: true},
			{Name: "eth1", Prefixes: []netip.Prefix{prefix("10.5.0.9/24")}, Veth: true},
		},
		Gateways: []netip.Addr{netip.MustParseAddr("172.18.0.1"), netip.MustParseAddr("fd00:18::1"), netip.MustParseAddr("fe80::1")},
	}
	// A namespace whose loopback is down.
	noLoopback = Facts{Interfaces: bridged.Interfaces[1:], Gateways: bridged.Gateways}
	pod        = Facts{
		Interfaces: []Interface{loopback, {Name: "eth0", Prefixes: []netip.Prefix{prefix("10.244.1.7/24")}, Veth: true}},
		Gateways:   []netip.Addr{netip.MustParseAddr("10.244.1.1")},
		Kubernetes: true,
	}
)

// FX-10: every row of the automatic.
func TestTheAutomaticTellsEachClientAnAddressThatWorksForIt(t *testing.T) {
	for _, test := range []struct {
		name          string
		facts         Facts
		container     bool
		hostEndpoint  string
		local, remote string
		want          string
	}{
		{"native, loopback", laptop, false, "", "127.0.0.1:9092", "127.0.0.1:50000", "127.0.0.1 9092"},
		{"native, another loopback address", laptop, false, "", "127.0.1.1:9092", "127.0.0.1:50000", "127.0.1.1 9092"},
		{"native, from the network", laptop, false, "", "192.168.1.5:9092", "192.168.1.77:50000", "192.168.1.5 9092"},
		{"native, from far away", laptop, false, "", "192.168.1.5:9092", "8.8.8.8:50000", "192.168.1.5 9092"},
		{"native, free port", laptop, false, "", "127.0.0.1:43210", "127.0.0.1:50000", "127.0.0.1 43210"},
		{"native, a host endpoint is for containers", laptop, false, "localhost:1", "192.168.1.5:9092", "8.8.8.8:50000", "192.168.1.5 9092"},
		{"native, IPv6 loopback", laptop, false, "", "[::1]:9092", "[::1]:50000", "::1 9092"},
		{"native, IPv6", laptop, false, "", "[2001:db8::5]:9092", "[2001:db8::6]:50000", "2001:db8::5 9092"},
		{"native, v4-mapped", laptop, false, "", "[::ffff:192.168.1.5]:9092", "[::ffff:192.168.1.9]:50000", "192.168.1.5 9092"},
		{"native, link-local keeps its zone", laptop, false, "", "[fe80::5%eth0]:9092", "[fe80::9%eth0]:50000", "fe80::5%eth0 9092"},
		{"native, has veths but is no container", bridged, false, "", "172.18.0.2:9092", "8.8.8.8:50000", "172.18.0.2 9092"},

		{"bridged, peer in its subnet", bridged, true, "", "172.18.0.2:9092", "172.18.0.3:50000", "172.18.0.2 9092"},
		{"bridged, peer in its other subnet", bridged, true, "", "10.5.0.9:9092", "10.5.0.10:50000", "10.5.0.9 9092"},
		{"bridged, itself by its address", bridged, true, "", "172.18.0.2:9092", "172.18.0.2:50000", "172.18.0.2 9092"},
		{"bridged, loopback", bridged, true, "", "127.0.0.1:9092", "127.0.0.1:50000", "127.0.0.1 9092"},
		{"bridged, IPv6 loopback", bridged, true, "", "[::1]:9092", "[::1]:50000", "::1 9092"},
		{"bridged, the gateway is the host", bridged, true, "", "172.18.0.2:9092", "172.18.0.1:50000", "localhost 9092"},
		{"bridged, Docker Desktop", bridged, true, "", "172.18.0.2:9092", "192.168.65.1:50000", "localhost 9092"},
		{"bridged, outside", bridged, true, "", "172.18.0.2:9092", "8.8.8.8:50000", "localhost 9092"},
		{"bridged, outside, host endpoint", bridged, true, "localhost:19092", "172.18.0.2:9092", "8.8.8.8:50000", "localhost 19092"},
		{"bridged, gateway, host endpoint", bridged, true, "ci.example:19092", "172.18.0.2:9092", "172.18.0.1:50000", "ci.example 19092"},
		{"bridged, peer in its subnet, host endpoint", bridged, true, "localhost:19092", "172.18.0.2:9092", "172.18.0.3:50000", "172.18.0.2 9092"},
		{"bridged, loopback, host endpoint", bridged, true, "localhost:19092", "127.0.0.1:9092", "127.0.0.1:50000", "127.0.0.1 9092"},
		{"bridged, v4-mapped peer in its subnet", bridged, true, "", "[::ffff:172.18.0.2]:9092", "[::ffff:172.18.0.3]:50000", "172.18.0.2 9092"},
		{"bridged, v4-mapped gateway", bridged, true, "", "[::ffff:172.18.0.2]:9092", "[::ffff:172.18.0.1]:50000", "localhost 9092"},
		{"bridged, IPv6 peer in its subnet", bridged, true, "", "[fd00:18::2]:9092", "[fd00:18::3]:50000", "fd00:18::2 9092"},
		{"bridged, IPv6 gateway", bridged, true, "", "[fd00:18::2]:9092", "[fd00:18::1]:50000", "localhost 9092"},
		{"bridged, link-local peer", bridged, true, "", "[fe80::42%eth0]:9092", "[fe80::43%eth0]:50000", "fe80::42%eth0 9092"},
		{"bridged, link-local gateway", bridged, true, "", "[fe80::42%eth0]:9092", "[fe80::1%eth0]:50000", "localhost 9092"},
		{"bridged, loopback peer to its other address", noLoopback, true, "", "172.18.0.2:9092", "127.0.0.1:50000", "172.18.0.2 9092"},
		{"bridged, IPv6 host endpoint", bridged, true, "[2001:db8::1]:19092", "172.18.0.2:9092", "8.8.8.8:50000", "2001:db8::1 19092"},

		{"host networking, from the network", hostNetwork, true, "", "192.168.1.5:9092", "192.168.1.9:50000", "192.168.1.5 9092"},
		{"host networking, from far away", hostNetwork, true, "", "192.168.1.5:9092", "8.8.8.8:50000", "192.168.1.5 9092"},
		{"host networking, from a container", hostNetwork, true, "", "172.17.0.1:9092", "172.17.0.4:50000", "172.17.0.1 9092"},
		{"host networking, loopback", hostNetwork, true, "", "127.0.0.1:9092", "127.0.0.1:50000", "127.0.0.1 9092"},

		{"Kubernetes, pod of another node", pod, true, "", "10.244.1.7:9092", "10.244.2.3:50000", "10.244.1.7 9092"},
		{"Kubernetes, node", pod, true, "", "10.244.1.7:9092", "10.244.1.1:50000", "10.244.1.7 9092"},

		{"no facts", Facts{}, true, "", "172.18.0.2:9092", "8.8.8.8:50000", "172.18.0.2 9092"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := Config{Container: test.container}
			if test.hostEndpoint != "" {
				cfg.HostEndpoint = map[string]string{"": test.hostEndpoint}
			}
			want(t, newEndpoint(t, cfg, test.facts), "PLAINTEXT", test.local, test.remote, test.want)
		})
	}
}

func newEndpoint(t *testing.T, cfg Config, facts Facts) *Endpoint {
	t.Helper()
	e, err := New(cfg, facts)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func want(t *testing.T, e *Endpoint, listener, local, remote, want string) {
	t.Helper()
	host, port := e.For(listener, netip.MustParseAddrPort(local), netip.MustParseAddrPort(remote))
	if got := host + " " + strconv.Itoa(int(port)); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// FX-12: explicit addresses are told for the listeners that they name, by the
// listener that the connection came in on; a wildcard or an empty host never is.
func TestExplicitAddressesAreToldByListener(t *testing.T) {
	advertised, err := config.ParseAdvertised("INTERNAL://broker:9092,,EXTERNAL://Kafka.Example:29092, V6://[2001:db8::9]:39092,")
	if err != nil {
		t.Fatal(err)
	}
	advertised = append(advertised, // what config refuses, an embedding program may give
		config.Listener{Name: "EMPTY", Port: 49092}, config.Listener{Name: "WILD", Host: "0.0.0.0", Port: 49092},
		config.Listener{Name: "WILD6", Host: "::", Port: 49092}, config.Listener{Name: "NOPORT", Host: "broker"})
	e := newEndpoint(t, Config{Advertised: advertised, Container: true, HostEndpoint: map[string]string{"": "localhost:19092"}}, bridged)
	for _, test := range []struct{ listener, remote, want string }{
		{"INTERNAL", "172.18.0.3:50000", "broker 9092"},
		{"INTERNAL", "8.8.8.8:50000", "broker 9092"},
		{"EXTERNAL", "172.18.0.3:50000", "Kafka.Example 29092"},
		{"V6", "8.8.8.8:50000", "2001:db8::9 39092"},
		{"NOPORT", "8.8.8.8:50000", "broker 9099"},
		{"EMPTY", "172.18.0.3:50000", "172.18.0.2 49092"},
		{"WILD", "172.18.0.3:50000", "172.18.0.2 49092"},
		{"WILD6", "8.8.8.8:50000", "localhost 49092"},
		{"PLAINTEXT", "172.18.0.3:50000", "172.18.0.2 9099"}, // not named: automatic
		{"PLAINTEXT", "8.8.8.8:50000", "localhost 19092"},
	} {
		t.Run(test.listener+" "+test.remote, func(t *testing.T) {
			want(t, e, test.listener, "172.18.0.2:9099", test.remote, test.want)
		})
	}
}

// A connection that is not of a network (a pipe) has no address to tell.
func TestAConnectionWithoutAddressesIsToldLocalhost(t *testing.T) {
	for _, local := range []netip.AddrPort{{}, netip.MustParseAddrPort("0.0.0.0:9092"), netip.MustParseAddrPort("[::]:9092")} {
		host, port := newEndpoint(t, Config{}, Facts{}).For("PLAINTEXT", local, netip.AddrPort{})
		if host != "localhost" || port != int32(local.Port()) {
			t.Errorf("%v: %s %d", local, host, port)
		}
	}
}

// FX-11: host endpoints can be set while clients are answered, per listener, and each time as a whole.
func TestHostEndpointsCanBeSetLater(t *testing.T) {
	e := newEndpoint(t, Config{Container: true}, bridged)
	tell := func(listener, address string) {
		t.Helper()
		want(t, e, listener, "172.18.0.2:9092", "8.8.8.8:50000", address)
	}
	tell("PLAINTEXT", "localhost 9092")
	for _, step := range []struct {
		set                 map[string]string
		plaintext, external string
	}{
		{map[string]string{"": "docker:1111"}, "docker 1111", "docker 1111"},
		{map[string]string{"": "docker:3333", "external": "docker:2222"}, "docker 3333", "docker 2222"},
		{map[string]string{"EXTERNAL": "[2001:db8::1]:2222"}, "localhost 9092", "2001:db8::1 2222"},
		{nil, "localhost 9092", "localhost 9092"},
	} {
		if err := e.SetHostEndpoints(step.set); err != nil {
			t.Fatal(err)
		}
		tell("PLAINTEXT", step.plaintext)
		tell("EXTERNAL", step.external)
	}

	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				if err := e.SetHostEndpoints(map[string]string{"PLAINTEXT": "docker:4444"}); err != nil {
					t.Error(err)
				}
				e.For("PLAINTEXT", netip.MustParseAddrPort("172.18.0.2:9092"), netip.MustParseAddrPort("8.8.8.8:1"))
			}
		})
	}
	all.Wait()
}

func TestHostEndpointsAreSetAsAWholeOrNotAtAll(t *testing.T) {
	e := newEndpoint(t, Config{Container: true, HostEndpoint: map[string]string{"": "docker:1111"}}, bridged)
	// The last would not fit into a Metadata response.
	for _, bad := range []string{"docker", "docker:0", ":1", "0.0.0.0:1", "[::]:1", "a b:1", "a\nb:1", "http://a:1", "a/b:1", strings.Repeat("a", 1<<16) + ":1"} {
		if err := e.SetHostEndpoints(map[string]string{"": "docker:2222", "EXTERNAL": bad}); err == nil || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	if got := e.HostEndpoints(); len(got) != 1 || got[""] != "docker:1111" {
		t.Errorf("set is %v", got)
	}
}

// FX-11: the wait ends once every listener has an address for clients outside, and not before.
func TestAwaitWaitsForEveryListener(t *testing.T) {
	advertised, err := config.ParseAdvertised("EXTERNAL://kafka.example:29092")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(t, Config{Advertised: advertised, Container: true}, bridged)
		done := make(chan error, 1)
		go func() { done <- e.Await(t.Context(), []string{"EXTERNAL", "A", "B"}) }()
		for _, set := range []map[string]string{nil, {"A": "docker:1"}, {"B": "docker:2"}} {
			if err := e.SetHostEndpoints(set); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			select {
			case err := <-done:
				t.Fatalf("the wait has ended with %v: %v", set, err)
			default:
			}
		}
		if err := e.SetHostEndpoints(map[string]string{"A": "docker:1", "B": "docker:2"}); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := e.SetHostEndpoints(map[string]string{"": "docker:3"}); err != nil {
			t.Fatal(err)
		}
		if err := e.Await(t.Context(), []string{"A", "C"}); err != nil {
			t.Error(err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- newEndpoint(t, Config{}, Facts{}).Await(ctx, []string{"A"}) }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v", err)
		}
	})
}

func TestAHostEndpointThatIsNoneIsRefused(t *testing.T) {
	for _, address := range []string{"", "localhost", "localhost:", "localhost:0", "localhost:65536", "localhost:x", ":9092", "0.0.0.0:9092", "[::]:9092", "::1:9092"} {
		if _, err := New(Config{HostEndpoint: map[string]string{"": address}}, Facts{}); err == nil || !strings.Contains(err.Error(), "want host:port") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func BenchmarkFor(b *testing.B) {
	e, err := New(Config{Container: true}, bridged)
	if err != nil {
		b.Fatal(err)
	}
	local, remote := netip.MustParseAddrPort("172.18.0.2:9092"), netip.MustParseAddrPort("8.8.8.8:50000")
	b.ReportAllocs()
	for b.Loop() {
		e.For("PLAINTEXT", local, remote)
	}
}
