//go:build linux

package fulldisk

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/proc"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

const perSecond = 1500 // records of 1 KiB, of each producer

// A pump is a producer that sends numbered records to partition 0 of a topic, and what it was told.
type pump struct {
	topic string
	stop  func() // returns once all are answered

	mu     sync.Mutex // guards what follows
	acked  map[int]int64
	failed map[int]string
}

func newPump(topic string) *pump {
	return &pump{topic: topic, acked: map[int]int64{}, failed: map[int]string{}}
}

func (p *pump) told(n int, offset int64, err string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != "" {
		p.failed[n] = err
		return
	}
	p.acked[n] = offset
}

func (p *pump) acknowledged() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.acked)
}

// franz is a producer of franz-go: idempotent, acks=all.
func franz(t *testing.T, addr, topic string) *pump {
	t.Helper()
	p := newPump(topic)
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(2000), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RequestRetries(100_000), kgo.RetryTimeout(4*time.Minute), kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }))
	if err != nil {
		t.Fatal(err)
	}
	filler := " " + strings.Repeat("x", 1000)
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(time.Second / perSecond)
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			cl.Produce(t.Context(), &kgo.Record{Topic: topic, Value: []byte(fmt.Sprint(n) + filler)}, func(r *kgo.Record, err error) {
				if err != nil {
					p.told(n, -1, err.Error())
					return
				}
				p.told(n, r.Offset, "")
			})
			<-tick.C
		}
	})
	p.stop = sync.OnceFunc(func() {
		cancel()
		done.Wait()
		if err := cl.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		cl.Close()
	})
	t.Cleanup(cl.Close)
	return p
}

// java is Apache Kafka's producer as it comes.
func java(t *testing.T, addr, topic string) *pump {
	t.Helper()
	target.Need(t, "java", "javac", "mvn")
	classpath, err := kafka.Classpath(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := newPump(topic)
	process, in, out, err := proc.Talk(filepath.Join(t.TempDir(), "java.log"), nil,
		"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classpath, filepath.Join("java", "Pump.java"), addr, topic, fmt.Sprint(perSecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	var done sync.WaitGroup
	done.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var n int
			var offset int64
			if _, err := fmt.Sscanf(lines.Text(), "ack %d %d", &n, &offset); err == nil {
				p.told(n, offset, "")
			} else if _, err := fmt.Sscanf(lines.Text(), "failed %d", &n); err == nil {
				p.told(n, -1, lines.Text())
			}
		}
	})
	p.stop = sync.OnceFunc(func() {
		_ = in.Close() // the end of its input
		select {
		case <-process.Done():
		case <-time.After(4 * time.Minute):
			t.Error("the Java producer does not end")
			process.Kill()
		}
		done.Wait()
	})
	return p
}

// verify wants every acknowledged record to be there, once, at its offset, in order, and no more than was sent.
func (p *pump) verify(t *testing.T, addr, when string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{p.topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), p.topic)
	if err != nil || ends.Error() != nil {
		t.Fatal(err, ends.Error())
	}
	end, _ := ends.Lookup(p.topic, 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	found, last := map[int]int64{}, -1
	for next := int64(0); next < end.Offset; {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatal(err)
		}
		for r := range f.RecordsAll() {
			if len(r.Value) == 0 && r.Offset == next { // of the test itself
				next++
				continue
			}
			var n int
			if _, err := fmt.Sscan(string(r.Value), &n); err != nil || r.Offset != next || n <= last {
				t.Fatalf("%s: %s: offset %d where %d is due, record %d behind %d (%v)", when, p.topic, r.Offset, next, n, last, err)
			}
			found[n], last = r.Offset, n
			next++
		}
	}
	lost := 0
	for n, offset := range p.acked {
		if at, there := found[n]; !there || at != offset {
			lost++
		}
	}
	t.Logf("%s: %s: %d acknowledged, %d there, %d lost, %d given up by the producer", when, p.topic, len(p.acked), len(found), lost, len(p.failed))
	if lost > 0 {
		t.Errorf("%s: %s: %d records are lost, or not where they were", when, p.topic, lost)
	}
	if len(p.failed) > 0 {
		n := slices.Min(slices.Collect(maps.Keys(p.failed)))
		t.Errorf("%s: %s: the producer gave up %d records; %d: %s", when, p.topic, len(p.failed), n, p.failed[n])
	}
}
