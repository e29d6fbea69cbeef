// Package connect runs programs that keep their state in topics, a distributed worker of Kafka Connect among them, while the broker is killed.
package connect

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// The topics that a worker makes for itself.
const (
	configTopic = "connect-configs"
	offsetTopic = "connect-offsets"
	statusTopic = "connect-status"
)

var internal = []string{configTopic, offsetTopic, statusTopic}

// ST-40, ST-45, ST-46: a file source and a file sink, with exactly-once support, in a worker that makes its topics itself, goes on after the broker
// was killed and its topics were compacted, and has all its configs and offsets when it is started again after another compaction.
func TestDistributedWorkerOverKillAndCompaction(t *testing.T) {
	target.Need(t, "java", "mvn")
	ports, err := kafka.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	control := fmt.Sprintf("127.0.0.1:%d", ports[0])
	broker := target.Start(t, target.Options{Flags: []string{"--http-listen", control}, Properties: map[string]string{"group.initial.rebalance.delay.ms": "0"}})
	w := newWorker(t, broker.Addr())
	w.start()
	wantPolicy(t, broker)

	f := &files{t: t, in: filepath.Join(t.TempDir(), "in"), out: filepath.Join(t.TempDir(), "out")}
	f.write(200)
	source := map[string]string{"connector.class": "FileStreamSource", "tasks.max": "1", "file": f.in, "topic": "lines"}
	sink := map[string]string{"connector.class": "FileStreamSink", "tasks.max": "1", "file": f.out, "topics": "lines"}
	w.put("source", source)
	w.put("sink", sink)
	w.put("goes", map[string]string{"connector.class": "FileStreamSink", "tasks.max": "1", "file": f.out + "-2", "topics": "lines"})
	w.runs("source")
	w.runs("sink")
	f.arrive(w)
	for i := range 5 { // what compaction drops
		source["batch.size"] = fmt.Sprint(100 + i)
		w.put("source", source)
		f.write(20)
	}
	w.await("deletion", func() error { return w.ask(http.MethodDelete, "/connectors/goes", nil, nil) })
	f.arrive(w)

	compact(t, broker, control, internal...)
	f.write(50)
	broker.Kill()
	broker.Restart()
	f.write(50)
	f.arrive(w)
	w.stop()
	compact(t, broker, control, internal...)
	broker.Kill()
	broker.Restart()

	w.start()
	w.runs("source")
	w.runs("sink")
	w.has(map[string]map[string]string{"source": source, "sink": sink})
	f.write(100)
	f.arrive(w)
	source["batch.size"] = "1000"
	w.put("source", source)
	f.write(10)
	f.arrive(w)
	t.Logf("%s: %d lines from file to file, %d of them twice; the configs are what they were", broker.Name(), f.lines, f.again)
}

// has wants these connectors and configs, and no other.
func (w *worker) has(want map[string]map[string]string) {
	w.t.Helper()
	var names []string
	if err := w.ask(http.MethodGet, "/connectors", nil, &names); err != nil {
		w.t.Fatal(err)
	}
	if slices.Sort(names); !slices.Equal(names, slices.Sorted(maps.Keys(want))) {
		w.t.Errorf("the connectors are %q", names)
	}
	for name, config := range want {
		var got map[string]string
		if err := w.ask(http.MethodGet, "/connectors/"+name+"/config", nil, &got); err != nil {
			w.t.Fatal(err)
		}
		if delete(got, "name"); !maps.Equal(got, config) {
			w.t.Errorf("the config of %s is %q, not %q", name, got, config)
		}
	}
}

// wantPolicy wants the worker's topics to be compacted, and only that.
func wantPolicy(t *testing.T, broker *target.Broker) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	got, err := kadm.NewClient(client).DescribeTopicConfigs(t.Context(), internal...)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range got {
		i := slices.IndexFunc(topic.Configs, func(c kadm.Config) bool { return c.Key == "cleanup.policy" })
		if topic.Err != nil || i < 0 || topic.Configs[i].MaybeValue() != "compact" {
			t.Errorf("%s: %v, %+v", topic.Name, topic.Err, topic.Configs)
		}
	}
}

// compact seals all that was written to topics and compacts it. Kafka has no such request.
func compact(t *testing.T, broker *target.Broker, control string, topics ...string) {
	t.Helper()
	if broker.Name() != "doze-kafka" {
		return
	}
	for _, topic := range topics {
		var done struct{ Segments, ReclaimedBytes int }
		url := "http://" + control + "/v1/topics/" + topic
		err := ask(http.MethodPost, url+"/roll", nil, nil)
		if err == nil {
			err = ask(http.MethodPost, url+"/compact", nil, &done)
		}
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%s: %d segments rewritten, %d bytes less", topic, done.Segments, done.ReclaimedBytes); done.Segments == 0 {
			t.Errorf("nothing of %s was compacted", topic)
		}
	}
}

// files are what the source reads, and what the sink writes.
type files struct {
	t       *testing.T
	in, out string
	lines   int // written
	again   int // read more than once
}

// write adds numbered lines.
func (f *files) write(n int) {
	f.t.Helper()
	file, err := os.OpenFile(f.in, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		f.t.Fatal(err)
	}
	for range n {
		f.lines++
		if _, err := fmt.Fprintf(file, "line %d\n", f.lines); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		f.t.Fatal(err)
	}
}

// arrive waits until every line has come out, in order; a sink may be given lines once more.
func (f *files) arrive(w *worker) {
	f.t.Helper()
	w.await("the lines", func() error {
		file, err := os.Open(f.out)
		if err != nil {
			return err
		}
		defer file.Close()
		next, again := 1, 0
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var n int
			if _, err := fmt.Sscanf(lines.Text(), "line %d", &n); err != nil || n > next {
				return fmt.Errorf("%q where line %d is due", lines.Text(), next)
			}
			if n < next {
				again++
				continue
			}
			next++
		}
		if next != f.lines+1 {
			return errors.New(fmt.Sprint("line ", next, " of ", f.lines, " is missing"))
		}
		f.again = again
		return nil
	})
}
