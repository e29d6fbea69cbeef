package cleaner

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// putAt appends one record, of a time of its own; a value of nil is a tombstone.
func (k *kit) putAt(name string, partition int32, at time.Time, key string, value []byte) {
	k.Helper()
	made, _ := k.topics.Lookup(name)
	l, err := made.Log(partition)
	k.must(err)
	b := record.NewBuilder(record.Options{})
	k.must(b.Append(at.UnixMilli(), []byte(key), value))
	batch, err := b.Batch()
	k.must(err)
	a, err := l.Append(batch)
	k.must(err)
	k.must(l.AwaitFlushed(context.Background(), a.End))
}

// slow bounds what compaction reads and writes.
func (k *kit) slow(bytesPerSecond int64) {
	k.cleaner.turn <- struct{}{}
	k.cleaner.pacer.rate = bytesPerSecond
	<-k.cleaner.turn
}

// ST-41, ST-47: time alone rolls nothing, as in Kafka: the active segment is compacted once an append has rolled it, by
// segment.ms or by max.compaction.lag.ms, which binds it (LogConfig.maxSegmentMs).
func TestTheActiveSegmentIsNotCompactedBeforeAnAppendRollsIt(t *testing.T) {
	inBubble(t, func(k *kit) {
		for _, c := range []struct{ name, config string }{{"a", "segment.ms"}, {"b", "max.compaction.lag.ms"}} {
			made := k.create(c.name, 1, "cleanup.policy", "compact", c.config, "5000")
			k.alter(c.name, "internal.segment.bytes", "1000000")
			k.put(made, "x", "x", "y")
			pass(100 * time.Second)
			k.want(made, 0, 1, 2)
			k.put(made, "end")
			pass(2 * time.Second)
			k.want(made, 1, 2, 3)
		}
	})
}

// ST-45: without a retention of its own a tombstone goes with the second compaction that sees it.
func TestATombstoneWithoutRetention(t *testing.T) {
	inBubble(t, func(k *kit) {
		made := k.create("a", 1, "cleanup.policy", "compact", "delete.retention.ms", "0")
		k.put(made, "x")
		k.putAt("a", 0, k.clock.Now(), "x", nil)
		k.put(made, "end")
		pass(2 * time.Second)
		k.want(made, 1, 2)
		pass(10 * time.Second)
		k.want(made, 1, 2) // nothing is dirty
		k.put(made, "end")
		pass(2 * time.Second)
		k.want(made, 2, 3)
	})
}

// ST-47: the least lag goes by the records' times, be they of the future, or by the broker's where the topic has LogAppendTime.
func TestTheLeastLagGoesByTheTopicsTimes(t *testing.T) {
	inBubble(t, func(k *kit) {
		created := k.create("created", 1, "cleanup.policy", "compact", "min.compaction.lag.ms", "60000")
		k.create("appended", 1, "cleanup.policy", "compact", "min.compaction.lag.ms", "60000", "message.timestamp.type", "LogAppendTime")
		k.create("future", 1, "cleanup.policy", "compact", "min.compaction.lag.ms", "60000")
		appended, _ := k.topics.Lookup("appended")
		future, _ := k.topics.Lookup("future")
		old, coming := k.clock.Now().Add(-time.Hour), k.clock.Now().Add(30*time.Minute)
		for range 3 {
			k.putAt("created", 0, old, "x", []byte("12345678"))
			k.putAt("appended", 0, old, "x", []byte("12345678"))
			k.putAt("future", 0, coming, "x", []byte("12345678"))
		}
		pass(2 * time.Second)
		k.want(created, 1, 2)
		k.want(appended, 0, 1, 2)
		pass(61 * time.Second)
		k.want(appended, 1, 2)
		k.want(future, 0, 1, 2)
		pass(31 * time.Minute)
		k.want(future, 1, 2)
	})
}

// ST-49: compaction is first, so that retention takes nothing for which it makes room.
func TestCompactionComesBeforeRetention(t *testing.T) {
	inBubble(t, func(k *kit) {
		made := k.create("a", 1, "cleanup.policy", "compact,delete", "retention.bytes", "400")
		k.put(made, "old", "x", "x", "x", "x", "x", "x", "x", "x", "end")
		pass(2 * time.Second)
		k.want(made, 0, 8, 9)
		k.put(made, "b", "c", "d", "e", "end")
		pass(2 * time.Second)
		if l, _ := made.Opened(0); l.Offsets().LogStart == 0 {
			t.Error("retention did not act:", l.Offsets())
		}
	})
}

// FX-20: compactions that are asked for at once, beside the sweep's, come one after the other, and all succeed; so do appends
// and retention meanwhile.
func TestCompactionsAtOnce(t *testing.T) {
	inBubble(t, func(k *kit) {
		made := k.create("a", 2, "cleanup.policy", "compact")
		other := k.create("b", 1, "retention.bytes", "0")
		k.slow(100) // a record a second, or less
		k.put(made, "x", "y", "x", "y", "x", "end")
		var all sync.WaitGroup
		began := time.Now()
		for range 3 {
			all.Go(func() {
				done, err := k.cleaner.CompactTopic(context.Background(), made)
				if err != nil || done.Partitions != 2 {
					t.Error(done, err)
				}
			})
		}
		all.Go(func() {
			pass(3 * time.Second)
			k.fill(other, 0, 4, time.Now())
			k.put(made, "later")
		})
		pass(5 * time.Second)
		k.wantStart("meanwhile", "b", 0, 3)
		all.Wait()
		if took := time.Since(began); took < 5*time.Second {
			t.Error("not slow:", took)
		}
		k.want(made, 3, 4, 5, 6)
	})
}

// ST-45: the horizon of a tombstone is of when its partition is compacted, not of when the sweep began.
func TestAHorizonIsOfTheTimeOfItsPass(t *testing.T) {
	inBubble(t, func(k *kit) {
		made := k.create("a", 1, "cleanup.policy", "compact", "min.cleanable.dirty.ratio", "1")
		k.alter("a", "delete.retention.ms", "60000")
		k.put(made, "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "end")
		last := k.create("b", 1, "cleanup.policy", "compact", "min.cleanable.dirty.ratio", "1")
		k.alter("b", "delete.retention.ms", "60000")
		k.put(last, "x")
		k.putAt("b", 0, k.clock.Now(), "x", nil)
		k.put(last, "end")
		k.slow(20) // a record takes four seconds
		all := k.topics.All()
		if all[0].Name() != "a" {
			all[0], all[1] = all[1], all[0]
		}
		_, err := k.cleaner.compact(context.Background(), all, true)
		k.must(err)
		k.want(last, 1, 2)
		k.slow(0)
		_, err = k.cleaner.CompactTopic(context.Background(), last)
		k.must(err)
		k.want(last, 1, 2)
		pass(61 * time.Second)
		_, err = k.cleaner.CompactTopic(context.Background(), last)
		k.must(err)
		k.want(last, 2)
	})
}

// ST-50: a stop ends a sweep, and whoever waits for a compaction.
func TestAStopEndsTheSweepsAndThoseWhoWait(t *testing.T) {
	inBubble(t, func(k *kit) {
		made := k.create("a", 1, "cleanup.policy", "compact")
		k.slow(1)
		k.put(made, "x", "x", "x", "end")
		pass(3 * time.Second) // the sweep is in it for minutes
		ctx, cancel := context.WithCancel(context.Background())
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if _, err := k.cleaner.CompactTopic(ctx, made); err == nil {
				t.Error("compacted")
			}
		})
		pass(time.Second)
		began := time.Now()
		cancel()
		waiting.Wait()
		k.stop()
		if took := time.Since(began); took > 0 { // in a bubble time passes for those alone who wait for it
			t.Error("the stop took", took)
		}
		k.start()
	})
}
