package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/client"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/control"
	"github.com/dozekafka/doze-kafka/pkg/endpoint"
	"github.com/dozekafka/doze-kafka/pkg/fetchsession"
	"github.com/dozekafka/doze-kafka/pkg/handler"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// Start runs a broker until Stop. It returns when the broker is ready: a first
// produce or fetch of any client succeeds without a retry (FX-21). ctx bounds
// the start alone.
func Start(ctx context.Context, s *config.Settings, opts ...Option) (_ *Broker, err error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	o := gather(s, opts)
	b := &Broker{settings: s, opts: o, log: o.logger, failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			b.undo()
		}
	}()
	for _, w := range s.Warnings {
		b.log.Warn(w)
	}
	// The sockets come first: an address in use is the likeliest mistake, and
	// nothing was touched by then. Nobody is answered before all else is done.
	if err := b.listen(ctx); err != nil {
		return nil, err
	}
	b.logStart()
	if b.storage, err = openStorage(ctx, s, o); err != nil {
		return nil, err
	}
	if err := b.seed(ctx); err != nil {
		return nil, err
	}
	if err := b.assemble(); err != nil {
		return nil, err
	}
	b.serve()
	b.ready.Store(true)
	// Existing wait code looks for these phrases of Kafka's images and of Redpanda's (FX-7).
	b.log.Info(fmt.Sprintf("ready: [KafkaServer id=%d] started, Kafka Server started, Transitioning from RECOVERY to RUNNING", s.NodeID),
		"took", time.Since(b.began).Round(100*time.Microsecond))
	return b, nil
}

// listen opens the sockets: Kafka's and HTTP's.
func (b *Broker) listen(ctx context.Context) error {
	b.began = time.Now()
	wanted, err := config.ParseListeners(b.settings.Listeners)
	if err != nil {
		return err
	}
	for _, l := range wanted {
		ln, err := b.opts.listen(ctx, "tcp", l.Address())
		if err != nil {
			return fmt.Errorf("listener %s: %w", l, err)
		}
		b.listeners = append(b.listeners, &listener{l.Name, ln})
	}
	if b.settings.HTTPListen == httpOff {
		return nil
	}
	if b.httpListener, err = new(net.ListenConfig).Listen(ctx, "tcp", b.settings.HTTPListen); err != nil {
		return fmt.Errorf("--http-listen: %w", err)
	}
	return nil
}

// logStart is the one line at start (FX-7).
func (b *Broker) logStart() {
	var addrs []string
	for _, l := range b.listeners {
		addrs = append(addrs, l.name+"://"+l.Addr().String())
	}
	durability := "acks=all is on disk before it is answered"
	if !b.settings.AcksAllSync {
		durability = "--acks-all-sync=false: a power cut can take what acks=all has acknowledged" // ST-56
	}
	b.log.Info("doze-kafka starts", "version", b.opts.version, "listeners", addrs, "http", b.HTTPAddr(),
		"data", b.settings.DataDir, "durability", durability)
}

// seed makes the topics that the settings name (FX-5), before anybody can ask for them.
func (b *Broker) seed(ctx context.Context) error {
	seeds, err := config.ParseTopics(b.settings)
	if err != nil {
		return err
	}
	if len(seeds) == 0 {
		return nil
	}
	return b.storage.topics.Seed(ctx, seeds)
}

// assemble puts the parts that answer on top of the storage.
func (b *Broker) assemble() error {
	s := b.settings
	advertised, err := config.ParseAdvertised(s.AdvertisedListeners)
	if err != nil {
		return err
	}
	var facts endpoint.Facts
	if s.Container { // nothing depends on them otherwise
		if facts, err = endpoint.Gather(); err != nil {
			return fmt.Errorf("network of the container: %w", err)
		}
	}
	cfg := endpoint.Config{Advertised: advertised, Container: s.Container}
	if s.HostEndpoint != "" {
		cfg.HostEndpoint = map[string]string{"": s.HostEndpoint}
	}
	ep, err := endpoint.New(cfg, facts)
	if err != nil {
		return err
	}
	b.sessions = fetchsession.New(fetchsession.DefaultSlots, nil)
	b.server = server.New(server.Options{
		Handler: handler.New(handler.Deps{
			Registry: b.storage.topics, Groups: b.storage.groups, Settings: s, Endpoint: ep, Sessions: b.sessions,
			ProducerIDs: handler.NewProducerIDs(b.storage.store), Logger: b.log, Clock: b.opts.clock,
			ClusterID: b.storage.clusterID, NodeID: s.NodeID, Epoch: b.storage.epoch,
		}),
		Logger:                b.log,
		SocketRequestMaxBytes: s.SocketRequestMaxBytes,
		RequestMemoryBytes:    requestMemory(s.RequestMemoryBytes, MemoryLimit()),
		OnConn: func(conn *server.ConnInfo, open bool) {
			if !open {
				b.storage.groups.Disconnected(conn.ID) // GR-9
			}
		},
	})
	return nil
}

// httpOff is the value of --http-listen that turns HTTP off.
const httpOff = "off"

// httpTimeout bounds a request for health or metrics.
const httpTimeout = 10 * time.Second

// serve starts the long-lived parts. One that ends by itself ends the broker.
func (b *Broker) serve() {
	for _, l := range b.listeners {
		b.serving.Go(func() {
			if err := b.server.Serve(context.Background(), l.Listener, l.name); err != nil {
				b.fail(fmt.Errorf("listener %s: %w", l.name, err))
			}
		})
	}
	if b.httpListener == nil {
		return
	}
	b.http = &http.Server{
		Handler:     control.New(control.Options{Ready: b.Ready, Metrics: b.metrics()}),
		ReadTimeout: httpTimeout, WriteTimeout: httpTimeout,
	}
	b.serving.Go(func() {
		if err := b.http.Serve(b.httpListener); !errors.Is(err, http.ErrServerClosed) {
			b.fail(fmt.Errorf("HTTP: %w", err))
		}
	})
}

// undo closes what a failed start had opened.
func (b *Broker) undo() {
	// The start's own error is the one to tell.
	if b.storage != nil {
		_ = b.storage.close()
	}
	for _, l := range b.listeners {
		_ = l.Close()
	}
	if b.httpListener != nil {
		_ = b.httpListener.Close()
	}
}

// Check asks the broker that these settings start for an answer, as
// `broker healthcheck` does (FX-22), and returns the address that it asked.
func Check(ctx context.Context, s *config.Settings) (addr string, err error) {
	listeners, err := config.ParseListeners(s.Listeners)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(listeners, func(l config.Listener) bool { return l.Port != 0 })
	if i < 0 {
		return "", fmt.Errorf("--listeners %s: no listener has a port that is known beforehand", s.Listeners)
	}
	l := listeners[i]
	if ip := net.ParseIP(l.Host); l.Host == "" || ip != nil && ip.IsUnspecified() {
		l.Host = "localhost"
	}
	return l.Address(), client.Check(ctx, l.Address(), client.Options{ClientID: "healthcheck"})
}
