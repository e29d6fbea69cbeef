//go:build unix

package matrix

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

const (
	partitions   = 6
	perCodec     = 60 // records that a client produces with each codec, and as many again with the idempotent producer
	afterRestart = 120
	afterLeave   = 30
	replyWithin  = 40 * time.Second
	stableWithin = 40 * time.Second
	readWithin   = 40 * time.Second
)

// workload is the one workload: a client, a broker, and one assignor.
type workload struct {
	*session
	broker   *target.Broker
	admin    *kadm.Client
	producer *driver
	info     wire.Line
	topic    string
	group    string
	assignor string // empty if the client has none of the kind
	made     int    // records produced so far
	result   *result
}

func newWorkload(t *testing.T, broker *target.Broker, d *Driver, step string, r *result) *workload {
	argv, env := d.Command(t)
	w := &workload{session: newSession(t, argv, append(env, "BOOTSTRAP="+broker.Addr())), broker: broker, result: r}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr()), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	w.admin = kadm.NewClient(client)
	w.producer = w.start("producer")
	w.info = w.producer.do(wire.Command{Do: "info"})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ledger = newLedger(partitions, w.has("headers"), !w.has("commit"))
	w.topic, w.group = "matrix-"+step, "group-"+step
	for _, assignor := range map[string][]string{"eager": {"range", "roundrobin"}, "cooperative": {"cooperative"}}[step] {
		if w.assignor == "" && w.has(assignor) {
			w.assignor = assignor
		}
	}
	return w
}

// step notes in the trace where the workload is.
func (w *workload) step(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("== " + what)
}

func (w *workload) has(feature string) bool { return slices.Contains(w.info.Features, feature) }

// create makes the topic by the client, or for it.
func (w *workload) create() {
	w.t.Helper()
	if !w.has("admin") {
		if _, err := w.admin.CreateTopic(w.t.Context(), partitions, 1, nil, w.topic); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	w.producer.do(wire.Command{Do: "create", Topic: w.topic, Partitions: partitions})
	topics, err := w.admin.ListTopics(w.t.Context(), w.topic)
	if err != nil || len(topics[w.topic].Partitions) != partitions {
		w.t.Fatalf("the topic has %d partitions after create: %v", len(topics[w.topic].Partitions), err)
	}
	w.result.did("create")
}

// leaders waits until every partition answers: Kafka says that a topic is created a little before that. A producer without idempotence may
// store a batch twice when another one of its request is refused.
func (w *workload) leaders() {
	w.t.Helper()
	deadline := time.Now().Add(stableWithin)
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		ends, err := w.admin.ListEndOffsets(w.t.Context(), w.topic)
		if err == nil {
			err = ends.Error()
		}
		if err == nil && len(ends[w.topic]) == partitions {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s is not there %v after its creation: %v", w.topic, stableWithin, err)
		}
		<-tick.C
	}
}

// produce makes count more records and wants them stored with that codec.
func (w *workload) produce(codec string, idempotent bool, count int) {
	w.t.Helper()
	from := w.made
	w.made += count
	w.with(func(l *ledger) error {
		l.producing(from, count)
		return nil
	})
	reply := w.producer.do(wire.Command{Do: "produce", Topic: w.topic, Codec: codec, Idempotent: idempotent, From: from, Count: count, Partitions: partitions})
	w.with(func(l *ledger) error { return l.acknowledged(from, count, reply.Acked) })
	ends, err := w.admin.ListEndOffsets(w.t.Context(), w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	for p, end := range w.ledger.ends() {
		if o, _ := ends.Lookup(w.topic, int32(p)); o.Err != nil || o.Offset != end {
			w.t.Fatalf("partition %d ends at %d (%v), want %d", p, o.Offset, o.Err, end)
		}
	}
}

// stored reads the topic from outside and wants records from..to-1 in batches with that codec, of an idempotent producer or not.
func (w *workload) stored(codec string, idempotent bool, from, to int) {
	w.t.Helper()
	start := map[int32]kgo.Offset{}
	for p := range int32(partitions) {
		start[p] = kgo.NewOffset().At(int64(from / partitions))
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(w.broker.Addr()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{w.topic: start}))
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), readWithin)
	defer cancel()
	for seen := from; seen < to; {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			w.t.Fatal(err)
		}
		for r := range fetches.RecordsAll() {
			if got := codecNames[r.Attrs.CompressionType()]; got != codec {
				w.t.Fatalf("%s: stored with codec %s, want %s", r.Key, got, codec)
			}
			if (r.ProducerID >= 0) != idempotent {
				w.t.Fatalf("%s: stored with producer id %d, idempotent %v", r.Key, r.ProducerID, idempotent)
			}
			seen++
		}
	}
}

// codecNames are in the order of their numbers in a batch's attributes.
var codecNames = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// join starts members at the same time.
func (w *workload) join(names ...string) []*driver {
	w.t.Helper()
	var members []*driver
	for _, name := range names {
		members = append(members, w.start(name))
	}
	all(w.t, members, func(ctx context.Context, d *driver) error {
		_, err := d.try(ctx, wire.Command{Do: "join", Topic: w.topic, Group: w.group, Assignor: w.assignor})
		return err
	})
	return members
}

// each runs f for each member at the same time.
func each(t *testing.T, members []*driver, f func(context.Context, *driver) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), replyWithin)
	defer cancel()
	failures := make([]error, len(members))
	var wg sync.WaitGroup
	for i, d := range members {
		wg.Go(func() { failures[i] = f(ctx, d) })
	}
	wg.Wait()
	return errors.Join(failures...)
}

// all is each for what has to succeed.
func all(t *testing.T, members []*driver, f func(context.Context, *driver) error) {
	t.Helper()
	if err := each(t, members, f); err != nil {
		t.Fatal(err)
	}
}

// stable waits until the broker calls the group stable, with n members that have every partition once, and the members say the same.
func (w *workload) stable(n int) {
	w.t.Helper()
	w.await(stableWithin, fmt.Sprintf("%d members have everything", n), func(l *ledger) bool { return l.shared(n) })
	w.becomes(fmt.Sprintf("Stable, %d members, %d partitions", n, partitions))
	w.await(stableWithin, fmt.Sprintf("%d members have everything", n), func(l *ledger) bool { return l.shared(n) })
}

// becomes waits until the broker says this of the group.
func (w *workload) becomes(want string) {
	w.t.Helper()
	deadline := time.Now().Add(stableWithin)
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		got := w.describe()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the broker says of the group: %s, want: %s", got, want)
		}
		<-tick.C
	}
}

// describe is the group as the broker tells it.
func (w *workload) describe() string {
	w.t.Helper()
	groups, err := w.admin.DescribeGroups(w.t.Context(), w.group)
	if err != nil {
		return err.Error() // a connection to the broker before its restart, or a coordinator that loads the group
	}
	g := groups[w.group]
	seen := map[int32]bool{}
	for _, m := range g.Members {
		assigned, _ := m.Assigned.AsConsumer()
		if assigned == nil {
			continue
		}
		for _, t := range assigned.Topics {
			for _, p := range t.Partitions {
				if seen[p] {
					w.t.Fatalf("the broker says that partition %d has two owners: %+v", p, g)
				}
				seen[p] = true
			}
		}
	}
	return fmt.Sprintf("%s, %d members, %d partitions", g.State, len(g.Members), len(seen))
}

// readAll waits until the group has read everything.
func (w *workload) readAll() {
	w.t.Helper()
	w.await(readWithin, "everything is read", (*ledger).allRead)
}

// commit lets every member commit what was read, and asks the broker. A commit that fails because the client has not noticed yet that the
// broker was restarted is made again, as an application would, once the group has settled.
func (w *workload) commit(members []*driver) {
	w.t.Helper()
	w.with(func(l *ledger) error {
		l.committing = l.ends()
		return nil
	})
	if w.has("commit") {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(stableWithin); ; {
			err := w.tryCommit(members)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				w.t.Fatal(err)
			}
			w.step(fmt.Sprintf("commit again: %v", err))
			<-tick.C
			w.stable(len(members))
			w.readAll()
		}
		w.wantCommitted()
	}
	w.with(func(l *ledger) error {
		l.committed, l.committing = l.ends(), nil
		return nil
	})
}

func (w *workload) tryCommit(members []*driver) error {
	said := map[string]int64{}
	failures := each(w.t, members, func(ctx context.Context, d *driver) error {
		line, err := d.try(ctx, wire.Command{Do: "commit"})
		w.mu.Lock()
		defer w.mu.Unlock()
		maps.Copy(said, line.Committed)
		return err
	})
	if failures != nil {
		return failures
	}
	for p, end := range w.ledger.ends() {
		if got, ok := said[fmt.Sprint(p)]; !ok || got != end {
			return fmt.Errorf("the members say that they committed %v, want %v", said, w.ledger.ends())
		}
	}
	return nil
}

// wantCommitted asks the broker for the group's offsets: everything has to be committed, at once if the client commits on request.
func (w *workload) wantCommitted() {
	w.t.Helper()
	deadline := time.Now().Add(stableWithin)
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		got := w.committed()
		if maps.Equal(got, w.ledger.ends()) {
			return
		}
		if w.has("commit") || time.Now().After(deadline) {
			w.t.Fatalf("the broker has commits %v, want %v", got, w.ledger.ends())
		}
		<-tick.C
	}
}

// committed are the group's offsets as the broker tells them.
func (w *workload) committed() map[int]int64 {
	w.t.Helper()
	offsets, err := w.admin.FetchOffsets(w.t.Context(), w.group)
	if err != nil {
		w.t.Fatal(err)
	}
	committed := map[int]int64{}
	for p := range partitions {
		if o, ok := offsets.Lookup(w.topic, int32(p)); ok && o.Err == nil && o.At >= 0 {
			committed[p] = o.At
		}
	}
	return committed
}

// leave lets members leave in order.
func (w *workload) leave(members ...*driver) {
	w.t.Helper()
	all(w.t, members, func(ctx context.Context, d *driver) error {
		_, err := d.try(ctx, wire.Command{Do: "leave"})
		return err
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range members {
		if owned := w.ledger.ownedBy(d.name); len(owned) > 0 {
			w.t.Fatalf("%s has left and not given up %v", d.name, owned)
		}
	}
}
