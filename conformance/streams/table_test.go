package streams

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/target"
)

const (
	tablePartitions = 2
	tableKeys       = 3000
	tableSegment    = 64 << 10
	deletedAfter    = 5 * time.Second // delete.retention.ms: far more than a restore takes
	windowMs        = 10_000          // as in Table.java
)

// stores are the changelogs, by store.
var stores = map[string]string{"latest": "table-latest-changelog", "sums": "table-sums-changelog", "windows": "table-windows-changelog"}

// ST-40, ST-45, ST-46, ST-48: a table, an aggregate and windowed counts, whose changelogs are compacted all the time, while the broker is
// killed in the middle of compactions and started again: what a new instance restores from the changelogs equals the model.
func TestTableRestoredAfterKillsDuringCompaction(t *testing.T) {
	target.Need(t, "java", "mvn")
	jars := classpath(t)
	for _, guarantee := range []string{"at_least_once", exactlyOnce} {
		t.Run(guarantee, func(t *testing.T) { t.Parallel(); testTable(t, jars, guarantee) })
	}
}

func testTable(t *testing.T, jars, guarantee string) {
	broker := target.Start(t, target.Options{
		Flags: []string{"--cleaner-bytes-per-second", "1000000"},
		Properties: map[string]string{"log.cleaner.io.max.bytes.per.second": "1000000", "log.cleaner.backoff.ms": "500",
			"group.initial.rebalance.delay.ms": "0"},
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr()), kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
		kgo.ProducerLinger(5*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(t.Context(), tablePartitions, 1, nil, "updates"); err != nil {
		t.Fatal(err)
	}
	open := func() *application {
		return start(t, jars, "Table", broker.Addr(), t.TempDir(), guarantee, strconv.Itoa(tableSegment), strconv.FormatInt(deletedAfter.Milliseconds(), 10))
	}
	app := open()
	w := newTableWriter(t, client)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writing sync.WaitGroup
	writing.Go(func() { w.write(ctx) })
	app.runs(t)
	hit, all := killCompacting(t, broker)
	w.awaitGone(t, admin)
	stop()
	writing.Wait()
	w.finish()

	app.awaitModel(t, "the application", w, guarantee)
	app.command(t, "close")
	app.says(t, "closed")
	written := settled(t, admin, broker)
	app = open()
	app.runs(t)
	app.awaitModel(t, "a new one that restored all", w, guarantee)
	app.command(t, "close")
	app.says(t, "closed")
	wantTopics(t, admin)
	told := w.compacted(t, admin, broker, written)
	t.Logf("%s, %s: %d kills, %d of them while a segment was rewritten; %d updates, %d keys, %d deleted; %s", broker.Name(), guarantee, all, hit,
		w.updates, len(w.latest), len(w.seen)-len(w.latest), told)
}

// killCompacting kills the broker until it was hit often enough while it rewrote a segment of a changelog: its file is there afterwards.
func killCompacting(t *testing.T, broker *target.Broker) (hit, all int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for hit < *kills {
		if all++; all > 4**kills+4 {
			t.Fatalf("of %d kills %d met a compaction", all, hit)
		}
		<-time.After(time.Second) // the application comes back, and writes
		for late := time.After(finishes); len(rewriting(t, broker)) == 0; {
			select {
			case <-tick.C:
			case <-late:
				t.Fatal("no segment is being rewritten")
			}
		}
		<-time.After(time.Duration(rng.Int64N(int64(60 * time.Millisecond))))
		broker.Kill()
		if len(rewriting(t, broker)) > 0 {
			hit++
		}
		broker.Restart()
	}
	return hit, all
}

// rewriting are the new files of segments of changelogs that have not taken the old ones' places.
func rewriting(t *testing.T, broker *target.Broker) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(broker.DataDir(), "*-changelog-*", "*.log.cleaned"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// wantTopics wants the windowed changelog to be compacted and deleted from, and the repartition topic's records to have been deleted once they were used.
func wantTopics(t *testing.T, admin *kadm.Client) {
	t.Helper()
	for store, want := range map[string]string{"latest": "compact", "sums": "compact", "windows": "compact,delete"} {
		described, err := admin.DescribeTopicConfigs(t.Context(), stores[store])
		if err != nil {
			t.Fatal(err)
		}
		for _, config := range described[0].Configs {
			if config.Key == "cleanup.policy" && config.MaybeValue() != want {
				t.Errorf("%s: cleanup.policy is %s", stores[store], config.MaybeValue())
			}
		}
	}
	const repartition = "table-windows-repartition"
	starts, err := admin.ListStartOffsets(t.Context(), repartition)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	starts.Each(func(o kadm.ListedOffset) {
		if o.Offset == 0 {
			t.Errorf("%s-%d begins at 0: nothing was purged", repartition, o.Partition)
		}
	})
}

// settled waits until nothing changes in the changelogs, and returns their end offsets, summed by topic.
func settled(t *testing.T, admin *kadm.Client, broker *target.Broker) map[string]int64 {
	t.Helper()
	for before, now := "", logs(t, broker, "*-changelog-*"); before != now; {
		<-time.After(2500 * time.Millisecond) // two sweeps, and more
		before, now = now, logs(t, broker, "*-changelog-*")
	}
	ends, err := admin.ListEndOffsets(t.Context(), slices.Collect(maps.Values(stores))...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	ends.Each(func(o kadm.ListedOffset) { sums[o.Topic] += o.Offset })
	return sums
}

// logs are the names and sizes of the logs of partitions.
func logs(t *testing.T, broker *target.Broker, partitions string) string {
	t.Helper()
	var all strings.Builder
	eachLog(t, broker, partitions, func(name string, size int64) { fmt.Fprintln(&all, name, size) })
	return all.String()
}

func eachLog(t *testing.T, broker *target.Broker, partitions string, visit func(name string, size int64)) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(broker.DataDir(), partitions, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		if info, err := os.Stat(name); err == nil { // it may have been swapped
			visit(name, info.Size())
		}
	}
}

// awaitModel has the application dump its stores until they are the model's. What is wrong in the end it tells.
func (a *application) awaitModel(t *testing.T, who string, w *tableWriter, guarantee string) {
	t.Helper()
	want := w.model(guarantee)
	file := filepath.Join(t.TempDir(), "dump")
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var got map[string]string
	for end := time.Now().Add(finishes); !maps.Equal(got, want); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: %s\n%s", who, differences(got, want), a.tail())
		}
		a.command(t, "dump %s", file)
		if content, err := os.ReadFile(file); err == nil {
			got = map[string]string{}
			for line := range strings.Lines(string(content)) {
				at := strings.LastIndexByte(line, '\t')
				got[line[:at]] = strings.TrimSuffix(line[at+1:], "\n")
			}
			w.forgive(got, want, guarantee)
		}
	}
}

func differences(got, want map[string]string) string {
	var all []string
	for key, value := range want {
		if got[key] != value {
			all = append(all, fmt.Sprintf("%q is %q and not %q", key, got[key], value))
		}
	}
	for key, value := range got {
		if _, ok := want[key]; !ok {
			all = append(all, fmt.Sprintf("%q is %q and ought not to be there", key, value))
		}
	}
	slices.Sort(all)
	return fmt.Sprintf("%d of %d differ: %s", len(all), len(want), strings.Join(all[:min(20, len(all))], "; "))
}
