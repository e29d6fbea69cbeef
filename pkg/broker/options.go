package broker

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// An Option replaces a part of the outside world; tests need them, a program seldom.
type Option func(*options)

type options struct {
	fs       vfs.FS
	clock    clock.Clock
	logger   *slog.Logger
	listen   func(ctx context.Context, network, address string) (net.Listener, error)
	metaDir  func(dataDir string) string
	metaFail func() error
	version  string
}

func gather(s *config.Settings, opts []Option) *options {
	o := &options{
		fs: vfs.OS, clock: clock.System,
		listen:  new(net.ListenConfig).Listen,
		metaDir: func(dir string) string { return dir },
		version: "devel",
	}
	for _, opt := range opts {
		opt(o)
	}
	if o.logger == nil {
		o.logger = NewLogger(os.Stderr, s)
	}
	return o
}

// WithFS keeps the partitions on another file system. meta.db needs a real
// file all the same: it goes to metaDir of the operating system's.
func WithFS(fsys vfs.FS, metaDir string) Option {
	return func(o *options) { o.fs, o.metaDir = fsys, func(string) string { return metaDir } }
}

// WithClock is domain time: LogAppendTime, producer expiry, fetch sessions.
func WithClock(c clock.Clock) Option { return func(o *options) { o.clock = c } }

// WithLogger takes the log, whatever the settings say of it.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// WithListen makes the Kafka listeners; the default is the operating system's TCP.
func WithListen(f func(ctx context.Context, network, address string) (net.Listener, error)) Option {
	return func(o *options) { o.listen = f }
}

// WithVersion is what the start line and the metrics call this program's version.
func WithVersion(v string) Option { return func(o *options) { o.version = v } }

// WithMetaFault is asked before each commit of meta.db and may make it fail.
func WithMetaFault(f func() error) Option { return func(o *options) { o.metaFail = f } }

// NewLogger is the log that the settings ask for (FX-7).
func NewLogger(w io.Writer, s *config.Settings) *slog.Logger {
	var level slog.Level
	// config has checked the name.
	_ = level.UnmarshalText([]byte(s.LogLevel))
	opts := &slog.HandlerOptions{Level: level}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
