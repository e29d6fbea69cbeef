// Package broker puts the parts together. It is also the embeddable API: Start
// runs a broker inside a program or test.
//
// open.go is the start, read top to bottom; close.go mirrors it.
package broker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/config"
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
	began    time.Time

	listeners    []*listener
	httpListener net.Listener // nil: off
	http         *http.Server

	ready    atomic.Bool
	serving  sync.WaitGroup
	failed   chan error // the first long-lived part that ended by itself
	stopOnce sync.Once
	stopErr  error
}

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

// HTTPAddr is where health and metrics are, "" if they are off.
func (b *Broker) HTTPAddr() string {
	if b.httpListener == nil {
		return ""
	}
	return b.httpListener.Addr().String()
}

// ClusterID is the cluster's id, 22 characters.
func (b *Broker) ClusterID() string { return b.storage.clusterID }

// Ready is nil once a first produce or fetch of any client succeeds without
// a retry (FX-21). Start returns no sooner.
func (b *Broker) Ready() error {
	if !b.ready.Load() {
		return errors.New("the broker is starting or stopping")
	}
	return nil
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
