package dozekafka

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/testcontainers/testcontainers-go"

	"github.com/dozekafka/doze-kafka/pkg/broker"
	"github.com/dozekafka/doze-kafka/pkg/config"
)

// local is a broker in this process.
type local struct {
	settings *config.Settings
	logger   *slog.Logger
	broker   *broker.Broker
}

// startLocal starts a broker with the settings of the options, its data in dir.
func startLocal(ctx context.Context, o *options, opts []testcontainers.ContainerCustomizer, dir string) (*local, error) {
	env, err := needsContainer(o, opts)
	if err != nil {
		return nil, err
	}
	if env == nil {
		env = map[string]string{}
	}
	for name := range env {
		if slices.Contains(owned, name) {
			return nil, ownedError(name)
		}
	}
	if err := check(env); err != nil {
		return nil, err
	}
	maps.Copy(env, o.env)
	s, _, err := config.Parse(nil, environ(env))
	if err != nil {
		return nil, err
	}
	s.DataDir = dir
	s.Listeners = "PLAINTEXT://127.0.0.1:0"
	s.HTTPListen = "127.0.0.1:0"
	var log io.Writer = os.Stderr
	if o.log != nil {
		log = o.log
	} else if _, set := env[config.Prefix+"LOG_LEVEL"]; !set {
		s.LogLevel = "warn" // in a container the log is not on the test's terminal either
	}
	l := &local{settings: s, logger: broker.NewLogger(log, s)}
	return l, l.start(ctx)
}

func (l *local) start(ctx context.Context) (err error) {
	l.broker, err = broker.Start(ctx, l.settings, broker.WithLogger(l.logger))
	return err
}

// restart keeps the address, as clients in the process have it.
func (l *local) restart(ctx context.Context) error {
	if err := l.broker.Stop(); err != nil {
		return err
	}
	again := *l.settings
	again.Listeners = "PLAINTEXT://" + l.broker.Addr()
	again.HTTPListen = l.broker.HTTPAddr()
	l.settings = &again
	return l.start(ctx)
}
