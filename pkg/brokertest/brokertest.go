// Package brokertest runs a whole broker in a test: on a disk that loses
// power, over a network without sockets, stopped and started again.
package brokertest

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/pkg/broker"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// A Broker is a running broker of a test. It is stopped when the test ends.
type Broker struct {
	*broker.Broker
	Net   *PipeNet
	Fault *faultfs.FS // makes operations of its disk fail; those of this start alone

	t       testing.TB
	log     *testLog
	mayFail atomic.Bool
	started atomic.Bool
	onMeta  atomic.Pointer[func() error]
	*machine
}

// FailMeta has f asked before each commit to meta.db, which fails with the error that f returns; nil ends it.
// As faults do, it belongs to this start alone.
func (b *Broker) FailMeta(f func() error) {
	if f == nil {
		b.onMeta.Store(nil)
		return
	}
	b.onMeta.Store(&f)
}

// SetFull fills the disk, that of meta.db too, or makes room again.
func (b *Broker) SetFull(full bool) {
	b.Fault.SetFull(full)
	b.FailMeta(nil)
	if full {
		b.FailMeta(func() error { return &fs.PathError{Op: "write", Path: "meta.db", Err: syscall.ENOSPC} })
	}
}

func (b *Broker) commitMeta() error {
	b.step("commit to meta.db")
	if f := b.onMeta.Load(); f != nil {
		return (*f)()
	}
	return nil
}

// MayFail says that the stop at the end of the test need not be clean.
func (b *Broker) MayFail() { b.mayFail.Store(true) }

// A machine is what outlives a broker: its disk, meta.db, and settings.
type machine struct {
	disk     *crashfs.FS
	metaDir  string
	settings *config.Settings
	onStep   atomic.Pointer[func(step string)]
}

// An Option changes the settings before a start.
type Option func(*config.Settings)

// Start runs a broker on a crash disk and a pipe network.
func Start(t testing.TB, opts ...Option) *Broker {
	t.Helper()
	s := config.Default()
	s.DataDir = "/data"
	s.Listeners = "PLAINTEXT://127.0.0.1:0"
	s.HTTPListen = "off"
	for _, opt := range opts {
		opt(s)
	}
	return start(t, &machine{disk: crashfs.New(), metaDir: metaDir(t), settings: s})
}

func start(t testing.TB, m *machine) *Broker {
	t.Helper()
	b, err := try(t, m, nil)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return b
}

// metaDir is for meta.db: bbolt needs a real file, and a power cut here takes none of it, so that it is in memory where there is a
// file system for that. Sweeps start some hundred brokers, each of which would wait for the disk several times.
func metaDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "doze-kafka-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// try starts a broker. before is called with it before the start, if it is not nil.
func try(t testing.TB, m *machine, before func(*Broker)) (*Broker, error) {
	b := &Broker{Net: NewPipeNet(), Fault: faultfs.New(m.disk), t: t, log: &testLog{t: t}, machine: m}
	if before != nil {
		before(b)
	}
	var err error
	b.Broker, err = broker.Start(t.Context(), m.settings,
		broker.WithFS(b.Fault, m.metaDir), broker.WithListen(b.Net.Listen),
		broker.WithMetaFault(b.commitMeta),
		broker.WithLogger(slog.New(slog.NewTextHandler(b.log, nil))))
	if err != nil {
		b.log.stop()
		return nil, err
	}
	b.started.Store(true)
	t.Cleanup(func() {
		if err := b.Stop(); err != nil && !b.mayFail.Load() {
			t.Errorf("stop: %v", err)
		}
		b.log.stop()
	})
	return b, nil
}

func (m *machine) step(s string) {
	if f := m.onStep.Load(); f != nil {
		(*f)(s)
	}
}

// OnStep has f called before each operation that changes the disk and before
// each commit to meta.db, in the goroutine of whoever does it, so that f may take a Snapshot: it
// holds every step but this one. It stays in force over Restart; nil ends it.
func (b *Broker) OnStep(f func(step string)) {
	if f == nil {
		b.onStep.Store(nil)
		b.disk.OnOp(nil)
		return
	}
	b.onStep.Store(&f)
	b.disk.OnOp(func(op vfs.Op) { f(op.String()) })
}

// Client is a franz-go client of the broker, closed when the test ends.
func (b *Broker) Client(opts ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.Addr()), kgo.Dialer(b.Net.Dial)}, opts...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(cl.Close)
	return cl
}

// Restart stops the broker cleanly and starts another on the same disk.
func (b *Broker) Restart() *Broker {
	b.t.Helper()
	if err := b.Stop(); err != nil {
		b.t.Fatalf("stop: %v", err)
	}
	return start(b.t, b.machine)
}

// PowerCut starts another broker on what a power cut at this instant would
// have left. The old broker carries on, and nobody sees it any more.
func (b *Broker) PowerCut(survival crashfs.Survival) *Broker {
	b.t.Helper()
	s, err := b.Snapshot()
	if err != nil {
		b.t.Fatal(err)
	}
	return s.PowerCut(b.t, survival)
}

// A Snapshot is all that a broker had written at one instant: its disk, with
// what of it was durable, and what meta.db had committed.
type Snapshot struct {
	disk     *crashfs.FS
	meta     []byte
	settings *config.Settings
}

// Snapshot takes one. The broker may be starting, running or stopping.
func (b *Broker) Snapshot() (*Snapshot, error) {
	s := &Snapshot{disk: b.disk.KillClone(), settings: b.settings}
	// bbolt's file is not on the crash disk: what it has committed is what a cut leaves of it.
	var meta bytes.Buffer
	err := errors.New("not open yet")
	if b.started.Load() {
		err = b.WriteMeta(&meta)
	}
	if s.meta = meta.Bytes(); err != nil {
		// It is closed, or not open yet: nobody is at the file but, perhaps, the start of the next broker.
		s.meta, err = os.ReadFile(filepath.Join(b.metaDir, "meta.db"))
	}
	return s, err
}

// PowerCut starts a broker on what a power cut at the instant of the snapshot would have left.
func (s *Snapshot) PowerCut(t testing.TB, survival crashfs.Survival) *Broker {
	t.Helper()
	return s.start(t, s.disk.CrashClone(survival))
}

// Kill starts a broker on what a kill -9 at the instant of the snapshot would
// have left: everything that was written, none of it more durable than it was.
func (s *Snapshot) Kill(t testing.TB) *Broker {
	t.Helper()
	return s.start(t, s.disk.KillClone())
}

// Try starts a broker on what a kill at the instant of the snapshot would have left, as Kill does, or returns why it does not start.
// before is called with it before the start, to have its disk fail.
func (s *Snapshot) Try(t testing.TB, before func(*Broker)) (*Broker, error) {
	t.Helper()
	return try(t, s.machine(t, s.disk.KillClone()), before)
}

// WatchedPowerCut is PowerCut, with f called from the first step of the start on, as OnStep does.
func (s *Snapshot) WatchedPowerCut(t testing.TB, survival crashfs.Survival, f func(b *Broker, step string)) *Broker {
	t.Helper()
	b, err := try(t, s.machine(t, s.disk.CrashClone(survival)), func(b *Broker) {
		b.OnStep(func(step string) { f(b, step) })
	})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	return b
}

func (s *Snapshot) start(t testing.TB, disk *crashfs.FS) *Broker {
	t.Helper()
	return start(t, s.machine(t, disk))
}

func (s *Snapshot) machine(t testing.TB, disk *crashfs.FS) *machine {
	t.Helper()
	dir := metaDir(t)
	if err := os.WriteFile(filepath.Join(dir, "meta.db"), s.meta, 0o600); err != nil {
		t.Fatal(err)
	}
	return &machine{disk: disk, metaDir: dir, settings: s.settings}
}

// testLog writes the broker's log to the test's, until the test is over.
type testLog struct {
	mu sync.Mutex
	t  testing.TB // nil: over
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.t != nil {
		l.t.Logf("%s", bytes.TrimRight(p, "\n"))
	}
	return len(p), nil
}

func (l *testLog) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t = nil
}
