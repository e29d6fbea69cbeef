// Package broker puts the parts together. It is also the embeddable API: Start
// runs a broker inside a program or test.
//
// open.go is the start, read top to bottom; close.go mirrors it.
package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/cleaner"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/endpoint"
	"github.com/dozekafka/doze-kafka/pkg/fetchsession"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// A Broker is a running broker.
type Broker struct {
	settings *config.Settings
	opts     *options
	log      *slog.Logger
	storage  *storage
	server   *server.Server

	sessions *fetchsession.Cache
	endpoint *endpoint.Endpoint
	watch    *endpoint.Watch
	cleaner  *cleaner.Cleaner
	began    time.Time

	listeners    []*listener
	httpListener net.Listener // nil: off
	http         *http.Server

	phase    atomic.Int32
	serving  sync.WaitGroup
	endRuns  context.CancelFunc // ends the parts that run until then
	endHTTP  context.CancelFunc // ends what HTTP requests have asked for
	failed   chan error         // the first long-lived part that ended by itself
	stopOnce sync.Once
	stopErr  error
}

// The phases of a broker's life, in their order.
const (
	starting int32 = iota
	waiting        // for the host endpoint, WAIT_FOR_ENDPOINT
	ready
	stopping
)

// A listener is one open Kafka listener.
type listener struct {
	name string
	net.Listener
}

// Addr is where the first listener listens, such as "127.0.0.1:9092": the
// bootstrap address of a client on this machine.
func (b *Broker) Addr() string { return b.listeners[0].Addr().String() }

// Addrs are the addresses of all listeners by their names.
func (b *Broker) Addrs() map[string]string {
	m := make(map[string]string, len(b.listeners))
	for _, l := range b.listeners {
		m[l.name] = l.Addr().String()
	}
	return m
}

// HTTPAddr is where health, metrics and the control API are, "" if they are off.
func (b *Broker) HTTPAddr() string {
	if b.httpListener == nil {
		return ""
	}
	return b.httpListener.Addr().String()
}

// ClusterID is the cluster's id, 22 characters.
func (b *Broker) ClusterID() string { return b.storage.clusterID }

// Ready is nil once a first produce, fetch or join of any client succeeds
// without a retry (FX-20, FX-21); before, the error says what is waited for.
// Start returns no sooner.
func (b *Broker) Ready() error {
	switch b.phase.Load() {
	case ready:
		return nil
	case waiting:
		return fmt.Errorf("the Kafka listeners are closed until PUT /v1/endpoint tells how clients reach them (missing: %s)",
			strings.Join(b.endpoint.Missing(b.listenerNames()), ", "))
	case stopping:
		return errors.New("the broker is stopping")
	default:
		return errors.New("the broker is starting")
	}
}

// Wait blocks until ctx ends or a part of the broker fails, and then stops it.
// The error is nil after a clean stop.
func (b *Broker) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return b.Stop()
	case err := <-b.failed:
		return errors.Join(err, b.Stop())
	}
}

// fail reports that a long-lived part has ended by itself.
func (b *Broker) fail(err error) {
	select {
	case b.failed <- err:
	default: // one is enough to stop for
	}
}

// WriteMeta copies what meta.db has committed into w, as a file that a broker
// can start from.
func (b *Broker) WriteMeta(w io.Writer) error {
	_, err := b.storage.store.WriteTo(w)
	return err
}

// StartedClean says whether the stop before this start had flushed everything
// (ST-50). The partitions that the stop named as not verified are checked all the same.
func (b *Broker) StartedClean() bool { return b.storage.last.clean }
