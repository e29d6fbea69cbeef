package image

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/image/client"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// stopLimit is how long docker stop may take (FX-32): the whole command, the engine's own work with it. Most of several have to keep to it, as
// a machine that is busy with something else holds one up.
const stopLimit = time.Second

// A load is one idempotent producer that goes on over everything that happens to its broker.
type load struct {
	t      *testing.T
	addr   string
	cancel context.CancelFunc
	ended  chan struct{}
	acked  atomic.Int64 // records, numbered from 0, in order
	err    error        // read after ended
}

const loadTopic = "load"

func startLoad(t *testing.T, addr string) *load {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic(loadTopic), kgo.MaxBufferedRecords(500),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.UnknownTopicRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{t: t, addr: addr, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		defer cl.Close()
		for i := 0; ctx.Err() == nil; i++ {
			cl.Produce(context.Background(), kgo.StringRecord(strconv.Itoa(i)), func(_ *kgo.Record, err error) {
				if err != nil {
					l.err = errors.Join(l.err, err) // callbacks run one after the other
					return
				}
				l.acked.Add(1)
			})
		}
		flush, done := context.WithTimeout(context.Background(), 30*time.Second)
		defer done()
		if err := cl.Flush(flush); err != nil {
			l.err = errors.Join(l.err, err)
		}
	}()
	t.Cleanup(cancel)
	return l
}

// more waits until n more records are acknowledged.
func (l *load) more(n int64) {
	l.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	want, end := l.acked.Load()+n, time.Now().Add(30*time.Second)
	for ; l.acked.Load() < want; <-tick.C {
		if time.Now().After(end) {
			l.t.Fatalf("%d records acknowledged, waiting for %d", l.acked.Load(), want)
		}
	}
}

// verify ends the producer and reads the partition: every record once, in order.
func (l *load) verify() {
	l.t.Helper()
	l.cancel()
	<-l.ended
	if l.err != nil {
		l.t.Errorf("the producer gave up: %v", l.err)
	}
	acked := int(l.acked.Load())
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(l.addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{loadTopic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		l.t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, loadTopic)
	if err != nil {
		l.t.Fatal(err)
	}
	end, _ := ends.Lookup(loadTopic, 0)
	found := 0
	for int64(found) < end.Offset {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			l.t.Fatalf("after %d records: %v", found, err)
		}
		for r := range fetches.RecordsAll() {
			if string(r.Value) != strconv.Itoa(found) {
				l.t.Fatalf("record %q at offset %d", r.Value, r.Offset)
			}
			found++
		}
	}
	l.t.Logf("acknowledged %d, found %d, each once and in order", acked, found)
	if found < acked {
		l.t.Errorf("%d acknowledged records are lost", acked-found)
	}
}

// fetching counts the clients that have a Fetch at the broker.
type fetching struct {
	mu      sync.Mutex
	waiting map[int]bool
}

type fetchHook struct {
	f  *fetching
	id int
}

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (h fetchHook) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if key == kmsg.Fetch.Int16() && err == nil {
		h.f.set(h.id, true)
	}
}

// OnBrokerRead implements kgo.HookBrokerRead.
func (h fetchHook) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == kmsg.Fetch.Int16() {
		h.f.set(h.id, false)
	}
}

func (f *fetching) set(id int, waits bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting[id] = waits
}

func (f *fetching) count() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, waits := range f.waiting {
		if waits {
			n++
		}
	}
	return n
}

// longPoll starts n consumers of a topic that nothing comes to, half of them in a group each, and returns once each waits in a Fetch.
func longPoll(t *testing.T, addr string, n int) {
	t.Helper()
	const topic = "idle"
	if err := client.Produce(t.Context(), addr, topic, "only one"); err != nil {
		t.Fatal(err)
	}
	f := &fetching{waiting: map[int]bool{}}
	for i := range n {
		opts := []kgo.Opt{kgo.SeedBrokers(addr), kgo.WithHooks(fetchHook{f, i}), kgo.FetchMaxWait(time.Minute), kgo.FetchMinBytes(1 << 20)}
		if i%2 == 0 {
			opts = append(opts, kgo.ConsumerGroup(fmt.Sprint("idle-", i)), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()))
		} else {
			opts = append(opts, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtEnd()}}))
		}
		cl, err := kgo.NewClient(opts...)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				cl.PollFetches(ctx)
			}
		}()
		t.Cleanup(func() {
			cancel()
			<-done
			cl.Close()
		})
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); f.count() < n; <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%d of %d consumers are in a long poll", f.count(), n)
		}
	}
}

// Show 3. FX-32, ST-53: docker stop with 20 consumers in long poll and a producer running is an exit with 0 in under a second, and nothing
// that was acknowledged is lost; neither by docker kill.
func TestStopAndKillUnderLoad(t *testing.T) {
	needEngine(t)
	c, addr := published(t, "--volume", newVolume(t)+":"+dataDir)
	l := startLoad(t, addr)
	longPoll(t, addr, 20)
	slow, stops := 0, 5
	for range stops {
		l.more(2_000)
		began := time.Now()
		must(t, "stop", c.name)
		took := time.Since(began)
		code := c.inspect("{{.State.ExitCode}}")
		t.Logf("docker stop: exit code %s after %v, %d records acknowledged", code, took.Round(time.Millisecond), l.acked.Load())
		if code != "0" {
			t.Errorf("exit code %s", code)
		}
		if took >= stopLimit {
			slow++
		}
		c.start()
		l.more(2_000)

		must(t, "kill", c.name)
		c.await("{{.State.Running}}", "false")
		if code := c.inspect("{{.State.ExitCode}}"); code != "137" {
			t.Errorf("exit code %s after SIGKILL", code)
		}
		c.start()
	}
	if slow > stops/2 {
		t.Errorf("%d of %d stops took %v and more", slow, stops, stopLimit)
	}
	l.more(2_000)
	l.verify()
}

// A restarter is a broker that can be stopped in order and started on the same data.
type restarter struct {
	addr    string
	restart func()
}

// ST-74: a clean restart, end to end, against the real binary and against the image with a named volume: a new container each time.
func TestCleanRestart(t *testing.T) {
	t.Run("binary", func(t *testing.T) {
		b := target.Start(t, target.Options{Flags: []string{"--topics", "seeded:3"}})
		cleanRestart(t, restarter{b.Addr(), func() { b.Stop(); b.Restart() }})
	})
	t.Run("image", func(t *testing.T) {
		needEngine(t)
		args := []string{"--volume", newVolume(t) + ":" + dataDir, "--env", "DOZE_KAFKA_TOPICS=seeded:3"}
		c, addr := published(t, args...)
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		cleanRestart(t, restarter{addr, func() {
			must(t, "stop", c.name)
			must(t, "rm", c.name)
			c = run(t, append(args, "--publish", "127.0.0.1:"+port+":9092", "--env", "DOZE_KAFKA_HOST_ENDPOINT="+addr, image)...).healthy()
		}})
	})
}

func cleanRestart(t *testing.T, b restarter) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	describe := func() (cluster string, topics kadm.TopicDetails) {
		m, err := admin.Metadata(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return m.Cluster, m.Topics
	}
	if err := client.Produce(t.Context(), b.addr, "demo", "1", "2", "3"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Consume(t.Context(), b.addr, "demo", "group", 2); err != nil {
		t.Fatal(err)
	}
	cluster, topics := describe()
	b.restart()
	if again, now := describe(); again != cluster || len(now) != len(topics) || len(now) < 2 {
		t.Errorf("cluster %s, then %s; topics %v, then %v", cluster, again, topics.Names(), now.Names())
	} else {
		for name, d := range topics {
			if now[name].ID != d.ID || len(now[name].Partitions) != len(d.Partitions) {
				t.Errorf("topic %s was %v, is %v", name, d.ID, now[name].ID)
			}
		}
	}
	if at, err := client.Committed(t.Context(), b.addr, "demo", "group"); err != nil || at != 2 {
		t.Errorf("committed offset %d, %v", at, err)
	}
	if got, err := client.Consume(t.Context(), b.addr, "demo", "group", 1); err != nil || got[0] != "3" {
		t.Errorf("the group went on with %q, %v", got, err)
	}
	if got, err := client.Consume(t.Context(), b.addr, "demo", "another", 3); err != nil || fmt.Sprint(got) != "[1 2 3]" {
		t.Errorf("consumed %q, %v", got, err)
	}
}
