package groups

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var runs = flag.Int("runs", 5, "how often a fresh group has its first record, for each client")

const (
	together = 50 // members that start at once
	waiting  = "first"
)

// Show 1: subscribe to first record of a fresh group. The figures are printed; GR-8's bound is held by a test in virtual time (pkg/brokertest).
func TestFirstRecordOfAFreshGroup(t *testing.T) {
	broker := target.Start(t, target.Options{})
	client := plain(t, broker.Addr())
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, nil, waiting); err != nil {
		t.Fatal(err)
	}
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: waiting, Value: []byte("a record that waits for a consumer")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	t.Log(broker.Name())
	t.Run("franz-go", func(t *testing.T) {
		figures(t, *runs, func(n int) time.Duration { return franzFirst(t, broker.Addr(), fmt.Sprint("franz-", n)) })
	})
	t.Run("librdkafka by kcat", func(t *testing.T) {
		target.Need(t, "kcat")
		idle := figures(t, min(*runs, 20), func(int) time.Duration { return firstByte(t, "kcat", "-V") })
		t.Logf("of which the start of the program is about %v", idle)
		figures(t, *runs, func(n int) time.Duration {
			return firstByte(t, "kcat", "-b", broker.Addr(), "-X", "auto.offset.reset=earliest", "-c", "1", "-u", "-q", "-G", fmt.Sprint("kcat-", n), waiting)
		})
	})
	t.Run("Java", func(t *testing.T) {
		target.Need(t, "java", "javac", "mvn")
		took := javaFirst(t, broker.Addr())
		figures(t, len(took), func(n int) time.Duration { return took[n] })
	})
}

func plain(t *testing.T, addr string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseAllowingRebalance)
	return client
}

// figures measures n times, prints the distribution, and returns the median.
func figures(t *testing.T, n int, measure func(n int) time.Duration) time.Duration {
	t.Helper()
	var all []time.Duration
	for i := range n {
		all = append(all, measure(i))
	}
	slices.Sort(all)
	at := func(percent int) time.Duration {
		return all[max((len(all)*percent+99)/100, 1)-1].Round(100 * time.Microsecond)
	}
	t.Logf("%d runs: p50 %v, p99 %v, between %v and %v", n, at(50), at(99), at(0), at(100))
	return at(50)
}

func franzFirst(t *testing.T, addr, group string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	began := time.Now()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(waiting), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	fetches := client.PollFetches(ctx)
	took := time.Since(began)
	if err := fetches.Err(); err != nil || fetches.NumRecords() == 0 {
		t.Fatalf("%d records, %v", fetches.NumRecords(), err)
	}
	return took
}

// firstByte is how long a program takes from its start until it writes something.
func firstByte(t *testing.T, argv ...string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, readErr := out.Read(make([]byte, 1))
	took := time.Since(began)
	for buf := make([]byte, 1024); ; {
		if _, err := out.Read(buf); err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil || readErr != nil {
		t.Fatalf("%q: %v, %v\n%s", argv, readErr, err, stderr.Bytes())
	}
	return took
}

func javaFirst(t *testing.T, addr string) (took []time.Duration) {
	t.Helper()
	classpath, err := kafka.Classpath(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", classpath, filepath.Join("java", "FirstRecord.java"),
		addr, waiting, "java-", strconv.Itoa(*runs))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		us, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Duration(us)*time.Microsecond)
	}
	if len(took) != *runs {
		t.Fatalf("%d runs\n%s", len(took), stderr.Bytes())
	}
	return took
}

// Show 1: fifty members that start at once: the time until each has partitions in one stable generation, and how many generations that took.
func TestFiftyMembersAtOnce(t *testing.T) {
	broker := target.Start(t, target.Options{})
	const fifty = "fifty"
	if _, err := kadm.NewClient(plain(t, broker.Addr())).CreateTopic(t.Context(), together, 1, nil, fifty); err != nil {
		t.Fatal(err)
	}
	t.Log(broker.Name())
	var generations []int32
	figures(t, max(1, min(*runs/10, 20)), func(n int) time.Duration {
		took, generation := joinTogether(t, broker.Addr(), fmt.Sprint("fifty-", n), fifty)
		generations = append(generations, generation)
		return took
	})
	t.Logf("generations: %v", generations)
}

func joinTogether(t *testing.T, addr, group, topic string) (took time.Duration, generation int32) {
	t.Helper()
	o := newOwnership(together)
	var names []string
	clients := make([]*kgo.Client, together)
	var starting sync.WaitGroup
	began := time.Now()
	for i := range clients {
		name := fmt.Sprint("member-", i)
		names = append(names, name)
		starting.Go(func() {
			released := func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { o.release(name, lost[topic]) }
			client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.OnPartitionsRevoked(released), kgo.OnPartitionsLost(released),
				kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) { o.assign(name, got[topic]) }))
			if err != nil {
				t.Error(err)
				return
			}
			clients[i] = client
		})
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	defer func() {
		var closing sync.WaitGroup
		for _, c := range clients {
			closing.Go(c.Close)
		}
		closing.Wait()
	}()
	o.await(t, names, bound)
	took = time.Since(began)
	_, generation = clients[0].GroupMetadata()
	o.report(t)
	return took, generation
}
