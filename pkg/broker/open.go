package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/cleaner"
	"github.com/dozekafka/doze-kafka/pkg/client"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/control"
	"github.com/dozekafka/doze-kafka/pkg/endpoint"
	"github.com/dozekafka/doze-kafka/pkg/fetchsession"
	"github.com/dozekafka/doze-kafka/pkg/handler"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// Start runs a broker until Stop. It returns when the broker is ready: a first
// produce, fetch or join of any client succeeds without a retry (FX-21). ctx
// bounds the start alone. The error says which setting or file is at fault,
// and nothing of a start that failed is left open.
//
// With WaitForEndpoint it returns only after PUT /v1/endpoint, so HTTPListen
// has to be an address that somebody knows.
func Start(ctx context.Context, s *config.Settings, opts ...Option) (_ *Broker, err error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	o := gather(s, opts)
	b := &Broker{settings: s, opts: o, log: o.logger, failed: make(chan error, 1), began: time.Now()}
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
	if err := b.listenHTTP(ctx); err != nil {
		return nil, err
	}
	if !s.WaitForEndpoint {
		if err := b.listen(ctx); err != nil {
			return nil, err
		}
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
	b.serveHTTP()
	if s.WaitForEndpoint {
		if err := b.awaitEndpoint(ctx); err != nil {
			return nil, err
		}
		if err := b.listen(ctx); err != nil {
			return nil, err
		}
	}
	b.serve()
	b.run()
	b.phase.Store(ready)
	// Existing wait code looks for these phrases of Kafka's images and of Redpanda's (FX-7).
	b.log.Info(fmt.Sprintf("ready: [KafkaServer id=%d] started, Kafka Server started, Transitioning from RECOVERY to RUNNING", s.NodeID),
		"took", time.Since(b.began).Round(100*time.Microsecond))
	return b, nil
}

// listen opens Kafka's sockets.
func (b *Broker) listen(ctx context.Context) error {
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
	return nil
}

// listenHTTP opens the socket of HTTP.
func (b *Broker) listenHTTP(ctx context.Context) (err error) {
	if b.settings.HTTPListen == httpOff {
		return nil
	}
	if b.httpListener, err = new(net.ListenConfig).Listen(ctx, "tcp", b.settings.HTTPListen); err != nil {
		return fmt.Errorf("--http-listen: %w", err)
	}
	return nil
}

// listenerNames are the names of all listeners, open or not.
func (b *Broker) listenerNames() []string {
	wanted, _ := config.ParseListeners(b.settings.Listeners) // Start has checked them
	var names []string
	for _, l := range wanted {
		names = append(names, l.Name)
	}
	return names
}

// logStart is the one line at start (FX-7).
func (b *Broker) logStart() {
	var addrs []string
	for _, l := range b.listeners {
		addrs = append(addrs, l.name+"://"+l.Addr().String())
	}
	if len(addrs) == 0 {
		addrs = append(addrs, b.settings.Listeners+" once the host endpoint is set")
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
	if b.endpoint, err = endpoint.New(cfg, facts); err != nil {
		return err
	}
	b.cleaner = cleaner.New(cleaner.Options{
		Registry: b.storage.topics, Clock: b.opts.clock, Logger: b.log, MaxKeys: s.CleanerMaxKeys, BytesPerSecond: s.CleanerBytesPerSecond,
	})
	b.watch = endpoint.NewWatch(b.warnAstray)
	b.sessions = fetchsession.New(fetchsession.DefaultSlots, nil)
	b.server = server.New(server.Options{
		Handler: handler.Watch(handler.New(handler.Deps{
			Registry: b.storage.topics, Groups: b.storage.groups, Settings: s, Endpoint: b.endpoint, Sessions: b.sessions,
			Transactions: b.storage.txns, Logger: b.log, Clock: b.opts.clock,
			ClusterID: b.storage.clusterID, NodeID: s.NodeID, Epoch: b.storage.epoch,
		}), b.endpoint, b.watch),
		Logger:                b.log,
		SocketRequestMaxBytes: s.SocketRequestMaxBytes,
		RequestMemoryBytes:    requestMemory(s.RequestMemoryBytes, MemoryLimit()),
		OnConn: func(conn *server.ConnInfo, open bool) {
			if !open {
				b.watch.Closed(conn.ID)
				b.storage.groups.Disconnected(conn.ID) // GR-9
			}
		},
	})
	return nil
}

// httpOff is the value of --http-listen that turns HTTP off.
const httpOff = "off"

// httpTimeout bounds a request for health, metrics or control.
const httpTimeout = 10 * time.Second

// serve takes connections of Kafka clients. A listener that ends by itself ends the broker.
func (b *Broker) serve() {
	for _, l := range b.listeners {
		b.serving.Go(func() {
			if err := b.server.Serve(context.Background(), l.Listener, l.name); err != nil {
				b.fail(fmt.Errorf("listener %s: %w", l.name, err))
			}
		})
	}
}

// run starts the parts that work by themselves until the stop. One that ends before ends the broker.
func (b *Broker) run() {
	ctx, cancel := context.WithCancel(context.Background())
	b.endRuns = cancel
	b.serving.Go(func() {
		if err := b.cleaner.Run(ctx); err != nil {
			b.fail(fmt.Errorf("retention: %w", err))
		}
	})
	b.serving.Go(func() {
		if err := b.cleaner.RunCompaction(ctx); err != nil {
			b.fail(fmt.Errorf("compaction: %w", err))
		}
	})
	b.serving.Go(func() {
		if err := b.storage.txns.Run(ctx); err != nil {
			b.fail(fmt.Errorf("transactions: %w", err))
		}
	})
}

// serveHTTP takes connections for health, metrics and control.
func (b *Broker) serveHTTP() {
	if b.httpListener == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.endHTTP = cancel
	b.http = &http.Server{
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: control.New(control.Options{
			Ready: b.Ready, Metrics: b.metrics(), Broker: b.describe,
			HostEndpoints: b.endpoint.HostEndpoints, SetHostEndpoints: b.setHostEndpoints,
			Compact: b.compact, Retain: b.retain, Roll: b.roll,
		}),
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
	if b.http != nil { // before the storage that its answers look at
		b.endHTTP()
		_ = b.http.Close()
		b.serving.Wait()
	}
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
	return l.Address(), client.Check(ctx, l.Address(), client.Options{})
}
