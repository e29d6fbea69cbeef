package connect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/proc"
)

const within = 90 * time.Second // anything that a worker does on a busy machine

// classpath is that of Kafka Connect. The first call on a machine downloads some 35 MB with Maven.
func classpath(t *testing.T) string {
	t.Helper()
	pom, err := os.ReadFile("pom.xml")
	if err != nil {
		t.Fatal(err)
	}
	jars, err := kafka.Jars(t.Context(), "connect", pom)
	if err != nil {
		t.Fatal(err)
	}
	return jars
}

// A worker is one of Kafka Connect in distributed mode.
type worker struct {
	t    *testing.T
	argv []string
	log  string
	rest string // http://host:port
	proc *proc.Process
}

// newWorker prepares a worker that keeps everything in the broker at addr.
func newWorker(t *testing.T, addr string) *worker {
	t.Helper()
	jars := classpath(t)
	ports, err := kafka.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	levels, err := filepath.Abs(filepath.Join("..", "kafka", "log4j2.xml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := &worker{t: t, log: filepath.Join(dir, "worker.log"), rest: fmt.Sprintf("http://127.0.0.1:%d", ports[0])}
	properties := filepath.Join(dir, "worker.properties")
	content := fmt.Sprintf(`bootstrap.servers=%s
group.id=connect
listeners=%s
config.storage.topic=%s
offset.storage.topic=%s
status.storage.topic=%s
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.storage.partitions=3
offset.flush.interval.ms=300
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
plugin.discovery=service_load
exactly.once.source.support=enabled
scheduled.rebalance.max.delay.ms=0
reconnect.backoff.max.ms=200
`, addr, w.rest, configTopic, offsetTopic, statusTopic)
	if err := os.WriteFile(properties, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	w.argv = []string{"java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx384m", "-Dlog4j2.configurationFile=" + levels, "-Dconformance.level=warn", "-cp", jars,
		"org.apache.kafka.connect.cli.ConnectDistributed", properties}
	t.Cleanup(func() {
		if w.proc != nil {
			w.proc.Kill()
		}
		if log, err := os.ReadFile(w.log); t.Failed() && err == nil {
			t.Logf("end of the worker's log:\n%s", log[max(0, len(log)-8000):])
		}
	})
	return w
}

// start returns once the worker answers.
func (w *worker) start() {
	w.t.Helper()
	var err error
	if w.proc, err = proc.Start(w.log, nil, w.argv...); err != nil {
		w.t.Fatal(err)
	}
	w.await("the worker answers", func() error { return w.ask(http.MethodGet, "/connectors", nil, nil) })
}

// stop has the worker commit all, and end.
func (w *worker) stop() {
	w.t.Helper()
	p := w.proc
	w.proc = nil
	if err := p.Stop(within); err != nil {
		w.t.Fatal(err)
	}
}

// await asks until there is no error.
func (w *worker) await(what string, ask func() error) {
	w.t.Helper()
	tick, late := time.NewTicker(50*time.Millisecond), time.After(within)
	defer tick.Stop()
	for err := ask(); err != nil; err = ask() {
		if w.proc != nil {
			select {
			case <-w.proc.Done():
				w.t.Fatalf("%s: the worker has ended", what)
			default:
			}
		}
		select {
		case <-tick.C:
		case <-late:
			w.t.Fatalf("%s: %v", what, err)
		}
	}
}

// put sets a connector's config. A worker that rebalances refuses.
func (w *worker) put(connector string, config map[string]string) {
	w.t.Helper()
	w.await("config of "+connector, func() error { return w.ask(http.MethodPut, "/connectors/"+connector+"/config", config, nil) })
}

// runs waits until a connector and its task run.
func (w *worker) runs(connector string) {
	w.t.Helper()
	w.await(connector+" runs", func() error {
		var status struct {
			Connector struct{ State string }
			Tasks     []struct{ State, Trace string }
		}
		if err := w.ask(http.MethodGet, "/connectors/"+connector+"/status", nil, &status); err != nil {
			return err
		}
		if status.Connector.State != "RUNNING" || len(status.Tasks) != 1 || status.Tasks[0].State != "RUNNING" {
			return fmt.Errorf("%+v", status)
		}
		return nil
	})
}

// ask is a request to the worker.
func (w *worker) ask(method, path string, body, into any) error {
	return ask(method, w.rest+path, body, into)
}

func ask(method, url string, body, into any) error {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, in)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return errors.New(resp.Status + " " + strings.TrimSpace(string(got)))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(got, into)
}
