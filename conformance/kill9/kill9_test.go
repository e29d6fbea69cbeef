// Package kill9 kills a broker under load, again and again on the same data directory, and then reads what is there.
package kill9

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/target"
)

var kills = flag.Int("kills", 10, "how often the broker is killed")

const (
	topic      = "kill9"
	partitions = 6
	perKill    = 20_000 // records that are acknowledged at least between two kills
	limit      = 8 * time.Minute
)

// ST-53, Show 3: ten kills in the middle of a produce run with the idempotent producer and acks=all; every acknowledged record is there exactly
// once, in the producer's order per partition.
func TestKill9(t *testing.T) {
	l := run(t, kgo.RequiredAcks(kgo.AllISRAcks()))
	if l.duplicates > 0 {
		t.Errorf("%d records are there more than once", l.duplicates)
	}
	if l.disorder > 0 {
		t.Errorf("%d records are out of order", l.disorder)
	}
}

// ST-53: the same with acks=1. A producer without idempotence that did not get its acknowledgement sends again, so a record may be there twice.
func TestKill9AcksOne(t *testing.T) {
	run(t, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
}

func run(t *testing.T, opts ...kgo.Opt) *ledger {
	t.Helper()
	// A KRaft broker that was killed is let in again once its session before has ended.
	broker := target.Start(t, target.Options{Properties: map[string]string{"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}})
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	create(ctx, t, broker.Addr())
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(broker.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(5_000),
		kgo.RetryTimeout(2*time.Minute), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	l := &ledger{}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		l.produce(ctx, client, stop)
	}()
	for range *kills {
		l.awaitAcknowledged(ctx, t, l.acknowledged.Load()+perKill+rand.Int64N(perKill))
		broker.Kill() // while the producer is sending
		broker.Restart()
	}
	l.awaitAcknowledged(ctx, t, l.acknowledged.Load()+perKill)
	close(stop)
	<-stopped
	if err := client.Flush(ctx); err != nil {
		t.Fatalf("flush: %v", err)
	}
	l.consume(ctx, t, broker.Addr())
	lost := l.lost()
	t.Logf("%s: kills %d, acknowledged %d, found %d, lost %d, duplicates %d, out of order %d, given up by the producer %d", broker.Name(), *kills,
		l.acknowledged.Load(), l.found, lost, l.duplicates, l.disorder, l.failed.Load())
	if lost > 0 {
		t.Errorf("%d acknowledged records are not there", lost)
	}
	if l.failed.Load() > 0 {
		t.Errorf("the producer gave up %d records although the broker came back each time", l.failed.Load())
	}
	return l
}

func create(ctx context.Context, t *testing.T, addr string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
}

// produce sends records to all partitions in turn until stop is closed. The client's limit of buffered records holds it back while the broker
// is away.
func (l *ledger) produce(ctx context.Context, client *kgo.Client, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		default:
		}
		for p := range int32(partitions) {
			n := l.send(p)
			value := fmt.Appendf(binary.BigEndian.AppendUint64(nil, n), " record %d of partition %d, of a run that kills its broker", n, p)
			client.Produce(ctx, &kgo.Record{Topic: topic, Partition: p, Value: value}, func(_ *kgo.Record, err error) {
				if err != nil {
					l.failed.Add(1)
					return
				}
				l.acknowledge(p, n)
			})
		}
	}
}

// awaitAcknowledged returns once n records are acknowledged.
func (l *ledger) awaitAcknowledged(ctx context.Context, t *testing.T, n int64) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for l.acknowledged.Load() < n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d records acknowledged, %d given up, waiting for %d: %v", l.acknowledged.Load(), l.failed.Load(), n, ctx.Err())
		}
	}
}

// consume reads every partition to its end, as a new client, and fills in the account.
func (l *ledger) consume(ctx context.Context, t *testing.T, addr string) {
	t.Helper()
	offsets := map[int32]kgo.Offset{}
	for p := range int32(partitions) {
		offsets[p] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil || ends.Error() != nil {
		t.Fatal(err, ends.Error())
	}
	var left int64
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	var next [partitions]int64
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%d records before the end: %v", left, err)
		}
		for r := range fetches.RecordsAll() {
			if r.Offset != next[r.Partition] {
				t.Fatalf("partition %d: offset %d after %d", r.Partition, r.Offset, next[r.Partition]-1)
			}
			next[r.Partition]++
			left--
			if err := l.find(r.Partition, binary.BigEndian.Uint64(r.Value)); err != nil {
				t.Fatalf("offset %d: %v", r.Offset, err)
			}
		}
	}
}
