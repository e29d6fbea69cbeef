package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// asBroker makes this test binary the program itself, so that a test can run
// the real process: its signals, its exit code, its death.
const asBroker = "DOZE_KAFKA_TEST_AS_BROKER"

func TestMain(m *testing.M) {
	if os.Getenv(asBroker) != "" {
		if err := os.Unsetenv(asBroker); err != nil {
			panic(err)
		}
		main()
	}
	os.Exit(m.Run())
}

// A process is the program, running.
type process struct {
	*exec.Cmd
	addr string
	log  *bytes.Buffer // to be read after the exit only
	done chan struct{} // the log has ended
}

var listening = regexp.MustCompile(`PLAINTEXT://(127\.0\.0\.1:\d+)`)

// environment is the test's own, without what it says to this suite and not to a broker.
func environment() []string {
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DOZE_KAFKA_") })
	return append(own, asBroker+"=1")
}

// startProcess starts the program and returns when it is ready.
func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(exe, args...), log: new(bytes.Buffer), done: make(chan struct{})}
	p.Env = environment()
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() }) // it is over already, as a rule
	ready := make(chan string, 1)
	go func() {
		defer close(p.done)
		addr := ""
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.log.WriteString(s.Text() + "\n")
			if m := listening.FindStringSubmatch(s.Text()); m != nil && addr == "" {
				addr = m[1]
			}
			if strings.Contains(s.Text(), "Kafka Server started") {
				ready <- addr
			}
		}
	}()
	select {
	case p.addr = <-ready:
	case <-p.done:
		t.Fatalf("the broker ended:\n%s", p.log)
	case <-time.After(20 * time.Second):
		t.Fatal("the broker is not ready after 20 s")
	}
	return p
}

// exit waits for the end and returns the exit code, -1 for a signal's.
func (p *process) exit(t *testing.T) int {
	t.Helper()
	<-p.done
	err := p.Wait()
	if err != nil && p.ProcessState == nil {
		t.Fatal(err)
	}
	return p.ProcessState.ExitCode()
}

func localArgs(dir string) []string {
	return []string{"--data-dir", dir, "--listeners", "PLAINTEXT://127.0.0.1:0", "--http-listen", "off"}
}

// produce sends values with acks=all, one after the other, until there are n or the broker is gone.
func produce(t *testing.T, addr string, from, n int) (acknowledged []string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.AllowAutoTopicCreation(), kgo.RecordRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for i := range n {
		v := fmt.Sprint(from + i)
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "demo", Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		acknowledged = append(acknowledged, v)
	}
	return acknowledged
}

func consume(t *testing.T, addr string, n int) (values []string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"demo": {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for len(values) < n {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		for _, r := range f.Records() {
			values = append(values, string(r.Value))
		}
	}
	return values
}

// ST-50, ST-53: the process's records are there after SIGTERM, which ends it
// with 0, and after SIGKILL, over and over on one directory.
func TestRecordsOutliveTheProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGTERM on Windows")
	}
	dir := t.TempDir()
	var want []string
	for i := range 6 {
		p := startProcess(t, localArgs(dir)...)
		want = append(want, produce(t, p.addr, len(want), 5)...)
		if got := consume(t, p.addr, len(want)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("start %d: consumed %v, acknowledged were %v", i, got, want)
		}
		if i%2 == 0 {
			if err := p.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			p.exit(t)
			continue
		}
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := p.exit(t); code != exitOK {
			t.Errorf("exit code %d after SIGTERM:\n%s", code, p.log)
		}
	}
}

// FX-11: SIGTERM also ends, with 0, a broker that waits for its endpoint.
func TestSIGTERMEndsAWait(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGTERM on Windows")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "--data-dir", t.TempDir(), "--listeners", "PLAINTEXT://127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--wait-for-endpoint")
	cmd.Env = environment()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it is over already, as a rule
	var log strings.Builder
	for s := bufio.NewScanner(stderr); s.Scan(); {
		log.WriteString(s.Text() + "\n")
		if strings.Contains(s.Text(), "stay closed until PUT /v1/endpoint") {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
}

func runCommand(args, environ []string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, environ, &out, &errs)
	return code, out.String(), errs.String()
}

// FX-2: a bad value stops the start with exit code 2 and one line per mistake, all of them.
func TestMistakesStopTheStartWithALineEach(t *testing.T) {
	code, _, stderr := runCommand(
		[]string{"--fsync-interval", "soon", "--no-such-flag"},
		[]string{"DOZE_KAFKA_NUM_PARTITIONS=many"})
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), stderr)
	}
	for _, want := range []string{"--fsync-interval", "soon", "--no-such-flag", "DOZE_KAFKA_NUM_PARTITIONS", "many"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("no %q in:\n%s", want, stderr)
		}
	}
}

func TestUnknownCommandIsAMistake(t *testing.T) {
	if code, _, stderr := runCommand([]string{"serve"}, nil); code != exitUsage || !strings.Contains(stderr, `"serve"`) {
		t.Errorf("%d %s", code, stderr)
	}
}

// FX-1: --help lists every setting, on standard output, and is no error.
func TestHelpIsNoError(t *testing.T) {
	code, stdout, _ := runCommand([]string{"--help"}, nil)
	if code != exitOK || !strings.Contains(stdout, "DOZE_KAFKA_FSYNC_INTERVAL") || !strings.Contains(stdout, "--fsync-interval") {
		t.Errorf("%d %s", code, stdout)
	}
}

func TestVersion(t *testing.T) {
	if code, stdout, _ := runCommand([]string{"version"}, nil); code != exitOK || strings.TrimSpace(stdout) == "" {
		t.Errorf("%d %q", code, stdout)
	}
}

// FX-22: healthcheck exits 0 for a broker that answers, 1 for one that does not.
func TestHealthcheckExitCode(t *testing.T) {
	p := startProcess(t, localArgs(t.TempDir())...)
	args := []string{"healthcheck", "--listeners", "PLAINTEXT://" + p.addr}
	if code, stdout, stderr := runCommand(args, nil); code != exitOK || !strings.Contains(stdout, p.addr) {
		t.Errorf("healthy: %d %s%s", code, stdout, stderr)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.exit(t)
	if code, _, stderr := runCommand(args, nil); code != exitFailed || !strings.Contains(stderr, p.addr) {
		t.Errorf("dead: %d %s", code, stderr)
	}
}

// A start that can't be says why in one line, with exit code 1.
func TestFailedStartIsOneLine(t *testing.T) {
	dir := t.TempDir()
	startProcess(t, localArgs(dir)...)
	code, _, stderr := runCommand(append(localArgs(dir), "--log-level", "error"), nil)
	if code != exitFailed || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, dir) {
		t.Errorf("%d\n%s", code, stderr)
	}
}

// FX-8: the collector knows the memory limit of the container, unless Go's own
// variable says otherwise.
func TestTheCollectorKeepsToTheMemoryLimit(t *testing.T) {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer debug.SetGCPercent(percent)
	defer debug.SetMemoryLimit(limit)
	for _, c := range []struct {
		variable    string
		limit, want int64
	}{{"", 0, limit}, {"GOMEMLIMIT", 1 << 30, limit}, {"", 1 << 30, 1<<30 - (1<<30)/10}} {
		tuneCollector(func(name string) string {
			if name == c.variable {
				return "1"
			}
			return ""
		}, c.limit)
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("%q, %d: the limit is %d, want %d", c.variable, c.limit, got, c.want)
		}
	}
}

// FX-3: a server.properties that is mounted is read, below the variables; none is no mistake, one that can't be read is.
func TestAMountedPropertiesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.properties")
	if s, _, err := parse(nil, nil, file); err != nil || s.NumPartitions != 1 {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte("num.partitions=5\nlog.retention.hours=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, _, err := parse(nil, []string{"KAFKA_NUM_PARTITIONS=6"}, file); err != nil || s.NumPartitions != 6 || s.RetentionMs != 3600000 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, _, err := parse(nil, nil, t.TempDir()); err == nil {
		t.Error("a directory is read")
	}
}
