package control_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/control"
)

func get(t *testing.T, h http.Handler, method, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(b)
}

// FX-20: /readyz tells whether a first request would succeed, /healthz only that the process is up.
func TestReadyzFollowsReady(t *testing.T) {
	notReady := errors.New("the topics are not there yet")
	h := control.New(control.Options{Ready: func() error { return notReady }})
	if code, body := get(t, h, "GET", "/readyz"); code != 503 || body != "not ready: the topics are not there yet\n" {
		t.Errorf("before: %d %q", code, body)
	}
	if code, body := get(t, h, "GET", "/healthz"); code != 200 || body != "ok\n" {
		t.Errorf("healthz: %d %q", code, body)
	}
	notReady = nil
	if code, body := get(t, h, "GET", "/readyz"); code != 200 || body != "ready\n" {
		t.Errorf("after: %d %q", code, body)
	}
}

func TestMetricsAreReadWhenAskedFor(t *testing.T) {
	n := 1.0
	h := control.New(control.Options{Metrics: []control.Metric{
		{Name: `doze_kafka_requests_total{api="Produce"}`, Counter: true, Read: func() float64 { return n }},
		{Name: "doze_kafka_open_connections", Read: func() float64 { return 2 * n }},
	}})
	for _, n = range []float64{3, 5} {
		code, body := get(t, h, "GET", "/metrics")
		if code != 200 {
			t.Fatal(code)
		}
		lines := []string{"doze_kafka_requests_total{api=\"Produce\"} 3\n", "doze_kafka_open_connections 6\n"}
		if n == 5 {
			lines = []string{"doze_kafka_requests_total{api=\"Produce\"} 5\n", "doze_kafka_open_connections 10\n"}
		}
		for _, l := range append(lines, "process_resident_memory_bytes") {
			if !strings.Contains(body, l) {
				t.Errorf("no %q in:\n%s", l, body)
			}
		}
	}
}

func TestOtherPathsAndMethodsAreRefused(t *testing.T) {
	h := control.New(control.Options{})
	if code, _ := get(t, h, "GET", "/nothing"); code != 404 {
		t.Errorf("unknown path: %d", code)
	}
	if code, _ := get(t, h, "POST", "/metrics"); code != 405 {
		t.Errorf("POST: %d", code)
	}
}
