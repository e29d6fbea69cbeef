package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A program is the broker's, with the directory and the address that it keeps over all its lives.
type program struct {
	binary, dir, addr, http string
}

// build makes the program from this module, or takes the one of DOZE_KAFKA_BINARY.
func build(t *testing.T) *program {
	t.Helper()
	dir := t.TempDir()
	p := &program{binary: os.Getenv("DOZE_KAFKA_BINARY"), dir: dir, addr: freeAddr(t), http: freeAddr(t)}
	if p.binary == "" {
		p.binary = filepath.Join(dir, "broker")
		if runtime.GOOS == "windows" {
			p.binary += ".exe"
		}
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", p.binary, "../cmd/broker").CombinedOutput(); err != nil {
			t.Fatalf("go build ../cmd/broker: %v\n%s", err, out)
		}
	}
	return p
}

// freeAddr is a loopback address below the ports that systems give to clients: while the broker is away nobody's connection takes it.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}

func (p *program) data() string    { return filepath.Join(p.dir, "data") }
func (p *program) logFile() string { return filepath.Join(p.dir, "broker.log") }

// A life is one process, from its start to its kill.
type life struct {
	*program
	cmd  *exec.Cmd
	from int64 // where its log begins
	done chan struct{}
	err  error // of Wait; read after done
}

func (p *program) start() (*life, error) {
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own descriptor
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(p.binary, "--data-dir", p.data(), "--listeners", "PLAINTEXT://"+p.addr, "--http-listen", p.http, "--cleaner-max-keys", "150")
	cmd.Stdout, cmd.Stderr = log, log
	// Variables of the same prefix are settings of the broker: those of the tests are none.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "DOZE_KAFKA_") })
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	l := &life{program: p, cmd: cmd, from: info.Size(), done: make(chan struct{})}
	go func() {
		l.err = cmd.Wait()
		close(l.done)
	}()
	return l, nil
}

// awaitReady returns once the broker says that it is.
func (l *life) awaitReady(within time.Duration) error {
	tick, timeout := time.NewTicker(2*time.Millisecond), time.After(within)
	defer tick.Stop()
	for {
		if b, err := os.ReadFile(l.logFile()); err != nil {
			return err
		} else if bytes.Contains(b[l.from:], []byte("Kafka Server started")) {
			return nil
		}
		select {
		case <-tick.C:
		case <-l.done:
			return fmt.Errorf("the broker ended by itself: %w\n%s", l.err, l.tail())
		case <-timeout:
			return fmt.Errorf("the broker is not ready after %v\n%s", within, l.tail())
		}
	}
}

// kill is a SIGKILL. An error means that the broker had ended before.
func (l *life) kill() error {
	select {
	case <-l.done:
		return fmt.Errorf("the broker ended by itself: %w\n%s", l.err, l.tail())
	default:
	}
	err := l.cmd.Process.Kill()
	<-l.done
	if errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("the broker ended by itself: %w\n%s", l.err, l.tail())
	}
	return err
}

// stop is a SIGTERM, which has to end in order. Windows has none for another process: it is a kill there.
func (l *life) stop() error {
	if runtime.GOOS == "windows" {
		return l.kill()
	}
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-l.done:
	case <-time.After(20 * time.Second):
		return errors.Join(errors.New("the broker does not stop"), l.kill())
	}
	if l.err != nil {
		return fmt.Errorf("the stop was not clean: %w\n%s", l.err, l.tail())
	}
	return nil
}

// tail is the end of the broker's log.
func (l *life) tail() string {
	b, err := os.ReadFile(l.logFile())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}
