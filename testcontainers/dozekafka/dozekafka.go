// Package dozekafka starts doze-kafka, a single-node Kafka broker with its data
// on disk, for Go tests: Run in a container (testcontainers-go), Start in a
// container if there is a Docker engine and inside the test's process if not.
//
//	c, err := dozekafka.Run(ctx, dozekafka.WithTopics("orders:3"))
//	defer testcontainers.TerminateContainer(c)
//	...
//	brokers, err := c.Brokers(ctx)
//
// A broker is ready when Run or Start returns: the first produce, fetch or join
// of a group succeeds without a retry. No client ever sees a wrong address, as
// the broker's Kafka port is closed until the broker has been told its host port.
package dozekafka

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Ports of the broker in its container.
const (
	kafkaPort = "9092/tcp"
	httpPort  = "9080/tcp"
)

// stopTimeout is for SIGTERM, before SIGKILL; a stop takes milliseconds, at
// most the 5 s that a client may take to read its last answer.
const stopTimeout = 10 * time.Second

// Container is a running broker. Stop, Start and Terminate are those of
// testcontainers.Container; after each Start the broker is told its host port
// anew, and is ready when Start returns.
type Container struct {
	testcontainers.Container
	shake *handshake
}

// Run starts the broker in a container, from the image that belongs to this
// module's version; where that can be had from nowhere, from an image that is
// built from the module's source (WithBuildFromSource says more). Options are
// this package's and testcontainers' own. As throughout testcontainers, a
// container may be returned beside an error, for TerminateContainer.
func Run(ctx context.Context, opts ...testcontainers.ContainerCustomizer) (*Container, error) {
	return run(ctx, "", opts)
}

// RunImage is Run with an image of the caller's choice.
func RunImage(ctx context.Context, img string, opts ...testcontainers.ContainerCustomizer) (*Container, error) {
	if img == "" {
		return nil, fmt.Errorf("run dozekafka: the image's name is empty")
	}
	return run(ctx, img, opts)
}

func run(ctx context.Context, img string, opts []testcontainers.ContainerCustomizer) (*Container, error) {
	o, err := collect(opts)
	if err != nil {
		return nil, fmt.Errorf("run dozekafka: %w", err)
	}
	if img != "" && o.fromSource {
		return nil, fmt.Errorf("run dozekafka: WithBuildFromSource and an image (%s) exclude each other", img)
	}
	for attempt := 1; ; attempt++ {
		c, err := o.run(ctx, img, opts)
		if err == nil {
			return c, nil
		}
		if strings.Contains(err.Error(), "new reaper") {
			err = fmt.Errorf("%w (testcontainers' own helper container does not start; TESTCONTAINERS_RYUK_DISABLED=true does without it)", err)
		}
		if !o.stablePort || attempt == portAttempts || !portTaken(err) {
			return c, fmt.Errorf("run dozekafka: %w", err)
		}
		// Somebody took the port since it was looked at: another one.
		if c != nil {
			if err := testcontainers.TerminateContainer(c); err != nil {
				return nil, fmt.Errorf("run dozekafka: %w", err)
			}
		}
	}
}

// run is one attempt.
func (o *options) run(ctx context.Context, img string, opts []testcontainers.ContainerCustomizer) (*Container, error) {
	shake := &handshake{log: o.log}
	customize := append([]testcontainers.ContainerCustomizer{}, opts...)
	// What is the module's own comes last: whatever the options did, the
	// broker is told its address, and is ready when this returns.
	customize = append(customize, testcontainers.CustomizeRequestOption(func(req *testcontainers.GenericContainerRequest) error {
		return o.finish(ctx, req, shake)
	}))
	ctr, err := testcontainers.Run(ctx, img, customize...)
	if ctr == nil {
		return nil, err
	}
	return &Container{Container: ctr, shake: shake}, err
}

// Brokers are the bootstrap addresses for clients outside of Docker, such as
// the test itself: one, host:port. The port changes with every Start unless
// WithStablePort keeps it.
func (c *Container) Brokers(ctx context.Context) ([]string, error) {
	address, err := published(ctx, c.Container, kafkaPort)
	if err != nil {
		return nil, fmt.Errorf("brokers: %w", err)
	}
	return []string{address}, nil
}

// NetworkBrokers are the bootstrap addresses for clients in other containers
// of the same network: one, host:9092. The host is the container's alias in its
// one user-defined network; in several, its short id, which each resolves; in
// Docker's default bridge, which resolves no names, its address.
func (c *Container) NetworkBrokers(ctx context.Context) ([]string, error) {
	info, err := c.Inspect(ctx)
	if err != nil {
		return nil, fmt.Errorf("network brokers: %w", err)
	}
	host := networkHost(info)
	if host == "" {
		return nil, fmt.Errorf("network brokers: the container is in no network, or does not run")
	}
	return []string{net.JoinHostPort(host, strconv.Itoa(int(containerPort(kafkaPort).Num())))}, nil
}

// ControlURL is where /healthz, /readyz, /metrics and the control API
// (docs/control-api.md) are, such as http://127.0.0.1:32769. It changes with every Start.
func (c *Container) ControlURL(ctx context.Context) (string, error) {
	address, err := published(ctx, c.Container, httpPort)
	if err != nil {
		return "", fmt.Errorf("control URL: %w", err)
	}
	return "http://" + address, nil
}

// ClusterID is the cluster's id, 22 characters, as the broker told it when it
// last became ready.
func (c *Container) ClusterID() string { return c.shake.cluster() }

// Restart stops the broker as SIGTERM does and starts it again. It is ready
// on return; what was acknowledged, topics and offsets are there.
func (c *Container) Restart(ctx context.Context) error {
	timeout := stopTimeout
	if err := c.Stop(ctx, &timeout); err != nil {
		return fmt.Errorf("restart dozekafka: %w", err)
	}
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("restart dozekafka: %w", err)
	}
	return nil
}

// Kill ends the broker with SIGKILL, as a crash of its process does, and waits
// until it is gone. Start brings it back. What was acknowledged is there then: the operating
// system keeps what a process had written.
func (c *Container) Kill(ctx context.Context) error {
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return fmt.Errorf("kill dozekafka: %w", err)
	}
	defer func() { _ = docker.Close() }() // idle connections, of no more use
	gone := docker.ContainerWait(ctx, c.GetContainerID(), client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	if _, err := docker.ContainerKill(ctx, c.GetContainerID(), client.ContainerKillOptions{Signal: "SIGKILL"}); err != nil {
		return fmt.Errorf("kill dozekafka: %w", err)
	}
	select {
	case <-gone.Result:
		return nil
	case err := <-gone.Error:
		return fmt.Errorf("kill dozekafka: %w", err)
	}
}
