// Package target gives a test the broker that it is about: ours, built from the repository (the default); a real Apache Kafka
// (DOZE_KAFKA_TARGET=kafka), which shows that the test asks for nothing that Kafka does not do; or one that runs already (BOOTSTRAP=host:port).
package target

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/proc"
)

// Options are the settings a test needs that are not the defaults, in the words of either broker.
type Options struct {
	Flags      []string          // of our broker: "--segment-bytes", "1048576"
	Properties map[string]string // of Apache Kafka: "log.segment.bytes": "1048576"
	Control    bool              // our broker serves its control API
}

// Broker is a broker under test. It is stopped when the test ends; a failed test prints the end of its log.
type Broker struct {
	t       testing.TB
	name    string
	addr    string
	dataDir string
	control string
	start   func(context.Context) error
	stop    func() error
	kill    func()
	logTail func(int) string
	running bool
}

// Start returns a broker that answers.
func Start(t testing.TB, o Options) *Broker {
	t.Helper()
	b := &Broker{t: t}
	switch {
	case os.Getenv("BOOTSTRAP") != "":
		b.name, b.addr = "BOOTSTRAP="+os.Getenv("BOOTSTRAP"), os.Getenv("BOOTSTRAP")
		return b
	case os.Getenv("DOZE_KAFKA_TARGET") == "kafka":
		b.useKafka(o)
	default:
		b.useOurs(o)
	}
	t.Cleanup(b.cleanup)
	b.Restart()
	return b
}

func (b *Broker) useKafka(o Options) {
	b.t.Helper()
	Need(b.t, "java", "mvn")
	server, err := kafka.New(b.t.Context(), b.t.TempDir(), o.Properties)
	if err != nil {
		b.t.Fatal(err)
	}
	b.name, b.addr, b.dataDir = "Apache Kafka "+kafka.Version(), server.Addr(), server.DataDir()
	b.start, b.stop, b.kill, b.logTail = server.Start, server.Stop, server.Kill, server.LogTail
}

func (b *Broker) useOurs(o Options) {
	b.t.Helper()
	dir := b.t.TempDir()
	binary := Binary(b.t)
	ports, err := kafka.FreePorts(2)
	if err != nil {
		b.t.Fatal(err)
	}
	b.name, b.addr, b.dataDir = "doze-kafka", fmt.Sprintf("127.0.0.1:%d", ports[0]), filepath.Join(dir, "data")
	http := "off"
	if o.Control {
		b.control = fmt.Sprintf("127.0.0.1:%d", ports[1])
		http = b.control
	}
	argv := slices.Concat([]string{binary, "--data-dir", b.dataDir, "--listeners", "PLAINTEXT://" + b.addr, "--http-listen", http}, o.Flags)
	var p *proc.Process
	b.start = func(ctx context.Context) (err error) {
		if p, err = proc.Start(filepath.Join(dir, "broker.log"), nil, argv...); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		if err := kafka.WaitReady(ctx, b.addr, p); err != nil {
			p.Kill()
			return err
		}
		return nil
	}
	b.stop = func() error { return p.Stop(30 * time.Second) }
	b.kill = func() { p.Kill() }
	b.logTail = func(n int) string { return p.LogTail(n) }
}

// Binary is the path of our broker's program: DOZE_KAFKA_BINARY, or one that is built for this test.
func Binary(t testing.TB) string {
	t.Helper()
	if binary := os.Getenv("DOZE_KAFKA_BINARY"); binary != "" {
		return binary
	}
	return build(t, t.TempDir())
}

// build compiles the broker from the parent module into dir.
func build(t testing.TB, dir string) string {
	t.Helper()
	_, self, _, _ := runtime.Caller(0)
	binary := filepath.Join(dir, "broker")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/broker")
	cmd.Dir = filepath.Join(filepath.Dir(self), "..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build ./cmd/broker: %v\n%s", err, out)
	}
	return binary
}

func (b *Broker) cleanup() {
	if b.running {
		b.running = false
		if err := b.stop(); err != nil {
			b.t.Errorf("%s: %v", b.name, err)
		}
	}
	if b.t.Failed() {
		b.t.Logf("end of the log of %s:\n%s", b.name, b.logTail(40))
	}
}

// Name is for a test's output: which broker it was.
func (b *Broker) Name() string { return b.name }

// Addr is the bootstrap address. It stays the same over a restart.
func (b *Broker) Addr() string { return b.addr }

// Control is the host:port of our broker's control API; "" of any other broker, and without Options.Control.
func (b *Broker) Control() string { return b.control }

// FirstDirty is the offset up to which Kafka's log cleaner has been in a partition, as it has written it down; -1: it has not been there.
func (b *Broker) FirstDirty(topic string, partition int32) int64 {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.DataDir(), "cleaner-offset-checkpoint"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		var offset int64
		if n, _ := fmt.Sscanf(line, topic+" "+fmt.Sprint(partition)+" %d", &offset); n == 1 {
			return offset
		}
	}
	return -1
}

// DataDir is the directory that holds the partitions' directories. A test that needs it, or any of the methods below, is skipped against
// a broker that was not started here.
func (b *Broker) DataDir() string {
	b.needOwn()
	return b.dataDir
}

// Kill ends the broker with SIGKILL.
func (b *Broker) Kill() {
	b.needOwn()
	b.running = false
	b.kill()
}

// Stop ends the broker in order.
func (b *Broker) Stop() {
	b.t.Helper()
	b.needOwn()
	b.running = false
	if err := b.stop(); err != nil {
		b.t.Fatalf("stop %s: %v", b.name, err)
	}
}

// Restart starts the broker on the same data directory and port, and returns once it answers.
func (b *Broker) Restart() {
	b.t.Helper()
	b.needOwn()
	if err := b.start(b.t.Context()); err != nil {
		b.t.Fatalf("start %s: %v", b.name, err)
	}
	b.running = true
}

func (b *Broker) needOwn() {
	if b.start == nil {
		b.t.Skip("needs a broker that the test starts itself, not BOOTSTRAP")
	}
}

// Need skips the test when a program it uses is not installed, and fails it instead when DOZE_KAFKA_REQUIRE (a comma-separated list, or
// "all") names that program: nothing is skipped where everything ought to be there.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	required := strings.Split(os.Getenv("DOZE_KAFKA_REQUIRE"), ",")
	for _, p := range programs {
		if _, err := exec.LookPath(p); err == nil {
			continue
		}
		if slices.Contains(required, p) || slices.Contains(required, "all") {
			t.Fatalf("%s is not installed, and DOZE_KAFKA_REQUIRE wants it", p)
		}
		t.Skipf("%s is not installed", p)
	}
}
