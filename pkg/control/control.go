// Package control is HTTP for machines: whether the process is up, whether
// the broker is ready, its metrics, and the control API below /v1 (JSON, see
// docs/control-api.md).
package control

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/VictoriaMetrics/metrics"
)

// Options say what the answers are made of.
type Options struct {
	// Ready is nil once a first produce or fetch succeeds without a
	// retry; otherwise it says what is being waited for.
	Ready func() error
	// Metrics are the broker's own figures.
	Metrics []Metric
	// Broker is what GET /v1/broker tells.
	Broker func() Broker
	// HostEndpoints and SetHostEndpoints are those of endpoint.Endpoint;
	// setting them may be refused.
	HostEndpoints    func() map[string]string
	SetHostEndpoints func(map[string]string) error
	// Compact, Retain and Roll act on all partitions of a topic and return
	// when they are done. UNKNOWN_TOPIC_OR_PARTITION; POLICY_VIOLATION: the topic is not compacted.
	Compact func(ctx context.Context, topic string) (Compacted, error)
	Retain  func(ctx context.Context, topic string) (Retained, error)
	Roll    func(ctx context.Context, topic string) (Rolled, error)
}

// A Metric is one figure, read when it is asked for.
type Metric struct {
	Name    string // in Prometheus' form, labels and all
	Counter bool   // it only grows; otherwise it is a gauge
	Read    func() float64
}

// New answers /healthz, /readyz, /metrics and the control API (FX-20). Anything
// else is 404. What changes something is refused if a page of another origin, or of a name that may be
// rebound, asks for it (FX-23): a browser on the same machine reaches this port too.
func New(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := o.Ready(); err != nil {
			text(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		text(w, http.StatusOK, "ready")
	})
	mux.HandleFunc("GET /metrics", exposition(o.Metrics))
	mux.HandleFunc("GET /v1/broker", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, o.Broker()) })
	mux.HandleFunc("GET /v1/endpoint", o.getEndpoint)
	mux.HandleFunc("PUT /v1/endpoint", o.putEndpoint)
	mux.HandleFunc("POST /v1/topics/{topic}/compact", sweep(o.Compact))
	mux.HandleFunc("POST /v1/topics/{topic}/retain", sweep(o.Retain))
	mux.HandleFunc("POST /v1/topics/{topic}/roll", sweep(o.Roll))
	return refuseForeignPages(mux)
}

// exposition answers with all figures, in Prometheus' text.
func exposition(all []Metric) http.HandlerFunc {
	set := metrics.NewSet()
	for _, m := range all {
		if m.Counter {
			set.NewCounter(m.Name)
			continue
		}
		set.NewGauge(m.Name, m.Read)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		for _, m := range all {
			if m.Counter {
				set.GetOrCreateCounter(m.Name).Set(uint64(m.Read()))
			}
		}
		set.WritePrometheus(w)
		metrics.WriteProcessMetrics(w)
	}
}

func text(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The client that is gone has no use for the error.
	_, _ = io.WriteString(w, fmt.Sprintln(line))
}
