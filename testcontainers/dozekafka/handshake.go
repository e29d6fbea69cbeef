package dozekafka

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/client"
	"github.com/dozekafka/doze-kafka/pkg/control"
)

// How often and how long a broker is asked whether it is there.
const (
	firstPause   = 2 * time.Millisecond
	longestPause = 50 * time.Millisecond
	startTimeout = 60 * time.Second // a broker is ready in milliseconds; an engine under load may take long to start it
)

// logTail is how much of the log goes into the error of a broker that ended, in bytes.
const logTail = 4 << 10

// errNotPublished: the engine has not told a container's host ports, which it may do a moment after the start.
var errNotPublished = errors.New("the engine tells no host port")

// httpClient asks the broker directly: whatever proxy is set stands between this machine and others, and
// the connections of a container are of no use after its end.
var httpClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}

// A handshake tells a broker, after each start of its container, at which
// address clients reach it, and waits until it is ready. It may be done any
// number of times: the same address again changes nothing.
type handshake struct {
	log *testLog

	mu        sync.Mutex
	clusterID string
	failed    bool // the last time; the error has been told
}

func (h *handshake) cluster() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clusterID
}

// do is the hook after each start.
func (h *handshake) do(ctx context.Context, c testcontainers.Container) error {
	err := h.shake(ctx, c)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = err != nil
	return err
}

func (h *handshake) hasFailed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failed
}

func (h *handshake) shake(ctx context.Context, c testcontainers.Container) error {
	if h.log != nil {
		h.log.rewind()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the broker is not ready after %v", startTimeout))
	defer cancel()
	var last error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		again, err := h.tell(ctx, c)
		if err == nil {
			return nil
		}
		if ended := ended(ctx, c); ended != nil {
			return ended
		}
		if ctx.Err() == nil { // not what the end of ctx makes of it
			last = err
		}
		if !again {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last, unreachable(ctx, c, last))
		}
	}
}

// unreachable is what to do where an engine's host is not reached that
// testcontainers has guessed: within a container it takes the gateway for it.
func unreachable(ctx context.Context, c testcontainers.Container, last error) error {
	_, dial := errors.AsType[*net.OpError](last)
	timed, ok := errors.AsType[net.Error](last)
	if !dial && (!ok || !timed.Timeout()) {
		return nil
	}
	host, err := c.Host(context.WithoutCancel(ctx))
	if _, local := loopbackIP(host); err != nil || local {
		return nil
	}
	return fmt.Errorf("(testcontainers takes %s for the engine's host; if the engine is on this machine, set TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1)", host)
}

// tell sets the endpoint and looks whether the broker is ready. again says
// whether an error may be over in a moment.
func (h *handshake) tell(ctx context.Context, c testcontainers.Container) (again bool, err error) {
	kafka, err := published(ctx, c, kafkaPort)
	if err != nil {
		return errors.Is(err, errNotPublished), err
	}
	http, err := published(ctx, c, httpPort)
	if err != nil {
		return errors.Is(err, errNotPublished), err
	}
	body, err := json.Marshal(control.Endpoint{Endpoint: kafka})
	if err != nil {
		return false, err
	}
	status, answer, err := ask(ctx, "PUT", "http://"+http+"/v1/endpoint", body)
	switch {
	case err != nil:
		return true, err // nobody listens yet
	case status != 200:
		return false, fmt.Errorf("the broker does not take its address %s: %d %s (is this an image of doze-kafka, and of this module's version?)", kafka, status, answer)
	}
	status, answer, err = ask(ctx, "GET", "http://"+http+"/readyz", nil)
	if err != nil || status != 200 {
		return true, errors.Join(err, errors.New(string(answer)))
	}
	status, answer, err = ask(ctx, "GET", "http://"+http+"/v1/broker", nil)
	if err != nil || status != 200 {
		return true, errors.Join(err, errors.New(string(answer)))
	}
	var b control.Broker
	if err := json.Unmarshal(answer, &b); err != nil {
		return false, fmt.Errorf("/v1/broker: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clusterID = b.ClusterID
	return false, nil
}

// ask is one HTTP request; the answer is without space around it.
func ask(ctx context.Context, method, url string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it is read to its end, or of no use
	answer, err = io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, bytes.TrimSpace(answer), err
}

// ended is an error if the container does not run any more, with the last
// lines that it wrote: there stands which setting can't be.
func ended(ctx context.Context, c testcontainers.Container) error {
	state, err := c.State(ctx)
	if err != nil || state.Running {
		return nil
	}
	tail := ""
	if logs, err := c.Logs(ctx); err == nil {
		b, _ := io.ReadAll(logs) // what there is of it
		_ = logs.Close()
		tail = strings.TrimSpace(string(b[max(0, len(b)-logTail):]))
	}
	return fmt.Errorf("the broker ended with exit code %d:\n%s", state.ExitCode, tail)
}

// readiness is the wait strategy: the user's, if any, and then a round trip of
// Kafka's protocol at the address that clients use.
type readiness struct {
	user  wait.Strategy
	shake *handshake
}

// String is for testcontainers' log.
func (r *readiness) String() string { return "a Kafka round trip" }

// WaitUntilReady implements wait.Strategy.
func (r *readiness) WaitUntilReady(ctx context.Context, target wait.StrategyTarget) error {
	if r.shake.hasFailed() {
		return nil // testcontainers calls this all the same, and has the error
	}
	if r.user != nil {
		if err := r.user.WaitUntilReady(ctx, target); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, ok := target.(testcontainers.Container)
	if !ok {
		return fmt.Errorf("%T is no container", target)
	}
	bootstrap, err := published(ctx, c, kafkaPort)
	if err != nil {
		return err
	}
	told, err := r.roundTrip(ctx, bootstrap)
	if err != nil || told == bootstrap {
		return err
	}
	// A test that runs in a container itself may be told another address
	// than the host's; so may anybody with --advertised-listeners. It has to lead here all the same.
	_, err = r.roundTrip(ctx, told)
	if err != nil {
		return fmt.Errorf("clients of %s are told %s: %w", bootstrap, told, err)
	}
	return nil
}

// roundTrip asks for the broker's address at an address, and makes sure that
// it is this broker which answers: two host ports for one container port, or a
// port of somebody else's, would show only as records in a wrong broker.
func (r *readiness) roundTrip(ctx context.Context, addr string) (told string, err error) {
	conn, err := client.Dial(ctx, addr, client.Options{ClientID: "dozekafka"})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none; null would be all
	resp, err := conn.Do(ctx, req)
	if err != nil {
		return "", err
	}
	meta := resp.(*kmsg.MetadataResponse)
	if len(meta.Brokers) != 1 || meta.ClusterID == nil {
		return "", fmt.Errorf("%s: Metadata names %d brokers", addr, len(meta.Brokers))
	}
	if want := r.shake.cluster(); *meta.ClusterID != want {
		return "", fmt.Errorf("%s is another broker: its cluster id is %s, not %s", addr, *meta.ClusterID, want)
	}
	return net.JoinHostPort(meta.Brokers[0].Host, strconv.Itoa(int(meta.Brokers[0].Port))), nil
}
