package dozekafka

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"

	"github.com/dozekafka/doze-kafka/pkg/config"
)

// moduleEnv is what the module sets: the handshake rests on it.
var moduleEnv = map[string]string{
	config.Prefix + "WAIT_FOR_ENDPOINT": "true",
	config.Prefix + "LISTENERS":         "PLAINTEXT://:9092",
	config.Prefix + "HTTP_LISTEN":       ":9080",
	config.Prefix + "CONTAINER":         "true",
	config.Prefix + "DATA_DIR":          dataDir,
}

// owned are the variables that options may not set.
var owned = slices.Concat(slices.Sorted(maps.Keys(moduleEnv)),
	[]string{config.Prefix + "HOST_ENDPOINT", "KAFKA_LISTENERS", "KAFKA_CFG_LISTENERS"})

func ownedError(variable string) error {
	return fmt.Errorf("%s is set by the module, which tells the broker its address and where its data is", variable)
}

// finish makes the request one whose broker is told its address and is ready
// when the container has started, whatever options were applied before it.
func (o *options) finish(ctx context.Context, req *testcontainers.GenericContainerRequest, shake *handshake) error {
	for _, name := range owned {
		if _, set := req.Env[name]; set {
			return ownedError(name)
		}
	}
	if err := check(req.Env); err != nil { // testcontainers.WithEnv
		return err
	}
	if req.Image == "" && !req.ShouldBuildImage() {
		img, err := o.image(ctx)
		if err != nil {
			return err
		}
		req.Image = img
	}
	if req.Env == nil {
		req.Env = map[string]string{}
	}
	maps.Copy(req.Env, o.env)
	maps.Copy(req.Env, moduleEnv)
	for _, port := range []string{kafkaPort, httpPort} {
		if !slices.Contains(req.ExposedPorts, port) {
			req.ExposedPorts = append(req.ExposedPorts, port)
		}
	}
	if o.volume != "" {
		// Of all ways only this leaves the volume without the session's labels.
		hostConfig(req, func(h *container.HostConfig) { h.Binds = append(h.Binds, o.volume+":"+dataDir) })
	}
	if o.stablePort {
		binding, err := freePort(ctx)
		if err != nil {
			return err
		}
		hostConfig(req, func(h *container.HostConfig) {
			if h.PortBindings == nil {
				h.PortBindings = network.PortMap{}
			}
			h.PortBindings[containerPort(kafkaPort)] = []network.PortBinding{binding}
		})
	}
	if o.log != nil {
		if req.LogConsumerCfg == nil {
			req.LogConsumerCfg = &testcontainers.LogConsumerConfig{}
		}
		req.LogConsumerCfg.Consumers = append(req.LogConsumerCfg.Consumers, o.log)
	}
	// First of all hooks: those of the user find a broker that is ready.
	req.LifecycleHooks = append([]testcontainers.ContainerLifecycleHooks{
		{PostStarts: []testcontainers.ContainerHook{shake.do}},
	}, req.LifecycleHooks...)
	req.WaitingFor = &readiness{user: req.WaitingFor, shake: shake}
	return nil
}

func hostConfig(req *testcontainers.GenericContainerRequest, modify func(*container.HostConfig)) {
	before := req.HostConfigModifier
	req.HostConfigModifier = func(h *container.HostConfig) {
		if before != nil {
			before(h)
		}
		modify(h)
	}
}

// Host ports of WithStablePort come from below those that systems hand out by
// themselves: while the broker is down, no outgoing connection takes its port.
const (
	lowestPort  = 20000
	highestPort = 30000
)

// portAttempts bounds how often another port is tried if one turns out to be taken.
const portAttempts = 5

// freePort is a host port for Docker to bind.
func freePort(ctx context.Context) (network.PortBinding, error) {
	host, err := daemonHost(ctx)
	if err != nil {
		return network.PortBinding{}, err
	}
	ip, local := loopbackIP(host)
	for range 100 {
		port := strconv.Itoa(lowestPort + rand.IntN(highestPort-lowestPort))
		if !local { // the daemon's machine can't be asked: what is taken shows at the start
			return network.PortBinding{HostPort: port}, nil
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(ip.String(), port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return network.PortBinding{}, err
		}
		return network.PortBinding{HostIP: ip, HostPort: port}, nil
	}
	return network.PortBinding{}, fmt.Errorf("WithStablePort: no free port from %d to %d", lowestPort, highestPort)
}

// portTaken says whether a start failed as somebody else has the port.
func portTaken(err error) bool {
	text := err.Error()
	return strings.Contains(text, "port is already allocated") || strings.Contains(text, "address already in use")
}

// daemonHost is where published ports are.
func daemonHost(ctx context.Context) (string, error) {
	p, err := testcontainers.NewDockerProvider()
	if err != nil {
		return "", err
	}
	defer func() { _ = p.Close() }() // idle connections, of no more use
	return p.DaemonHost(ctx)
}

// loopbackIP is the address of a host that is this machine's loopback.
func loopbackIP(host string) (ip netip.Addr, ok bool) {
	ip, err := netip.ParseAddr(loopback(host))
	return ip, err == nil && ip.IsLoopback()
}

func containerPort(port string) network.Port { return network.MustParsePort(port) }
