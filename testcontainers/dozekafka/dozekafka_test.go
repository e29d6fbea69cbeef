package dozekafka_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/dozekafka/doze-kafka/testcontainers/dozekafka"
)

// FX-40, FX-42: the broker is ready when Run returns, with the topics that were asked for.
func TestRunIsReadyAtOnce(t *testing.T) {
	c := run(t, dozekafka.WithTopics("orders:3"), dozekafka.WithAutoCreateTopics(true), dozekafka.WithTestLog(t))
	addrs := brokers(t, c)
	if len(addrs) != 1 || strings.HasPrefix(addrs[0], "localhost:") {
		t.Errorf("brokers %v", addrs)
	}
	produce(t, addrs, "made", "b")
	produce(t, addrs, "orders", "a")
	consume(t, addrs, "g", "orders", "a")
	if len(c.ClusterID()) != 22 {
		t.Errorf("cluster id %q", c.ClusterID())
	}
	url, err := c.ControlURL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if host, _, _ := net.SplitHostPort(addrs[0]); !strings.HasPrefix(url, "http://"+host+":") {
		t.Errorf("control URL %s", url)
	}
}

// FX-43: a second container on the volume of a first one that was terminated finds everything; the volume
// has no label by which the reaper would remove it.
func TestPersistentVolumeOutlivesItsContainer(t *testing.T) {
	needDocker(t)
	name := fmt.Sprintf("dozekafka-test-%d", time.Now().UnixNano())
	docker, err := testcontainers.NewDockerClientWithOpts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer docker.Close()
	t.Cleanup(func() {
		if _, err := docker.VolumeRemove(context.Background(), name, client.VolumeRemoveOptions{}); err != nil {
			t.Error(err)
		}
	})
	clusterID := ""
	for i := range 2 {
		c, err := start(t.Context(), dozekafka.WithPersistentVolume(name), dozekafka.WithTopics("orders:2"))
		if err != nil {
			if c != nil {
				testcontainers.CleanupContainer(t, c)
			}
			t.Fatal(err)
		}
		addrs := brokers(t, c)
		if i == 0 {
			clusterID = c.ClusterID()
			produce(t, addrs, "other", "a", "b")
			consume(t, addrs, "g", "other", "a", "b")
		} else {
			if c.ClusterID() != clusterID {
				t.Errorf("cluster id %s, was %s", c.ClusterID(), clusterID)
			}
			produce(t, addrs, "other", "c")
			consume(t, addrs, "g", "other", "c")
		}
		if err := testcontainers.TerminateContainer(c); err != nil {
			t.Fatal(err)
		}
	}
	volume, err := docker.VolumeInspect(t.Context(), name, client.VolumeInspectOptions{})
	if err != nil || len(volume.Volume.Labels) > 0 {
		t.Errorf("labels %v, %v", volume.Volume.Labels, err)
	}
}

// FX-44: over Kill and Start, and over Restart, nothing acknowledged is lost, and clients are told the port of now.
func TestBrokerComesBackAfterKillAndRestart(t *testing.T) {
	c := run(t, dozekafka.WithTestLog(t))
	produce(t, brokers(t, c), "demo", "a")
	consume(t, brokers(t, c), "g", "demo", "a")
	clusterID := c.ClusterID()
	if err := c.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state, err := c.State(t.Context()); err != nil || state.Running || state.ExitCode != 137 {
		t.Fatalf("after Kill: %+v, %v", state, err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	produce(t, brokers(t, c), "demo", "b")
	consume(t, brokers(t, c), "g", "demo", "b")
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	produce(t, brokers(t, c), "demo", "c")
	consume(t, brokers(t, c), "g", "demo", "c")
	if c.ClusterID() != clusterID {
		t.Errorf("cluster id %s, was %s", c.ClusterID(), clusterID)
	}
}

// FX-44: with WithStablePort a client that was there before a kill goes on by itself.
func TestStablePortStaysOverKillAndRestart(t *testing.T) {
	c := run(t, dozekafka.WithStablePort())
	addrs := brokers(t, c)
	cl := newClient(t, addrs)
	for i, again := range []func() error{
		func() error { return nil },
		func() error {
			if err := c.Kill(t.Context()); err != nil {
				return err
			}
			return c.Start(t.Context())
		},
		func() error { return c.Restart(t.Context()) },
	} {
		if err := again(); err != nil {
			t.Fatal(err)
		}
		if now := brokers(t, c); now[0] != addrs[0] {
			t.Errorf("brokers %v, were %v", now, addrs)
		}
		if err := cl.Ping(t.Context()); err != nil { // notices connections that the kill cut
			if err := cl.Ping(t.Context()); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
		produce(t, addrs, "demo", fmt.Sprint(i))
	}
	consume(t, addrs, "g", "demo", "0", "1", "2")
}

// FX-10, FX-42: a client in a container of the same network, and one of the
// default bridge, are each told an address that works for them, as is the test itself at the same time.
func TestClientsBesideTheBrokerReachIt(t *testing.T) {
	needDocker(t)
	clientBinary := filepath.Join(t.TempDir(), "client")
	build := exec.Command("go", "build", "-o", clientBinary, "./testdata/client")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH, "GOFLAGS=-buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	nw, err := network.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	testcontainers.CleanupNetwork(t, nw)
	for _, test := range []struct {
		name  string
		join  func(alias string) testcontainers.ContainerCustomizer
		alias string
	}{
		{"network with an alias", func(alias string) testcontainers.ContainerCustomizer {
			return network.WithNetwork([]string{alias}, nw)
		}, "kafka"},
		{"default bridge", func(string) testcontainers.ContainerCustomizer { return testcontainers.WithEnv(nil) }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := run(t, test.join("kafka"))
			produce(t, brokers(t, c), "demo", "from the host")
			inside, err := c.NetworkBrokers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if test.alias != "" && inside[0] != test.alias+":9092" {
				t.Errorf("network brokers %v", inside)
			}
			info, err := c.Inspect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			// The broker's image has all that a static binary needs.
			beside, err := testcontainers.Run(t.Context(), info.Config.Image, test.join("client"),
				testcontainers.WithFiles(testcontainers.ContainerFile{HostFilePath: clientBinary, ContainerFilePath: "/client", FileMode: 0o755}),
				testcontainers.WithEntrypoint("/client"), testcontainers.WithCmd(inside[0], "demo", "from beside"),
				testcontainers.WithWaitStrategy(wait.ForExit()))
			testcontainers.CleanupContainer(t, beside)
			if err != nil {
				t.Fatal(err)
			}
			state, err := beside.State(t.Context())
			if err != nil || state.ExitCode != 0 {
				logs, _ := beside.Logs(t.Context())
				text, _ := io.ReadAll(logs)
				t.Errorf("the client ended with %d: %v\n%s", state.ExitCode, err, text)
			}
			consume(t, brokers(t, c), "host", "demo", "from the host", "from beside")
		})
	}
}

// FX-41: the user's own hooks and wait strategies, which replace all others in
// testcontainers, leave the handshake alone, and hooks find a broker that is ready.
func TestUsersHooksAndWaitsLeaveTheHandshakeAlone(t *testing.T) {
	hooked := 0
	c := run(t,
		testcontainers.WithLifecycleHooks(testcontainers.ContainerLifecycleHooks{
			PostStarts: []testcontainers.ContainerHook{func(ctx context.Context, c testcontainers.Container) error {
				hooked++
				host, err := c.Host(ctx)
				if err != nil {
					return err
				}
				port, err := c.MappedPort(ctx, "9092/tcp")
				if err != nil {
					return err
				}
				produce(t, []string{net.JoinHostPort(host, port.Port())}, "hook", "from the hook")
				return nil
			}},
		}),
		testcontainers.WithWaitStrategy(wait.ForLog("Kafka Server started")),
		testcontainers.WithExposedPorts("9999/tcp"),
	)
	produce(t, brokers(t, c), "demo", "a")
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	produce(t, brokers(t, c), "demo", "b")
	consume(t, brokers(t, c), "g", "demo", "a", "b")
	consume(t, brokers(t, c), "g2", "hook", "from the hook", "from the hook")
	if hooked != 2 {
		t.Errorf("the hook ran %d times", hooked)
	}
}

// FX-41: a container that is reused is told its address again, and stays as it is.
func TestReusedContainerStaysReady(t *testing.T) {
	name := fmt.Sprintf("dozekafka-test-%d", time.Now().UnixNano())
	first := run(t, testcontainers.WithReuseByName(name))
	produce(t, brokers(t, first), "demo", "a")
	second := run(t, testcontainers.WithReuseByName(name))
	if first.GetContainerID() != second.GetContainerID() || first.ClusterID() != second.ClusterID() {
		t.Errorf("containers %s and %s", first.GetContainerID(), second.GetContainerID())
	}
	consume(t, brokers(t, second), "g", "demo", "a")
}

// FX-2, FX-40: what a broker does not take is told before a container is started for nothing.
func TestSettingsThatCannotBeAreToldAtOnce(t *testing.T) {
	for want, opt := range map[string]testcontainers.ContainerCustomizer{
		"DOZE_KAFKA_FSYNC_INTERVAL":          dozekafka.WithSetting("fsync-interval", "soon"),
		"DOZE_KAFKA_FSYNK_INTERVAL":          dozekafka.WithSetting("fsynk-interval", "1s"),
		"DOZE_KAFKA_LOG_LEVEL":               dozekafka.WithLogLevel("loud"),
		"DOZE_KAFKA_TOPICS":                  dozekafka.WithTopics("a:b"),
		"DOZE_KAFKA_LISTENERS is set by the": dozekafka.WithSetting("--listeners", "A://:1"),
		"is not the name of a volume":        dozekafka.WithPersistentVolume("./data"),
		"neither PowerLoss nor ProcessCrash": dozekafka.WithDurability(7),
	} {
		began := time.Now()
		c, err := dozekafka.RunImage(t.Context(), "none", opt)
		if c != nil || err == nil || !strings.HasPrefix(err.Error(), "run dozekafka: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s took %v", want, took)
		}
	}
}

// A broker that ends at once is not waited for: its last words are the error.
func TestABrokerThatEndsIsTheError(t *testing.T) {
	needDocker(t)
	began := time.Now()
	c, err := start(t.Context(), testcontainers.WithEnv(map[string]string{"KAFKA_LOG_SEGMENT_BYTES": "much"}))
	if c == nil {
		t.Fatalf("no container beside the error %v", err)
	}
	testcontainers.CleanupContainer(t, c)
	for _, want := range []string{"run dozekafka: ", "exit code 2", "KAFKA_LOG_SEGMENT_BYTES"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "not published") {
		t.Errorf("beside its last words there is what follows from them: %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	for env, want := range map[[2]string]string{
		{"DOZE_KAFKA_HTTP_LISTEN", "off"}:    "DOZE_KAFKA_HTTP_LISTEN is set by the module",
		{"DOZE_KAFKA_SEGMENT_BYTES", "much"}: "DOZE_KAFKA_SEGMENT_BYTES=much: ",
		{"DOZE_KAFKA_SEGMENT_BITES", "1"}:    "DOZE_KAFKA_SEGMENT_BITES: no setting of this name",
	} {
		c, err := start(t.Context(), testcontainers.WithEnv(map[string]string{env[0]: env[1]}))
		if c != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: container %v, %v", env, c != nil, err)
		}
	}
}

// FX-41: with DOCKER_HOST=tcp://... the broker is where the engine is, here at 127.0.0.2.
func TestRemoteDockerHost(t *testing.T) {
	needDocker(t)
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	if _, err := os.Stat("/var/run/docker.sock"); err != nil {
		t.Skipf("the engine is not at /var/run/docker.sock: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go forward(l, "/var/run/docker.sock")
	for _, name := range []string{"TestRunIsReadyAtOnce", "TestStablePortStaysOverKillAndRestart"} {
		out := runSelf(t, name, "DOCKER_HOST=tcp://"+l.Addr().String())
		if !strings.Contains(out, "Resolved Docker Host: tcp://127.0.0.2:") {
			t.Errorf("the engine was not reached over TCP:\n%s", out)
		}
	}
}

// runSelf runs one test of this binary in a process of its own, as testcontainers
// looks at its environment once in a process.
func runSelf(t *testing.T, name string, env ...string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+name+"$", "-test.v", "-test.count=1")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "TESTCONTAINERS_HOST_OVERRIDE=") { // env says where the engine is
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "--- PASS: "+name) {
		t.Errorf("%s with %v: %v\n%s", name, env, err, &out)
	}
	return out.String()
}

// forward takes connections for a Unix socket until the listener is closed.
func forward(l net.Listener, socket string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			to, err := net.Dial("unix", socket)
			if err != nil {
				return
			}
			defer to.Close()
			var both sync.WaitGroup
			both.Go(func() {
				_, _ = io.Copy(to, from)
				_ = to.(*net.UnixConn).CloseWrite()
			})
			both.Go(func() {
				_, _ = io.Copy(from, to)
				_ = from.(*net.TCPConn).CloseWrite()
			})
			both.Wait()
		}()
	}
}
