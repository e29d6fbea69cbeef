package tools

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/proc"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

const (
	verifiableRecords = 4000
	verifiableWithin  = 2 * time.Minute
)

// CF-5: what kafka-verifiable-producer has acknowledged comes to two kafka-verifiable-consumers of one group, in order, each partition to one
// of them at a time, although the broker is killed in the middle; and kafka-consumer-groups says that nothing is left.
func TestVerifiableClientsInAGroup(t *testing.T) {
	target.Need(t, "java", "javac", "mvn")
	broker := target.Start(t, target.Options{})
	broker.DataDir() // it is killed
	w, err := newWorld(broker.Addr(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	if err := w.topic(t.Context(), []string{"orders", "4"}); err != nil {
		t.Fatal(err)
	}
	a := startVerifiable(t, "kafka-verifiable-consumer", "--bootstrap-server", broker.Addr(), "--topic", "orders", "--group-id", "v", "--reset-policy", "earliest", "--verbose")
	b := startVerifiable(t, "kafka-verifiable-consumer", "--bootstrap-server", broker.Addr(), "--topic", "orders", "--group-id", "v", "--reset-policy", "earliest", "--verbose")
	if err := w.await(t.Context(), []string{"v", "Stable", "2"}); err != nil {
		t.Fatal(err)
	}
	producer := startVerifiable(t, "kafka-verifiable-producer", "--bootstrap-server", broker.Addr(), "--topic", "orders", "--max-messages", strconv.Itoa(verifiableRecords), "--throughput", "1000", "--repeating-keys", "100")
	awaitVerifiable(t, func() bool { return len(a.records(t))+len(b.records(t)) > verifiableRecords/4 })
	broker.Kill()
	broker.Restart()
	producer.wait(t)
	acknowledged := producer.records(t) // it does not try again what the kill has cut off
	if len(acknowledged) < verifiableRecords/8 {
		t.Fatalf("only %d of %d records are acknowledged", len(acknowledged), verifiableRecords)
	}
	ends, err := w.admin.ListEndOffsets(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	stored := int64(0)
	ends.Each(func(o kadm.ListedOffset) { stored += o.Offset })
	seen := map[position]bool{}
	given := 0
	awaitVerifiable(t, func() bool {
		given = 0
		for _, c := range []*verifiable{a, b} {
			for _, r := range c.records(t) {
				seen[r] = true
				given++
			}
		}
		return int64(len(seen)) >= stored
	})
	for _, r := range acknowledged {
		if !seen[r] {
			t.Errorf("acknowledged, and not consumed: %+v", r)
		}
	}
	for name, c := range map[string]*verifiable{"a": a, "b": b} {
		c.checkOrder(t, name)
	}
	a.stop(t)
	b.stop(t)
	offsets, err := w.admin.FetchOffsets(t.Context(), "v")
	if err != nil {
		t.Fatal(err)
	}
	for p, end := range ends["orders"] {
		if o, ok := offsets.Lookup("orders", p); !ok && end.Offset > 0 || ok && o.At != end.Offset {
			t.Errorf("partition %d ends at %d, committed is %d", p, end.Offset, o.At)
		}
	}
	t.Logf("%s: %d records acknowledged, %d stored, all consumed by two members, %d of them twice after the kill", broker.Name(), len(acknowledged), stored, given-len(seen))
}

// position names a record.
type position struct {
	Partition int32
	Offset    int64
}

// verifiable is one of the tools, which writes a line of JSON for all it does.
type verifiable struct {
	proc *proc.Process
	log  string
}

// event is such a line.
type event struct {
	Name string
	position
	Partitions json.RawMessage // of records_consumed and partitions_assigned; not looked at
}

func startVerifiable(t *testing.T, tool string, args ...string) *verifiable {
	t.Helper()
	classpath, err := kafka.Classpath(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	java, err := kafka.ToolArgs(dir, classpath)
	if err != nil {
		t.Fatal(err)
	}
	v := &verifiable{log: filepath.Join(dir, "out.log")}
	argv := append(append([]string{"java"}, java...), toolPackage+classes[tool])
	if v.proc, err = proc.Start(v.log, nil, append(argv, args...)...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.proc.Kill)
	return v
}

func (v *verifiable) stop(t *testing.T) {
	t.Helper()
	if err := v.proc.Stop(30 * time.Second); err != nil {
		t.Error(err)
	}
}

func (v *verifiable) wait(t *testing.T) {
	t.Helper()
	timer := time.NewTimer(verifiableWithin)
	defer timer.Stop()
	select {
	case <-v.proc.Done():
	case <-timer.C:
		t.Fatalf("not done within %v\n%s", verifiableWithin, v.proc.LogTail(10))
	}
}

// records are those that a producer had acknowledged, or that a consumer was given, in this order.
func (v *verifiable) records(t *testing.T) (all []position) {
	t.Helper()
	f, err := os.Open(v.log)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e event
		if !strings.HasPrefix(lines.Text(), "{") || json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // the log, or a line that is not whole yet
		}
		if e.Name == "record_data" || e.Name == "producer_send_success" {
			all = append(all, e.position)
		}
	}
	return all
}

// checkOrder: the records of a partition come one after the other, or begin again before.
func (v *verifiable) checkOrder(t *testing.T, name string) {
	t.Helper()
	last := map[int32]int64{}
	for _, r := range v.records(t) {
		if before, ok := last[r.Partition]; ok && r.Offset > before+1 {
			t.Errorf("consumer %s: %+v comes after offset %d", name, r, before)
		}
		last[r.Partition] = r.Offset
	}
}

func awaitVerifiable(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(verifiableWithin)
	defer deadline.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("not within %v", verifiableWithin)
		}
	}
}
