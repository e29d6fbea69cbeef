// Package streams runs Kafka Streams applications while the broker is killed under them.
package streams

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var (
	kills   = flag.Int("kills", 5, "how often the broker is killed under the application")
	between = flag.Duration("between", 4*time.Second, "how long the application runs between two kills")
)

const (
	partitions = 4
	words      = 50
	finishes   = 3 * time.Minute // after the last line
)

// classpath is that of Kafka Streams. The first call on a machine downloads some 80 MB with Maven.
func classpath(t *testing.T) string {
	t.Helper()
	pom, err := os.ReadFile("pom.xml")
	if err != nil {
		t.Fatal(err)
	}
	jars, err := kafka.Jars(t.Context(), "streams-"+kafka.Version(), pom)
	if err != nil {
		t.Fatal(err)
	}
	return jars
}

// Streams and the judge are of one version.
func TestVersionIsThatOfKafka(t *testing.T) {
	pom, err := os.ReadFile("pom.xml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(pom), "<kafka.version>"+kafka.Version()+"</kafka.version>") {
		t.Errorf("streams/pom.xml pins another version than kafka/pom.xml: %s", kafka.Version())
	}
}

// TX-5, TX-6, TX-8, TX-9: a word count with a repartition topic and a changelog topic, exactly_once_v2, while the broker is killed and
// started again: every word is counted from 1 on without a gap or a repeat, up to what the model has.
func TestWordCountOverKills(t *testing.T) {
	target.Need(t, "java", "mvn")
	jars := classpath(t)
	broker := target.Start(t, target.Options{})
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr()), kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, topic := range []string{"lines", "counts"} {
		if _, err := kadm.NewClient(client).CreateTopic(t.Context(), partitions, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	state := t.TempDir()
	app := start(t, jars, "WordCount", broker.Addr(), state)

	model := map[string]int64{}
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() { write(ctx, t, client, model) })
	app.runs(t)
	for range *kills {
		time.Sleep(*between)
		broker.Kill()
		broker.Restart()
	}
	// And the application once: its transaction is left open, and what it has read in that is read again.
	time.Sleep(*between)
	app.kill()
	app = start(t, jars, "WordCount", broker.Addr(), state)
	app.runs(t)
	time.Sleep(*between)
	stop()
	writer.Wait()
	counted := read(t, broker.Addr(), model, app)
	total := int64(0)
	for word, n := range model {
		total += n
		if counted[word] != n {
			t.Errorf("%s was counted %d times, and is there %d times", word, counted[word], n)
		}
	}
	t.Logf("%s, %d kills, and one of the application: %d words of %d lines, each counted once", broker.Name(), *kills, total, total/5)
	if t.Failed() {
		t.Log(app.tail())
	}
}

// write produces lines of five words until ctx ends, idempotently, and counts them in the model: every one is acknowledged in the end.
func write(ctx context.Context, t *testing.T, client *kgo.Client, model map[string]int64) {
	rng := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		var line []string
		for range 5 {
			word := fmt.Sprint("word-", rng.IntN(words))
			line = append(line, word)
			model[word]++
		}
		record := &kgo.Record{Topic: "lines", Key: []byte(line[0]), Value: []byte(strings.Join(line, " "))}
		client.Produce(t.Context(), record, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("a line was not taken: %v", err)
			}
		})
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	if err := client.Flush(t.Context()); err != nil {
		t.Error(err)
	}
}

// read is a consumer of read_committed that wants each word's counts to be 1, 2, 3 and so on.
func read(t *testing.T, addr string, model map[string]int64, app *application) map[string]int64 {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics("counts"), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), finishes)
	defer cancel()
	counted := map[string]int64{}
	for !maps.Equal(counted, model) {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Errorf("not everything is counted after %v:\n%s", finishes, app.tail())
			return counted
		}
		for r := range fetches.RecordsAll() {
			word, n := string(r.Key), int64(binary.BigEndian.Uint64(r.Value))
			if n != counted[word]+1 {
				t.Fatalf("%s: %d after %d, at offset %d of partition %d", word, n, counted[word], r.Offset, r.Partition)
			}
			if n > model[word] {
				t.Fatalf("%s: %d, and it is there %d times; all: %v", word, n, model[word], slices.Sorted(maps.Keys(model)))
			}
			counted[word] = n
		}
	}
	// Nothing comes after that.
	ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if more := client.PollFetches(ctx).NumRecords(); more > 0 {
		t.Errorf("%d counts more", more)
	}
	return counted
}
