// Package image holds the container image to what is promised of it, with a real Docker engine: the image itself, compose, service containers as
// GitHub's runner makes them, volumes and users, bridge networks, stops and kills.
package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// repository is where releases are published; compose and README name it.
const repository = "ghcr.io/dozekafka/doze-kafka"

// tag is that of the image under test, whatever its name outside of this package.
const tag = "conformance"

// image is the image under test: DOZE_KAFKA_IMAGE, or one that is built of this checkout.
const image = repository + ":" + tag

// dataDir is where the image keeps its data.
const dataDir = "/var/lib/kafka/data"

// TestMain makes the images once. Without an engine the tests say themselves that they are skipped, or fail.
func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

// scratch is a directory for what the tests build.
var scratch string

func runTests(m *testing.M) (code int) {
	var err error
	if scratch, err = os.MkdirTemp("", "doze-image-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	if engineError() == nil {
		if err := prepare(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// prepare gives the image under test its name here.
func prepare() error {
	if given := os.Getenv("DOZE_KAFKA_IMAGE"); given != "" {
		_, err := docker("tag", given, image)
		return err
	}
	_, err := docker("buildx", "build", "--quiet", "--load", "--tag", image, root())
	return err
}

// root is the checkout.
func root() string {
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		panic(err)
	}
	return dir
}

// engineError says why there is no Docker engine to be used.
func engineError() error {
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("docker is not installed")
	}
	if _, err := docker("version", "--format", "{{.Server.Version}}"); err != nil {
		return fmt.Errorf("no Docker engine answers: %w", err)
	}
	return nil
}

// needEngine skips a test where there is no engine, and fails it where DOZE_KAFKA_REQUIRE wants "docker".
func needEngine(t *testing.T) {
	t.Helper()
	target.Need(t, "docker")
	err := engineError()
	if err == nil {
		return
	}
	if required("docker") {
		t.Fatal(err)
	}
	t.Skip(err)
}

// required says whether DOZE_KAFKA_REQUIRE names something.
func required(what string) bool {
	list := strings.Split(os.Getenv("DOZE_KAFKA_REQUIRE"), ",")
	return slices.Contains(list, what) || slices.Contains(list, "all")
}

// commandLimit bounds one command: an engine that hangs should fail a test by name.
const commandLimit = 5 * time.Minute

// docker runs the command line and returns what it printed.
func docker(args ...string) (string, error) { return command(nil, "docker", args...) }

// command runs a program with more environment. The error has what it printed.
func command(env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.String(), errs.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// must is docker for a command that has to succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := docker(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// gone removes what a test made; what is not there any more is no error.
func gone(t *testing.T, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := docker(args...); err != nil && !strings.Contains(err.Error(), "No such") && !strings.Contains(err.Error(), "not found") {
			t.Error(err)
		}
	})
}

var names atomic.Int64

// name is one that no other run uses.
func name(kind string) string { return fmt.Sprintf("doze-%s-%d-%d", kind, os.Getpid(), names.Add(1)) }

// newVolume is a fresh named volume.
func newVolume(t *testing.T) string {
	t.Helper()
	v := name("volume")
	must(t, "volume", "create", v)
	gone(t, "volume", "rm", v)
	return v
}

// newNetwork is a bridge network of the test's own.
func newNetwork(t *testing.T) string {
	t.Helper()
	n := name("net")
	must(t, "network", "create", n)
	gone(t, "network", "rm", n)
	return n
}

// A container is one of the image under test, or of another.
type container struct {
	t    *testing.T
	name string
}

// create makes a container; args are those of docker create, the image and all.
func create(t *testing.T, args ...string) *container {
	t.Helper()
	c := &container{t, name("c")}
	must(t, append([]string{"create", "--name", c.name}, args...)...)
	gone(t, "rm", "--force", "--volumes", c.name)
	t.Cleanup(func() { // before the removal
		if t.Failed() {
			logs, _ := exec.Command("docker", "logs", "--tail", "40", c.name).CombinedOutput() // as far as there are any
			t.Logf("log of %s:\n%s", c.name, logs)
		}
	})
	return c
}

// run is create and start.
func run(t *testing.T, args ...string) *container {
	t.Helper()
	c := create(t, args...)
	c.start()
	return c
}

func (c *container) start() {
	c.t.Helper()
	must(c.t, "start", c.name)
}

// inspect is one value of docker inspect.
func (c *container) inspect(format string) string {
	c.t.Helper()
	return must(c.t, "inspect", "--format", format, c.name)
}

// healthLimit bounds the wait for a state.
const healthLimit = 30 * time.Second

// await polls until a value of docker inspect is the wanted one.
func (c *container) await(format, want string) {
	c.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(healthLimit); ; <-tick.C {
		got := c.inspect(format)
		if got == want {
			return
		}
		if time.Now().After(end) || strings.HasPrefix(format, "{{.State.Health") && c.inspect("{{.State.Running}}") != "true" {
			c.t.Fatalf("%s of %s is %q, want %q", format, c.name, got, want)
		}
	}
}

// healthy waits for the image's own health check.
func (c *container) healthy() *container {
	c.t.Helper()
	c.await("{{.State.Health.Status}}", "healthy")
	return c
}

// exit waits for the end and returns the exit code and the log.
func (c *container) exit() (code int, log string) {
	c.t.Helper()
	c.await("{{.State.Running}}", "false")
	code, err := strconv.Atoi(c.inspect("{{.State.ExitCode}}"))
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := exec.Command("docker", "logs", c.name).CombinedOutput()
	if err != nil {
		c.t.Fatal(err)
	}
	return code, string(out)
}

// ip is the container's address in a network.
func (c *container) ip(network string) string {
	c.t.Helper()
	return c.inspect(fmt.Sprintf("{{(index .NetworkSettings.Networks %q).IPAddress}}", network))
}

// freePort is a TCP port of the loopback interface that nobody used a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	ports, err := kafka.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(ports[0])
}

// published runs the image under test with its Kafka port published at a port of the loopback interface, and returns its address for clients
// here. The port stays the same over stops, so that clients come back.
func published(t *testing.T, args ...string) (c *container, addr string) {
	t.Helper()
	port := freePort(t)
	args = slices.Concat([]string{"--publish", "127.0.0.1:" + port + ":9092", "--env", "DOZE_KAFKA_HOST_ENDPOINT=127.0.0.1:" + port}, args, []string{image})
	return run(t, args...).healthy(), "127.0.0.1:" + port
}

// there says whether a command of docker's that asks for something succeeds.
func there(args ...string) bool {
	_, err := docker(args...)
	return err == nil
}

// self is the user and group of this process, as docker wants them.
func self() string { return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()) }

// gateway is this machine's address in a network.
func gateway(t *testing.T, network string) string {
	t.Helper()
	return must(t, "network", "inspect", "--format", "{{(index .IPAM.Config 0).Gateway}}", network)
}
