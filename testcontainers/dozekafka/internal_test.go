package dozekafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
)

func inspected(mode string, bindings ...network.PortBinding) *container.InspectResponse {
	i := &container.InspectResponse{ID: "0123456789abcdef", NetworkSettings: &container.NetworkSettings{}}
	i.HostConfig = &container.HostConfig{NetworkMode: container.NetworkMode(mode)}
	i.NetworkSettings.Ports = network.PortMap{containerPort(kafkaPort): bindings}
	return i
}

// FX-41: 127.0.0.1 and not localhost, and of two host ports that of the right family.
func TestAddressIsOfTheRightFamily(t *testing.T) {
	any4 := network.PortBinding{HostIP: netip.MustParseAddr("0.0.0.0"), HostPort: "1004"}
	any6 := network.PortBinding{HostIP: netip.MustParseAddr("::"), HostPort: "1006"}
	for _, test := range []struct {
		host string
		info *container.InspectResponse
		want string
	}{
		{"localhost", inspected("bridge", any6, any4), "127.0.0.1:1004"},
		{"localhost", inspected("bridge", any4), "127.0.0.1:1004"},
		{"localhost", inspected("bridge", any6), "localhost:1006"},
		{"localhost", inspected("bridge", network.PortBinding{HostPort: "1000"}), "127.0.0.1:1000"},
		{"192.0.2.7", inspected("bridge", any6, any4), "192.0.2.7:1004"},
		{"2001:db8::7", inspected("bridge", any4, any6), "[2001:db8::7]:1006"},
		{"docker.example", inspected("bridge", any6, any4), "docker.example:1004"},
		{"localhost", inspected("host"), "127.0.0.1:9092"},
	} {
		got, err := publishedAt(test.info, test.host, containerPort(kafkaPort))
		if err != nil || got != test.want {
			t.Errorf("%s: %s, want %s (%v)", test.host, got, test.want, err)
		}
	}
	if _, err := publishedAt(inspected("bridge"), "localhost", containerPort(kafkaPort)); !errors.Is(err, errNotPublished) {
		t.Error(err)
	}
}

// FX-42: names only where they resolve.
func TestNetworkHostResolvesForNeighbours(t *testing.T) {
	address := &network.EndpointSettings{IPAddress: netip.MustParseAddr("172.17.0.2")}
	aliased := &network.EndpointSettings{Aliases: []string{"0123456789ab", "kafka"}, IPAddress: netip.MustParseAddr("172.18.0.2")}
	plain := &network.EndpointSettings{Aliases: []string{"0123456789ab"}}
	for want, networks := range map[string]map[string]*network.EndpointSettings{
		"172.17.0.2":   {"bridge": address},
		"kafka":        {"mine": aliased, "bridge": address},
		"0123456789ab": {"mine": aliased, "yours": plain},
		"":             {"none": {}},
	} {
		i := inspected("bridge")
		i.NetworkSettings.Networks = networks
		if got := networkHost(i); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// FX-40: an image belongs to a release alone.
func TestReleasesAreToldFromCommits(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.2.3": true, "v1.2.3-rc.1": true, "v0.1.0": true,
		"(devel)": false, "": false, "v0.0.0-20261129235312-4a4bcd9aa0b1": false, "v1.2.4-0.20261129235312-4a4bcd9aa0b1": false,
		"v1.2.3-rc.1.0.20261129235312-4a4bcd9aa0b1": false, "v1.2.3+dirty": false,
	} {
		if isRelease(version) != want {
			t.Errorf("%q is a release: %v", version, !want)
		}
	}
}

// FX-40: the image that Run asks for is one that the release publishes.
func TestTheImageOfAReleaseIsWhatTheWorkflowPublishes(t *testing.T) {
	workflow, err := os.ReadFile("../../.github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"version=${GITHUB_REF_NAME#v}\n", `tags=(--tag "$IMAGE:$version")`} { // the tag vX.Y.Z without its v
		if !strings.Contains(string(workflow), line) {
			t.Errorf("the workflow has no %q", line)
		}
	}
	if got := imageOf("v1.2.3"); got != "ghcr.io/dozekafka/doze-kafka:1.2.3" {
		t.Error(got)
	}
}

// FX-46: of GOFLAGS only what says where modules are: -race needs cgo, -mod=vendor lacks the command.
func TestOnlyModuleFlagsReachTheBuild(t *testing.T) {
	if got := moduleFlags("-race -mod=vendor -modcacherw -buildvcs=false --modfile=x.mod -cover"); got != "-modcacherw --modfile=x.mod" {
		t.Error(got)
	}
}

// A recording is a test's log.
type recording struct {
	testing.TB
	lines []string
	after func()
}

func (r *recording) Log(args ...any)  { r.lines = append(r.lines, args[0].(string)) }
func (r *recording) Cleanup(f func()) { r.after = f }

// The whole log that testcontainers reads again after a start is written once, and nothing after the test.
func TestTestLogIsWrittenOnceAndNotAfterTheTest(t *testing.T) {
	r := &recording{TB: t}
	l := newTestLog(r)
	write := func(s string) {
		if _, err := l.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	write("a\nb\n")
	l.rewind()
	write("a\n")
	write("b\nc\n")
	l.rewind()
	write("a\nb\nc\nd\n")
	r.after()
	write("e\n")
	if got := strings.Join(r.lines, "|"); got != "doze-kafka: a|doze-kafka: b|doze-kafka: c|doze-kafka: d" {
		t.Error(got)
	}
}

// A guessed host of the engine's that is not reached is told with the way out; another error, or this machine's own, is not.
func TestAGuessedHostThatIsNotReachedIsToldWithTheWayOut(t *testing.T) {
	refused := fmt.Errorf("PUT: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")})
	for _, test := range []struct {
		host string
		last error
		want bool
	}{
		{"192.0.2.1", refused, true},
		{"192.0.2.1", fmt.Errorf("PUT: %w", context.DeadlineExceeded), true},
		{"192.0.2.1", errors.New("not ready: the broker is starting"), false},
		{"192.0.2.1", nil, false},
		{"localhost", refused, false},
		{"127.0.0.1", refused, false},
	} {
		err := unreachable(t.Context(), hosted{host: test.host}, test.last)
		if (err != nil) != test.want || err != nil && !strings.Contains(err.Error(), "TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1") {
			t.Errorf("%s, %v: %v", test.host, test.last, err)
		}
	}
}

// hosted is a container of an engine's on a host.
type hosted struct {
	testcontainers.Container
	host string
}

func (h hosted) Host(context.Context) (string, error) { return h.host, nil }
