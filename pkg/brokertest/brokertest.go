// Package brokertest runs a whole broker in a test: on a disk that loses
// power, over a network without sockets, stopped and started again.
package brokertest

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/pkg/broker"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// A Broker is a running broker of a test. It is stopped when the test ends.
type Broker struct {
	*broker.Broker
	Net *PipeNet

	t        testing.TB
	disk     *crashfs.FS
	metaDir  string
	settings *config.Settings
	log      *testLog
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
	return start(t, s, crashfs.New(), t.TempDir())
}

func start(t testing.TB, s *config.Settings, disk *crashfs.FS, metaDir string) *Broker {
	t.Helper()
	b := &Broker{Net: NewPipeNet(), t: t, disk: disk, metaDir: metaDir, settings: s, log: &testLog{t: t}}
	var err error
	b.Broker, err = broker.Start(t.Context(), s,
		broker.WithFS(disk, metaDir), broker.WithListen(b.Net.Listen),
		broker.WithLogger(slog.New(slog.NewTextHandler(b.log, nil))))
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		b.log.stop()
	})
	return b
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
	return start(b.t, b.settings, b.disk, b.metaDir)
}

// PowerCut starts another broker on what a power cut at this instant would
// have left: the disk as survival decides, and what meta.db had committed. The old broker
// carries on, and nobody sees it any more.
func (b *Broker) PowerCut(survival crashfs.Survival) *Broker {
	b.t.Helper()
	dir := b.t.TempDir()
	disk := b.disk.CrashClone(survival)
	// bbolt's file is not on the crash disk: what it has committed is what a cut leaves of it.
	var meta bytes.Buffer
	if err := b.WriteMeta(&meta); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "meta.db"), meta.Bytes(), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return start(b.t, b.settings, disk, dir)
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
