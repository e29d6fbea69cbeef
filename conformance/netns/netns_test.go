//go:build linux

// Package netns shows FX-10 with the kernel's own network: the broker runs in a network namespace that is laid out as Docker lays out a
// container, and clients ask it from every place that a client of a container can be in.
package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/image/client"
	"github.com/dozekafka/doze-kafka/conformance/proc"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// asClient makes this test binary a client, so that it can ask from within a namespace.
const asClient = "DOZE_KAFKA_NETNS_ASK"

func TestMain(m *testing.M) {
	addr := os.Getenv(asClient)
	if addr == "" {
		os.Exit(m.Run())
	}
	told, err := client.Ask(context.Background(), addr)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(told)
}

// A network is a host with two bridges, a container on both of them (the broker's), a sibling on each, and a machine outside:
//
//	outside ─ 10.97.9.2 ── 10.97.9.1 ─┐        ┌─ 10.97.1.2, fd97:1::2 broker
//	                                  host ─ br1 ─ 10.97.1.3, fd97:1::3 sibling1
//	            bridges .1 of each net ├─ br2 ─ 10.97.2.2 broker
//	                                   └────── 10.97.2.3 sibling2
//
// Every part is a namespace of its own, the host too: nothing of this machine's network is touched.
type network struct {
	t      *testing.T
	prefix string
}

func newNetwork(t *testing.T) *network {
	n := &network{t: t, prefix: fmt.Sprintf("doze%d-", os.Getpid())}
	for _, name := range []string{"host", "broker", "sibling1", "sibling2", "outside"} {
		n.ip("netns", "add", n.ns(name))
		t.Cleanup(func() {
			if out, err := exec.Command("ip", "netns", "del", n.ns(name)).CombinedOutput(); err != nil {
				t.Errorf("ip netns del: %v: %s", err, out)
			}
		})
		n.in(name, "ip", "link", "set", "lo", "up")
	}
	for i, bridge := range []string{"br1", "br2"} {
		n.in("host", "ip", "link", "add", bridge, "type", "bridge")
		n.in("host", "ip", "addr", "add", fmt.Sprintf("10.97.%d.1/24", i+1), "dev", bridge)
		n.in("host", "ip", "addr", "add", fmt.Sprintf("fd97:%d::1/64", i+1), "dev", bridge, "nodad")
		n.in("host", "ip", "link", "set", bridge, "up")
	}
	n.plug("broker", "br1", "eth0", 1, 2)
	n.plug("broker", "br2", "eth1", 2, 2)
	n.plug("sibling1", "br1", "eth0", 1, 3)
	n.plug("sibling2", "br2", "eth0", 2, 3)
	n.in("broker", "ip", "route", "add", "default", "via", "10.97.1.1")
	n.in("broker", "ip", "-6", "route", "add", "default", "via", "fd97:1::1")
	n.in("host", "ip", "link", "add", "out", "type", "veth", "peer", "name", "eth0", "netns", n.ns("outside"))
	n.in("host", "ip", "addr", "add", "10.97.9.1/24", "dev", "out")
	n.in("host", "ip", "link", "set", "out", "up")
	n.in("host", "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
	n.in("outside", "ip", "addr", "add", "10.97.9.2/24", "dev", "eth0")
	n.in("outside", "ip", "link", "set", "eth0", "up")
	n.in("outside", "ip", "route", "add", "default", "via", "10.97.9.1")
	return n
}

// plug connects a namespace to a bridge, with address number host of the bridge's nets.
func (n *network) plug(name, bridge, dev string, net, host int) {
	port := fmt.Sprintf("%.4s%d%d", name, net, host)
	n.in("host", "ip", "link", "add", port, "type", "veth", "peer", "name", dev, "netns", n.ns(name))
	n.in("host", "ip", "link", "set", port, "master", bridge, "up")
	n.in(name, "ip", "addr", "add", fmt.Sprintf("10.97.%d.%d/24", net, host), "dev", dev)
	n.in(name, "ip", "addr", "add", fmt.Sprintf("fd97:%d::%d/64", net, host), "dev", dev, "nodad")
	n.in(name, "ip", "link", "set", dev, "up")
}

func (n *network) ns(name string) string { return n.prefix + name }

func (n *network) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (n *network) in(name string, args ...string) {
	n.t.Helper()
	n.ip(append([]string{"netns", "exec", n.ns(name)}, args...)...)
}

// broker starts the broker in a namespace.
func (n *network) broker(name, binary string, flags ...string) {
	n.t.Helper()
	dir := n.t.TempDir()
	argv := slices.Concat([]string{"ip", "netns", "exec", n.ns(name), binary, "--data-dir", filepath.Join(dir, "data"),
		"--listeners", "PLAINTEXT://:9092", "--http-listen", "off"}, flags)
	log := filepath.Join(dir, "log")
	p, err := proc.Start(log, []string{"DOZE_KAFKA_CONTAINER=true", "KUBERNETES_SERVICE_HOST="}, argv...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		if err := p.Stop(10 * time.Second); err != nil {
			n.t.Error(err)
		}
	})
	for range 200 {
		if strings.Contains(p.LogTail(5), "ready:") {
			return
		}
		select {
		case <-p.Done():
			n.t.Fatalf("the broker ended: %s", p.LogTail(5))
		case <-time.After(20 * time.Millisecond):
		}
	}
	n.t.Fatalf("the broker is not ready: %s", p.LogTail(5))
}

// wantTold says what a client in the namespace from is told when it connects to addr.
func (n *network) wantTold(from, addr, want string) {
	n.t.Helper()
	cmd := exec.Command("ip", "netns", "exec", n.ns(from), os.Args[0])
	cmd.Env = append(os.Environ(), asClient+"="+addr)
	out, err := cmd.Output()
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		n.t.Errorf("%s asks %s: told %q, want %q (%v)", from, addr, got, want, err)
	}
}

// needNamespaces skips the test where namespaces can't be made, and fails it if DOZE_KAFKA_REQUIRE wants them.
func needNamespaces(t *testing.T) {
	t.Helper()
	name := fmt.Sprintf("doze%d-probe", os.Getpid())
	out, err := exec.Command("ip", "netns", "add", name).CombinedOutput()
	if err == nil {
		out, err = exec.Command("ip", "netns", "exec", name, "ip", "link", "add", "br0", "type", "bridge").CombinedOutput()
		err = errors.Join(err, exec.Command("ip", "netns", "del", name).Run())
	}
	if err == nil {
		return
	}
	reason := fmt.Sprintf("network namespaces can't be made (that needs root and iproute2): %v: %s", err, out)
	for what := range strings.SplitSeq(os.Getenv("DOZE_KAFKA_REQUIRE"), ",") {
		if what == "netns" || what == "all" {
			t.Fatal(reason + "; DOZE_KAFKA_REQUIRE wants them")
		}
	}
	t.Skip(reason)
}

// FX-10: a bridged container.
func TestBridgedContainer(t *testing.T) {
	needNamespaces(t)
	n := newNetwork(t)
	n.broker("broker", target.Binary(t))
	n.wantTold("broker", "127.0.0.1:9092", "127.0.0.1:9092")
	n.wantTold("broker", "[::1]:9092", "[::1]:9092")
	n.wantTold("broker", "10.97.1.2:9092", "10.97.1.2:9092")
	n.wantTold("sibling1", "10.97.1.2:9092", "10.97.1.2:9092")
	n.wantTold("sibling1", "[fd97:1::2]:9092", "[fd97:1::2]:9092")
	n.wantTold("sibling2", "10.97.2.2:9092", "10.97.2.2:9092")
	n.wantTold("host", "10.97.1.2:9092", "localhost:9092") // the gateway, as docker-proxy is
	n.wantTold("host", "[fd97:1::2]:9092", "localhost:9092")
	n.wantTold("outside", "10.97.1.2:9092", "localhost:9092") // as through a port mapping that keeps the source
}

// FX-10, FX-11: the host endpoint is for those outside alone.
func TestBridgedContainerWithHostEndpoint(t *testing.T) {
	needNamespaces(t)
	n := newNetwork(t)
	n.broker("broker", target.Binary(t), "--host-endpoint", "localhost:19092")
	n.wantTold("sibling1", "10.97.1.2:9092", "10.97.1.2:9092")
	n.wantTold("host", "10.97.1.2:9092", "localhost:19092")
	n.wantTold("outside", "10.97.1.2:9092", "localhost:19092")
}

// FX-10: host networking. The broker is in the host's own namespace, whose addresses are on no end of a veth pair.
func TestHostNetworking(t *testing.T) {
	needNamespaces(t)
	n := newNetwork(t)
	n.broker("host", target.Binary(t))
	n.wantTold("host", "127.0.0.1:9092", "127.0.0.1:9092")
	n.wantTold("sibling1", "10.97.1.1:9092", "10.97.1.1:9092")
	n.wantTold("outside", "10.97.1.1:9092", "10.97.1.1:9092")
}
