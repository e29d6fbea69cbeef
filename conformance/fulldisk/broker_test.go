//go:build linux

// Package fulldisk lets the built broker meet disks that misbehave for real: a small file system that fills up under load and is
// freed again, and system calls of fsync that strace makes fail.
package fulldisk

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/proc"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// A broker is ours, on a directory of the test's choice.
type broker struct {
	*proc.Process
	t         *testing.T
	argv      []string
	addr, log string
	data      string
}

func start(t *testing.T, data string) *broker {
	t.Helper()
	ports, err := kafka.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
	b := &broker{t: t, addr: addr, data: data, log: filepath.Join(t.TempDir(), "broker.log"),
		argv: []string{target.Binary(t), "--data-dir", data, "--listeners", "PLAINTEXT://" + addr, "--http-listen", "off"}}
	t.Cleanup(func() {
		b.Kill()
		if t.Failed() {
			t.Logf("end of the broker's log:\n%s", b.LogTail(40))
		}
	})
	b.restart()
	return b
}

// restart starts the broker on its directory, after its process has ended.
func (b *broker) restart() {
	b.t.Helper()
	var err error
	if b.Process, err = proc.Start(b.log, nil, b.argv...); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), 30*time.Second)
	defer cancel()
	if err := kafka.WaitReady(ctx, b.addr, b.Process); err != nil {
		b.t.Fatal(err)
	}
}

// required says whether CI wants what a test needs.
func required(what string) bool {
	return slices.ContainsFunc(strings.Split(os.Getenv("DOZE_KAFKA_REQUIRE"), ","), func(s string) bool { return s == what || s == "all" })
}

// mount makes a file system of so many bytes for the test: tmpfs, or ext4 in a file.
func mount(t *testing.T, kind string, bytes int) string {
	t.Helper()
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	var out []byte
	err := error(unix.EPERM)
	if os.Geteuid() == 0 {
		if kind == "tmpfs" {
			out, err = exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", bytes), "tmpfs", dir).CombinedOutput()
		} else {
			script := fmt.Sprintf(`truncate -s %d %s && mkfs.ext4 -q -m 0 %[2]s && mount -o loop %[2]s %s`, bytes, image, dir)
			out, err = exec.Command("sh", "-c", script).CombinedOutput()
		}
	}
	if err != nil {
		reason := fmt.Sprintf("no %s can be mounted (that needs root): %v: %s", kind, err, out)
		if required("fulldisk") {
			t.Fatal(reason + "; DOZE_KAFKA_REQUIRE wants it")
		}
		t.Skip(reason)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// ballast takes room until the function is called.
func ballast(t *testing.T, dir string, bytes int) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "ballast")
	if err := os.WriteFile(name, make([]byte, bytes), 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// room is what a file system has left.
func room(t *testing.T, dir string) int64 {
	t.Helper()
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

// await polls until ok, for a minute at most.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick, timeout := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// strace attaches to the broker: the calls of fsync and fdatasync on some of its files are written to the returned file, and
// fail with EIO if they are to. They are what they were once detach is called.
func (b *broker) strace(fail bool, paths ...string) (out string, detach func()) {
	b.t.Helper()
	target.Need(b.t, "strace")
	dir := b.t.TempDir()
	out = filepath.Join(dir, "calls")
	argv := []string{"strace", "-f", "-p", fmt.Sprint(b.PID()), "-o", out, "-e", "trace=fsync,fdatasync"}
	if fail {
		argv = append(argv, "-e", "inject=fsync,fdatasync:error=EIO")
	}
	for _, p := range paths {
		argv = append(argv, "-P", p)
	}
	p, err := proc.Start(filepath.Join(dir, "strace.log"), nil, argv...)
	if err != nil {
		b.t.Fatal(err)
	}
	ended := false
	detach = func() {
		if !ended {
			ended = true
			_ = p.Stop(10 * time.Second) // it ends by the signal it gets, once it has let go
		}
	}
	b.t.Cleanup(detach)
	await(b.t, "strace is attached", func() bool {
		select {
		case <-p.Done():
			reason := "strace can't attach to the broker: " + p.LogTail(5)
			if required("strace") {
				b.t.Fatal(reason)
			}
			b.t.Skip(reason)
		default:
		}
		return strings.Contains(p.LogTail(200), "attached")
	})
	return out, detach
}
