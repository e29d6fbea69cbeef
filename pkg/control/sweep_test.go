package control_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/control"
)

// FX-20, FX-23: sweeps are asked for by the topic's name, answered when they are done, and refused to pages of other origins.
func TestSweepsOfATopic(t *testing.T) {
	done := ""
	h := control.New(control.Options{
		Compact: func(_ context.Context, topic string) (control.Compacted, error) {
			switch topic {
			case "none":
				return control.Compacted{}, fmt.Errorf("there is none: %w", kerr.UnknownTopicOrPartition)
			case "plain":
				return control.Compacted{}, fmt.Errorf("no compact: %w", kerr.PolicyViolation)
			case "bad":
				return control.Compacted{}, errors.New("the disk")
			}
			done = topic
			return control.Compacted{Partitions: 2, Segments: 3, ReclaimedBytes: 4, RemovedRecords: 5}, nil
		},
		Retain: func(context.Context, string) (control.Retained, error) { return control.Retained{Partitions: 1}, nil },
		Roll:   func(context.Context, string) (control.Rolled, error) { return control.Rolled{Partitions: 5}, nil },
	})
	for _, c := range []struct {
		method, path string
		code         int
		body         string
	}{
		{"POST", "/v1/topics/my.topic/compact", http.StatusOK, `{"partitions":2,"segments":3,"reclaimedBytes":4,"removedRecords":5}`},
		{"POST", "/v1/topics/a/retain", http.StatusOK, `{"partitions":1}`},
		{"POST", "/v1/topics/a/roll", http.StatusOK, `{"partitions":5}`},
		{"POST", "/v1/topics/none/compact", http.StatusNotFound, "there is none"},
		{"POST", "/v1/topics/plain/compact", http.StatusBadRequest, "no compact"},
		{"POST", "/v1/topics/bad/compact", http.StatusInternalServerError, "the disk"},
		{"GET", "/v1/topics/a/compact", http.StatusMethodNotAllowed, ""},
	} {
		if code, body := ask(h, c.method, c.path, ""); code != c.code || !strings.Contains(body, c.body) {
			t.Errorf("%s %s: %d %s", c.method, c.path, code, body)
		}
	}
	done = ""
	if code, body := ask(h, "POST", "/v1/topics/a/compact", `{"partition": 1}`); code != http.StatusBadRequest || done != "" || !strings.Contains(body, "partition") {
		t.Errorf("a body with a field: %d %s, done to %q", code, body, done)
	}
	if code, body := ask(h, "POST", "/v1/topics/my.topic/compact", "{}"); code != http.StatusOK {
		t.Errorf("a body without a field: %d %s", code, body)
	}
	if done != "my.topic" {
		t.Error(done)
	}
	if code, _ := ask(h, "POST", "/v1/topics/a/roll", "", "Origin", "http://elsewhere.example"); code != http.StatusForbidden {
		t.Error("a foreign page:", code)
	}
}

// A sweep that the broker's stop ends says so.
func TestASweepThatTheStopEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	h := control.New(control.Options{Compact: func(ctx context.Context, _ string) (control.Compacted, error) {
		stop()
		return control.Compacted{}, ctx.Err()
	}})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/v1/topics/a/compact", http.NoBody))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "the broker is stopping") {
		t.Error(w.Code, w.Body)
	}
}
