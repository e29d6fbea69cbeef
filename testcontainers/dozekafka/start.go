package dozekafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/dozekafka/doze-kafka/pkg/broker"
)

// A Fixture is a broker for the time of a test: in a container or in the test's process.
type Fixture struct {
	container *Container
	local     *local
}

// Start starts a broker for the time of a test: in a container, as Run does,
// if there is a Docker engine, and otherwise inside the test's process, where
// it is the same broker with its data in the test's temporary directory. What
// goes wrong ends the test. The test's log says which of the two it is.
//
// In the process the broker's settings take effect, by this package's options and by
// testcontainers.WithEnv; an option that needs a container ends the test.
func Start(tb testing.TB, opts ...testcontainers.ContainerCustomizer) *Fixture {
	tb.Helper()
	o, err := collect(opts)
	if err != nil {
		tb.Fatalf("dozekafka: %v", err)
	}
	why := "WithInProcess"
	if !o.inProcess {
		unusable := dockerUnusable(tb.Context())
		if unusable == nil {
			return startContainer(tb, opts)
		}
		why = "there is no Docker engine of use: " + unusable.Error()
	}
	l, err := startLocal(tb.Context(), o, opts, tb.TempDir())
	if err != nil {
		tb.Fatalf("dozekafka: in process (%s): %v", why, err)
	}
	tb.Cleanup(func() {
		if err := l.broker.Stop(); err != nil {
			tb.Errorf("dozekafka: %v", err)
		}
	})
	tb.Logf("dozekafka: in process at %s (%s)", l.broker.Addr(), why)
	return &Fixture{local: l}
}

func startContainer(tb testing.TB, opts []testcontainers.ContainerCustomizer) *Fixture {
	tb.Helper()
	c, err := Run(tb.Context(), opts...)
	if c != nil {
		testcontainers.CleanupContainer(tb, c)
	}
	if err != nil {
		tb.Fatalf("%v\n(dozekafka.WithInProcess does without Docker)", err)
	}
	tb.Logf("dozekafka: in container %.12s", c.GetContainerID())
	return &Fixture{container: c}
}

// askTimeout bounds the question whether there is a Docker engine.
const askTimeout = 5 * time.Second

// dockerUnusable is why there is no engine that runs Linux containers, nil if there is one.
func dockerUnusable(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil { // testcontainers does, where it finds nothing
			err = fmt.Errorf("%v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if os.Getenv(client.EnvOverrideHost) != "" {
		// testcontainers looks for another engine if this one does not answer; who names one means it.
		named, err := client.New(client.FromEnv)
		if err != nil {
			return err
		}
		_, err = named.Ping(ctx, client.PingOptions{})
		if err = errors.Join(err, named.Close()); err != nil {
			return err
		}
	}
	docker, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = docker.Close() }() // idle connections, of no more use
	version, err := docker.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return err
	}
	if version.Os != "linux" {
		return fmt.Errorf("it runs %s containers", version.Os)
	}
	return nil
}

// Brokers are the bootstrap addresses: one, host:port.
func (f *Fixture) Brokers(ctx context.Context) ([]string, error) {
	if f.container != nil {
		return f.container.Brokers(ctx)
	}
	return []string{f.local.broker.Addr()}, nil
}

// ControlURL is where /healthz, /readyz, /metrics and the control API are.
func (f *Fixture) ControlURL(ctx context.Context) (string, error) {
	if f.container != nil {
		return f.container.ControlURL(ctx)
	}
	return "http://" + f.local.broker.HTTPAddr(), nil
}

// ClusterID is the cluster's id, 22 characters.
func (f *Fixture) ClusterID() string {
	if f.container != nil {
		return f.container.ClusterID()
	}
	return f.local.broker.ClusterID()
}

// Restart stops the broker and starts it again. It is ready on return; what
// was acknowledged, topics and offsets are there. In the process it keeps its port.
func (f *Fixture) Restart(ctx context.Context) error {
	if f.container != nil {
		return f.container.Restart(ctx)
	}
	return f.local.restart(ctx)
}

// Container is the container, nil in the process. It can be killed and stopped.
func (f *Fixture) Container() *Container { return f.container }

// Broker is the broker in the process, nil in a container.
func (f *Fixture) Broker() *broker.Broker {
	if f.local == nil {
		return nil
	}
	return f.local.broker
}

// needsContainer names what options ask for that only a container has.
func needsContainer(o *options, opts []testcontainers.ContainerCustomizer) (env map[string]string, err error) {
	var what []string
	if o.volume != "" {
		what = append(what, "WithPersistentVolume")
	}
	if o.fromSource {
		what = append(what, "WithBuildFromSource")
	}
	var req testcontainers.GenericContainerRequest
	for _, opt := range opts {
		if err := opt.Customize(&req); err != nil {
			return nil, err
		}
	}
	env = req.Env
	req.Env = nil
	req.Logger = nil // testcontainers' own lines, of which there are none
	for _, part := range []reflect.Value{reflect.ValueOf(req.ContainerRequest), reflect.ValueOf(req)} {
		for i := range part.NumField() {
			if f := part.Type().Field(i); !f.Anonymous && !part.Field(i).IsZero() {
				what = append(what, "an option that sets "+f.Name)
			}
		}
	}
	if dockerfile := reflect.ValueOf(req.FromDockerfile); !dockerfile.IsZero() {
		what = append(what, "an option that sets FromDockerfile")
	}
	if len(what) > 0 {
		slices.Sort(what)
		return nil, fmt.Errorf("only a container can have what %s asks for", strings.Join(what, ", "))
	}
	return env, nil
}
