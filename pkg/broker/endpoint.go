package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/dozekafka/doze-kafka/pkg/control"
	"github.com/dozekafka/doze-kafka/pkg/endpoint"
)

// awaitEndpoint keeps a start waiting until it is known how clients outside of
// the container reach each listener (FX-11): whoever starts a container learns
// its host port only then. No client is let in before, so none is told a wrong address.
func (b *Broker) awaitEndpoint(ctx context.Context) error {
	b.phase.Store(waiting)
	names := b.listenerNames()
	if len(b.endpoint.Missing(names)) > 0 {
		if b.httpListener == nil {
			return errors.New("--wait-for-endpoint: with --http-listen=off nobody can tell the endpoint: turn HTTP on, or set --host-endpoint")
		}
		b.log.Info("the Kafka listeners stay closed until PUT /v1/endpoint tells how clients reach them", "http", b.HTTPAddr())
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	b.serving.Go(func() { // HTTP that ends by itself ends the wait
		select {
		case err := <-b.failed:
			end(err)
			b.fail(err) // for Wait, should the endpoint be set this instant
		case <-ctx.Done():
		}
	})
	if err := b.endpoint.Await(ctx, names); err != nil {
		return fmt.Errorf("waiting for PUT /v1/endpoint: %w", err)
	}
	return nil
}

// setHostEndpoints is PUT /v1/endpoint.
func (b *Broker) setHostEndpoints(all map[string]string) error {
	known := b.listenerNames()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != "" && !slices.Contains(known, strings.ToUpper(name)) {
			return fmt.Errorf("there is no listener %q, only %s", name, strings.Join(known, ", "))
		}
	}
	before := b.endpoint.HostEndpoints()
	if err := b.endpoint.SetHostEndpoints(all); err != nil {
		return err
	}
	if now := b.endpoint.HostEndpoints(); !maps.Equal(now, before) {
		b.log.Info("clients outside the container are told", "endpoints", now)
	}
	return nil
}

// describe is GET /v1/broker.
func (b *Broker) describe() control.Broker {
	d := control.Broker{Version: b.opts.version, ClusterID: b.storage.clusterID, NodeID: b.settings.NodeID, Listeners: map[string]string{}}
	if b.phase.Load() == ready { // before, they are still being opened
		d.Listeners = b.Addrs()
	}
	return d
}

// warnAstray logs a client that goes astray, with the fix.
func (b *Broker) warnAstray(a endpoint.Astray) {
	const fix = "set DOZE_KAFKA_HOST_ENDPOINT (or DOZE_KAFKA_ADVERTISED_LISTENERS) to the host:port at which it reaches this broker"
	level, what := slog.LevelWarn, "a client was told an address of this broker and never came to it: it probably can't connect there. If so, "
	if a.Idle {
		level, what = slog.LevelInfo, "a client was told an address of this broker and has not come to it so far: it has nothing to do, or can't connect there. If it can't, "
	}
	b.log.Log(context.Background(), level, what+fix, "client", a.ID, "from", a.Host, "listener", a.Listener, "told", a.Told)
}
