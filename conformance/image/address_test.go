package image

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/dozekafka/doze-kafka/conformance/image/client"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// FX-10 over bridge networks of a real engine: every place that a client can be in is told an address that works from there.
func TestEveryClientIsToldAnAddressThatWorks(t *testing.T) {
	needEngine(t)
	program := needClients(t)
	one, two, late := newNetwork(t), newNetwork(t), newNetwork(t)
	c := create(t, "--network", one, "--network-alias", "kafka", "--publish", "9092:9092", image)
	must(t, "network", "connect", "--alias", "kafka", two, c.name)
	c.start()
	c.healthy()
	must(t, "network", "connect", "--alias", "kafka", late, c.name)

	const mapped = "localhost:9092"
	check := func(where, want string, ask func() (string, error)) {
		t.Helper()
		told, err := ask()
		t.Logf("%-46s is told %s", where, told)
		if err != nil || told != want {
			t.Errorf("%s: told %q, want %q, %v", where, told, want, err)
		}
	}
	host := func(addr string) func() (string, error) {
		return func() (string, error) { return client.Ask(t.Context(), addr) }
	}
	beside := func(network, addr string) func() (string, error) {
		return func() (string, error) {
			return docker("run", "--rm", "--network", network, clients, "client", "ask", addr)
		}
	}
	ip := func(network string) string { return c.ip(network) + ":9092" }
	check("host, published port", mapped, host("127.0.0.1:9092"))
	check("host, published port by name", mapped, host("localhost:9092"))
	check("host, the container's own address", mapped, host(ip(one)))
	check("sibling in the first network", ip(one), beside(one, "kafka:9092"))
	check("sibling in the second network", ip(two), beside(two, "kafka:9092"))
	check("sibling in a network joined after the start", ip(late), beside(late, "kafka:9092"))
	check("in the container's own network namespace", "127.0.0.1:9092", beside("container:"+c.name, "127.0.0.1:9092"))
	elsewhere := newNetwork(t)
	check("container elsewhere, the host's published port", mapped, beside(elsewhere, gateway(t, elsewhere)+":9092"))
	if outside := newOutside(t); outside != nil {
		check("a machine outside, the host's published port", mapped, func() (string, error) {
			return outside.in(program, "ask", outside.host+":9092")
		})
	}
	// What a client was told is where it goes: the whole round of a group.
	if err := client.Produce(t.Context(), mapped, "demo", "from the host"); err != nil {
		t.Error(err)
	}
	if got := sibling(t, two, "client", "consume", "kafka:9092", "demo", "group", "1"); got != "from the host" {
		t.Errorf("the sibling consumed %q", got)
	}
}

// FX-10, FX-11: a published port of another number is told once it is known.
func TestHostEndpointIsToldOutside(t *testing.T) {
	needEngine(t)
	needClients(t)
	network := newNetwork(t)
	c, addr := published(t, "--network", network, "--network-alias", "kafka")
	if told, err := client.Ask(t.Context(), addr); err != nil || told != addr {
		t.Errorf("the host is told %q, want %q, %v", told, addr, err)
	}
	if told := sibling(t, network, "client", "ask", "kafka:9092"); told != c.ip(network)+":9092" {
		t.Errorf("a sibling is told %q", told)
	}
}

// FX-10: with host networking there is no mapping: everyone is told the address that they connected to.
func TestHostNetworkingTellsTheAddressConnectedTo(t *testing.T) {
	needEngine(t)
	port := freePort(t)
	run(t, "--network", "host", "--env", "DOZE_KAFKA_LISTENERS=PLAINTEXT://0.0.0.0:"+port, "--env", "DOZE_KAFKA_HTTP_LISTEN=off", image).healthy()
	for _, want := range []string{"127.0.0.1:" + port, gateway(t, newNetwork(t)) + ":" + port} {
		if told, err := client.Ask(t.Context(), want); err != nil || told != want {
			t.Errorf("told %q, want %q, %v", told, want, err)
		}
	}
}

// outside is a machine that reaches this one over a link of its own: a network namespace.
type outside struct {
	ns   string
	host string // this machine's address on the link
}

// newOutside needs root's rights, or sudo's; without them it is nil and says so, unless DOZE_KAFKA_REQUIRE wants "netns".
func newOutside(t *testing.T) *outside {
	t.Helper()
	target.Need(t, "ip")
	if _, err := as(); err != nil {
		if required("netns") {
			t.Fatal(err)
		}
		t.Logf("no machine outside: %v", err)
		return nil
	}
	o := &outside{ns: fmt.Sprintf("doze-out-%d", os.Getpid()), host: "10.97.8.1"}
	link := fmt.Sprintf("dz%d", os.Getpid()%100_000_000)
	o.ip(t, "netns", "add", o.ns)
	t.Cleanup(func() { o.ip(t, "netns", "del", o.ns) }) // and with it the link
	o.ip(t, "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", o.ns)
	o.ip(t, "addr", "add", o.host+"/24", "dev", link)
	o.ip(t, "link", "set", link, "up")
	for _, args := range [][]string{{"addr", "add", "10.97.8.2/24", "dev", "eth0"}, {"link", "set", "eth0", "up"}, {"link", "set", "lo", "up"}} {
		o.ip(t, append([]string{"-n", o.ns}, args...)...)
	}
	return o
}

// as is what a command of root's starts with.
func as() ([]string, error) {
	if os.Getuid() == 0 {
		return nil, nil
	}
	sudo := []string{"sudo", "-n"}
	return sudo, exec.Command("sudo", "-n", "true").Run()
}

func (o *outside) ip(t *testing.T, args ...string) {
	t.Helper()
	if _, err := o.root(append([]string{"ip"}, args...)...); err != nil {
		t.Error(err)
	}
}

func (o *outside) in(argv ...string) (string, error) {
	return o.root(append([]string{"ip", "netns", "exec", o.ns}, argv...)...)
}

func (o *outside) root(argv ...string) (string, error) {
	sudo, err := as()
	if err != nil {
		return "", err
	}
	argv = append(sudo, argv...)
	return command(nil, argv[0], argv[1:]...)
}
