//go:build unix

package matrix

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

const (
	perTransaction = 30
	shortTimeout   = 2000 // ms, of a transaction that times out
	abortedWithin  = 30 * time.Second
)

// transacting is the workload of a client's transactions: what is committed, what is not, and what there is to see.
type transacting struct {
	*session
	admin     *kadm.Client
	addr      string
	info      wire.Line
	topic     string
	group     string
	made      int
	committed []string // keys
}

// transact runs it, with what the client has: producer, consumer, or both.
func transact(t *testing.T, broker *target.Broker, d *Driver, r *result) {
	argv, env := d.Command(t)
	w := &transacting{session: newSession(t, argv, append(env, "BOOTSTRAP="+broker.Addr())), addr: broker.Addr(), topic: "transactions", group: "transactions-offsets"}
	client, err := kgo.NewClient(kgo.SeedBrokers(w.addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	w.admin = kadm.NewClient(client)
	first := w.start("first")
	w.info = first.do(wire.Command{Do: "info"})
	if _, err := w.admin.CreateTopic(t.Context(), partitions, 1, nil, w.topic); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(w.info.Features, "transactions") {
		w.commitAndAbort(first)
		w.fence(first)
		w.timeOut()
		r.did("transactions")
	}
	if d.Limits["read committed"] == "" {
		open := w.outside()
		w.readCommitted()
		r.did("read committed")
		open()
	}
	first.quit()
}

// txn is a command for the next records.
func (w *transacting) txn(id, end string) wire.Command {
	c := wire.Command{Do: "txn", Topic: w.topic, TransactionalID: id, End: end, From: w.made, Count: perTransaction, Partitions: partitions}
	for i := range perTransaction {
		if end == "commit" {
			w.committed = append(w.committed, fmt.Sprint("key-", w.made+i))
		}
	}
	w.made += perTransaction
	return c
}

// commitAndAbort has offsets in each of the transactions.
func (w *transacting) commitAndAbort(d *driver) {
	w.t.Helper()
	for i, end := range []string{"commit", "abort", "commit", "commit", "abort"} {
		c := w.txn("first", end)
		c.Group, c.Offsets = w.group, map[string]int64{"0": int64(10 + i), "5": int64(20 + i)}
		d.do(c)
	}
	w.offsets(map[int32]int64{0: 13, 5: 23})
	w.visible()
}

// fence has a second instance come while the first has a transaction.
func (w *transacting) fence(d *driver) {
	w.t.Helper()
	d.do(w.txn("first", "hang"))
	second := w.start("second")
	second.do(w.txn("first", "commit"))
	w.refused(d, "first")
	second.do(w.txn("first", "commit"))
	second.quit()
	w.visible()
}

// timeOut has a transaction that takes too long.
func (w *transacting) timeOut() {
	w.t.Helper()
	d := w.start("slow")
	c := w.txn("slow", "hang")
	c.TimeoutMillis, c.Group, c.Offsets = shortTimeout, w.group, map[string]int64{"0": 99}
	d.do(c)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(abortedWithin); ; <-tick.C {
		all, err := w.admin.DescribeTransactions(w.t.Context(), "slow")
		if err == nil && all["slow"].State == "CompleteAbort" {
			break
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("a transaction that has timed out is not aborted: %+v, %v", all, err)
		}
	}
	w.refused(d, "slow")
	d.quits.Store(true)
	d.process.Kill() // it may be trying to end its transaction in order
	w.offsets(map[int32]int64{0: 13, 5: 23})
	w.visible()
}

// refused wants that a hanging transaction can't be committed.
func (w *transacting) refused(d *driver, id string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), replyWithin)
	defer cancel()
	_, err := d.try(ctx, wire.Command{Do: "txn", Topic: w.topic, TransactionalID: id, End: "commit", Partitions: partitions})
	if err == nil || ctx.Err() != nil {
		w.t.Fatalf("%s commits a transaction that was aborted: %v", d.name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("refused: " + err.Error())
}

// offsets are those of the group, as the broker tells them.
func (w *transacting) offsets(want map[int32]int64) {
	w.t.Helper()
	got, err := w.admin.FetchOffsets(w.t.Context(), w.group)
	if err != nil {
		w.t.Fatal(err)
	}
	for p, offset := range want {
		if o, ok := got.Lookup(w.topic, p); !ok || o.At != offset {
			w.t.Fatalf("partition %d of the group is at %d (%v), want %d", p, o.At, ok, offset)
		}
	}
}

// visible reads the topic from outside, as a consumer of read_committed.
func (w *transacting) visible() {
	w.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.addr), kgo.ConsumeTopics(w.topic), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), readWithin)
	defer cancel()
	ends, err := w.admin.ListCommittedOffsets(ctx, w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := w.admin.ListEndOffsets(ctx, w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	all.Each(func(o kadm.ListedOffset) {
		if stable, _ := ends.Lookup(o.Topic, o.Partition); stable.Offset != o.Offset {
			w.t.Fatalf("partition %d is stable up to %d of %d, and no transaction is open", o.Partition, stable.Offset, o.Offset)
		}
	})
	var keys []string
	for len(keys) < len(w.committed) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			w.t.Fatalf("%d of %d records: %v", len(keys), len(w.committed), err)
		}
		for r := range fetches.RecordsAll() {
			keys = append(keys, string(r.Key))
		}
	}
	w.same(keys)
}

// same wants keys to be those that were committed, in any order.
func (w *transacting) same(keys []string) {
	w.t.Helper()
	keys, want := slices.Sorted(slices.Values(keys)), slices.Sorted(slices.Values(w.committed))
	if !slices.Equal(keys, want) {
		w.t.Fatalf("%d records are seen, %d were committed:\n%v\n%v", len(keys), len(want), keys, want)
	}
}

// outside commits, aborts, and leaves open, transactions of franz-go, for the consumer of every client. What is open has records on all partitions.
func (w *transacting) outside() (end func()) {
	w.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(w.addr), kgo.TransactionalID("outside"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.TransactionTimeout(15*time.Minute)) // it hangs until a client has read
	if err != nil {
		w.t.Fatal(err)
	}
	for _, end := range []string{"abort", "commit", "abort", "hang"} {
		c := w.txn("outside", end)
		if err := client.BeginTransaction(); err != nil {
			w.t.Fatal(err)
		}
		for _, r := range c.Records() {
			record := &kgo.Record{Topic: c.Topic, Partition: int32(r.Partition), Key: []byte(r.Key), Value: []byte(r.Value), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte(r.Header)}}}
			client.Produce(w.t.Context(), record, nil)
		}
		if err := client.Flush(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		// franz-go 1.22.3 sends the first records for a topic before it has stored the topic's partitions, and a transaction that is ended in
		// between counts as one without records: nothing is sent, and no error comes. This waits until its update of metadata is done.
		client.PurgeTopicsFromProducing("no topic")
		if end == "hang" {
			break
		}
		if err := client.EndTransaction(w.t.Context(), end == "commit"); err != nil {
			w.t.Fatal(err)
		}
	}
	return func() {
		if err := client.EndTransaction(w.t.Context(), kgo.TryAbort); err != nil {
			w.t.Error(err)
		}
		client.Close()
	}
}

// readCommitted reads everything with a member of a group, once as it says and once more to see that nothing comes after that.
func (w *transacting) readCommitted() {
	w.t.Helper()
	d := w.start("reader")
	c := wire.Command{Do: "join", Topic: w.topic, Group: "transactions-reader", Isolation: "read_committed"}
	for _, a := range []string{"range", "roundrobin"} {
		if c.Assignor == "" && slices.Contains(w.info.Features, a) {
			c.Assignor = a
		}
	}
	d.do(c)
	read := func() (keys []string) {
		for _, r := range w.records {
			keys = append(keys, r.Key)
		}
		return keys
	}
	w.await(readWithin, "what was committed", func(*ledger) bool { return len(w.records) >= len(w.committed) })
	time.Sleep(time.Second) // what is open would come within that
	w.mu.Lock()
	keys := read()
	w.mu.Unlock()
	w.same(keys)
	d.do(wire.Command{Do: "leave"})
	d.quit()
}
