package broker_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/broker"
	"github.com/dozekafka/doze-kafka/pkg/config"
)

// freeAddr is an address that nothing listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// notice is a log that tells when a line with a text has come.
type notice struct {
	text string
	seen chan struct{}
	all  bytes.Buffer
}

func (n *notice) Write(p []byte) (int, error) {
	if strings.Contains(string(p), n.text) {
		close(n.seen)
	}
	return n.all.Write(p)
}

// startWaiting starts a broker that waits for its endpoint, and returns once it does.
func startWaiting(ctx context.Context, t *testing.T, s *config.Settings) (started <-chan error, b **broker.Broker) {
	t.Helper()
	s.WaitForEndpoint = true
	s.HTTPListen = freeAddr(t)
	log := &notice{text: "stay closed", seen: make(chan struct{})}
	done := make(chan error, 1)
	b = new(*broker.Broker)
	go func() {
		var err error
		*b, err = broker.Start(ctx, s, broker.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		done <- err
	}()
	select {
	case <-log.seen:
	case err := <-done:
		t.Fatalf("the start has ended: %v", err)
	}
	return done, b
}

func put(t *testing.T, s *config.Settings, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+s.HTTPListen+"/v1/endpoint", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// FX-11, FX-20: with WAIT_FOR_ENDPOINT the Kafka listeners are closed and the broker is not
// ready until every listener has its endpoint; then both, at once.
func TestListenersStayClosedUntilTheEndpointIsSet(t *testing.T) {
	s := local(t)
	plain, external := freeAddr(t), freeAddr(t)
	s.Listeners = "PLAINTEXT://" + plain + ",EXTERNAL://" + external
	started, b := startWaiting(t.Context(), t, s)

	closed := func(missing string) {
		t.Helper()
		for _, a := range []string{plain, external} {
			if c, err := net.Dial("tcp", a); err == nil {
				_ = c.Close() // nothing was written
				t.Errorf("%s is open", a)
			}
		}
		if code, body := get(t, "http://"+s.HTTPListen+"/readyz"); code != 503 || !strings.Contains(body, "PUT /v1/endpoint") || !strings.Contains(body, missing) {
			t.Errorf("/readyz: %d %s", code, body)
		}
		if code, _ := get(t, "http://"+s.HTTPListen+"/healthz"); code != 200 {
			t.Errorf("/healthz: %d", code)
		}
	}
	closed("PLAINTEXT, EXTERNAL")
	if _, err := broker.Check(t.Context(), s); err == nil {
		t.Error("the health check of a broker that waits succeeds")
	}
	if code, body := put(t, s, `{"listeners":{"NONE":"localhost:1"}}`); code != 400 || !strings.Contains(body, "only PLAINTEXT, EXTERNAL") {
		t.Errorf("an unknown listener: %d %s", code, body)
	}
	if code, body := put(t, s, `{"listeners":{"plaintext":"localhost:1"}}`); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	closed("missing: EXTERNAL")
	if code, body := put(t, s, `{"endpoint":"localhost:2"}`); code != 200 {
		t.Errorf("%d %s", code, body)
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	defer (*b).Stop()
	if code, body := get(t, "http://"+s.HTTPListen+"/readyz"); code != 200 {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, body := get(t, "http://"+s.HTTPListen+"/v1/broker"); code != 200 || !strings.Contains(body, plain) || !strings.Contains(body, (*b).ClusterID()) {
		t.Errorf("/v1/broker: %d %s", code, body)
	}
	if _, err := broker.Check(t.Context(), s); err != nil {
		t.Error(err)
	}
	produce(t, *b, "first")
}

// A host endpoint that is set at start leaves nothing to wait for.
func TestNothingIsWaitedForIfTheEndpointIsSet(t *testing.T) {
	for _, set := range []func(*config.Settings){
		func(s *config.Settings) { s.HostEndpoint = "localhost:19092" },
		func(s *config.Settings) { s.AdvertisedListeners = "PLAINTEXT://localhost:19092" },
	} {
		s := local(t)
		s.WaitForEndpoint = true
		s.HTTPListen = "off"
		set(s)
		start(t, s)
	}
}

// A wait that nobody can end does not begin, and one that is given up leaves nothing behind.
func TestAWaitThatIsGivenUpLeavesNothingBehind(t *testing.T) {
	s := local(t)
	s.WaitForEndpoint = true
	s.HTTPListen = "off"
	if got := startError(t, s); !strings.Contains(got, "--http-listen=off") {
		t.Error(got)
	}

	ctx, cancel := context.WithCancel(t.Context())
	started, _ := startWaiting(ctx, t, s)
	cancel()
	if err := <-started; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "PUT /v1/endpoint") {
		t.Errorf("the start ended with %v", err)
	}
	s.WaitForEndpoint = false
	b := start(t, s) // the directory and the HTTP port are free again
	if !b.StartedClean() {
		t.Error("what was given up counts as an unclean stop")
	}
}
