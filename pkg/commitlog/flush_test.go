package commitlog

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

const syncs = vfs.OpSync | vfs.OpSyncDir

// PF-1: the first acks=all produce of a partition costs the syncs that it
// needs (partition.metadata, the log, the directory, its parent), and the next ones one each.
func TestSyncsOfTheFirstProduces(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	l := openNew(t, testOptions(disk, 1))
	mustAppend(t, l, spec{})
	if n := disk.Count(syncs); n != 0 {
		t.Error("syncs before anybody asked:", n)
	}
	mustFlush(t, l)
	if n := disk.Count(syncs); n != 4 || l.o.Stats.Syncs.Load() != 4 {
		t.Error("syncs of the first produce:", n, l.o.Stats.Syncs.Load())
	}
	mustAppend(t, l, spec{})
	mustFlush(t, l)
	if n := disk.Count(syncs); n != 5 {
		t.Error("syncs after the second:", n)
	}
	if !l.Flushed(2) {
		t.Error("all is flushed")
	}
}

// slowSync makes the first syncs of a log file take a while, in a bubble: only
// those of the flusher, since a bubble's time stands still while somebody waits for a mutex.
func slowSync(disk *faultfs.FS, first int64, d time.Duration) *atomic.Int64 {
	n := new(atomic.Int64)
	disk.OnOp(func(op vfs.Op) {
		if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".log") {
			if n.Add(1) <= first {
				<-time.After(d)
			}
		}
	})
	return n
}

// ST-51: one fsync serves all that wait; who comes while it runs is served by the next.
func TestConcurrentAcksAllShareSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(crashfs.New())
		count := slowSync(disk, math.MaxInt64, 10*time.Millisecond)
		l := mustOpen(t, testOptions(disk, 1))
		const clients, each = 16, 20
		var wg sync.WaitGroup
		for range clients {
			wg.Go(func() {
				for range each {
					a := mustAppend(t, l, spec{})
					if err := l.AwaitFlushed(t.Context(), a.End); err != nil {
						t.Error(err)
					}
					if f := l.Offsets().Flushed; f < a.End {
						t.Error("acknowledged", a.End, "flushed", f)
					}
				}
			})
		}
		wg.Wait()
		n := count.Load()
		t.Logf("%d acks=all produces of %d clients: %d fsyncs of the log", clients*each, clients, n)
		// Two groups of clients take turns: one waits for the sync that runs, one for the next.
		if n > 2*each+2 {
			t.Error("they do not share")
		}
		mustClose(t, l)
	})
}

// A log that nobody waits for has no goroutine: the bubble would not end.
func TestIdleLogHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(crashfs.New())
		count := slowSync(disk, 1, time.Millisecond)
		l := mustOpen(t, testOptions(disk, 1))
		a := mustAppend(t, l, spec{})
		if l.Flushed(a.End) {
			t.Error("nothing to flush")
		}
		l.StartFlush(a.End)
		synctest.Wait()
		<-time.After(time.Second)
		if f := l.Offsets().Flushed; f != a.End || count.Load() != 1 {
			t.Error("flushed", f, "by", count.Load())
		}
	})
}

// ST-52: acks=1 data reaches the disk by the timer, once for all of an interval.
func TestTimerFlushes(t *testing.T) {
	for name, c := range map[string]struct {
		interval time.Duration
		flushMs  int64
		want     time.Duration // 0: never
	}{
		"fsync-interval":          {500 * time.Millisecond, math.MaxInt64, 500 * time.Millisecond},
		"flush.ms is shorter":     {500 * time.Millisecond, 100, 100 * time.Millisecond},
		"flush.ms without timer":  {0, 200, 200 * time.Millisecond},
		"none":                    {0, math.MaxInt64, 0},
		"fsync-interval, shorter": {50 * time.Millisecond, 1000, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := faultfs.New(crashfs.New())
				o := testOptions(disk, 1)
				o.FsyncInterval, o.Config.FlushMs = c.interval, c.flushMs
				l := mustOpen(t, o)
				for range 3 {
					mustAppend(t, l, spec{})
				}
				want := int64(3)
				if c.want > 0 {
					<-time.After(c.want - time.Millisecond)
				} else {
					<-time.After(time.Hour)
					want = 0
				}
				synctest.Wait()
				if f := l.Offsets().Flushed; f != 0 {
					t.Error("early:", f)
				}
				<-time.After(2 * time.Millisecond)
				synctest.Wait()
				if f := l.Offsets().Flushed; f != want {
					t.Error("flushed:", f)
				}
				if n := disk.Count(vfs.OpSync); want > 0 && n != 2 {
					t.Error("syncs of files:", n)
				}
				mustAppend(t, l, spec{}) // the timer starts again
				<-time.After(c.want + time.Millisecond)
				synctest.Wait()
				if f := l.Offsets().Flushed; want > 0 && f != 4 {
					t.Error("flushed:", f)
				}
				mustClose(t, l)
			})
		})
	}
}

// flush.messages: the append itself waits, as in Kafka.
func TestFlushMessages(t *testing.T) {
	o := testOptions(crashfs.New(), 1)
	o.Config.FlushMessages = 3
	o.AcksAllSync = false
	l := openNew(t, o)
	for i, want := range []int64{0, 0, 3, 3, 3, 6} {
		mustAppend(t, l, spec{})
		if f := l.Offsets().Flushed; f != want {
			t.Error(i, f)
		}
	}
}

// ST-56: without acks.all.sync nothing is waited for, and nothing synced.
func TestAcksAllSyncOff(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	o := testOptions(disk, 1)
	o.AcksAllSync = false
	l := openNew(t, o)
	a := mustAppend(t, l, spec{})
	if !l.Flushed(a.End) || l.AwaitFlushed(t.Context(), a.End) != nil || disk.Count(syncs) != 0 {
		t.Error("it syncs:", disk.Count(syncs))
	}
}

// ST-61: a failed fsync is final. Every waiter hears of it, appends are
// refused, reads go on, and nobody syncs again.
func TestFailedSyncIsFinal(t *testing.T) {
	for _, name := range []string{"*.log", metadataName, testDir, "."} {
		synctest.Test(t, func(t *testing.T) {
			disk := faultfs.New(crashfs.New())
			l := mustOpen(t, testOptions(disk, 1))
			a := mustAppend(t, l, spec{n: 2, id: 4})
			disk.Fail(faultfs.Rule{Kinds: syncs, Name: name})
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() {
					if err := l.AwaitFlushed(t.Context(), a.End); !errors.Is(err, kerr.KafkaStorageError) {
						t.Error(name, err)
					}
				})
			}
			wg.Wait()
			n := disk.Count(syncs)
			if l.Flushed(a.End) {
				t.Error("AwaitFlushed has something to say")
			}
			if err := l.AwaitFlushed(t.Context(), a.End); !errors.Is(err, kerr.KafkaStorageError) {
				t.Error(name, err)
			}
			// A duplicate, too: it would be acknowledged.
			for _, s := range []spec{{}, {n: 2, id: 4}} {
				if _, err := l.Append(batch(t, s)); !errors.Is(err, kerr.KafkaStorageError) {
					t.Error(name, err)
				}
			}
			if got := contents(t, l); len(got) != 1 {
				t.Error(name, "reads:", len(got))
			}
			if err := l.Close(); !errors.Is(err, kerr.KafkaStorageError) {
				t.Error(name, "closes clean:", err)
			}
			if m := disk.Count(syncs); m != n || l.o.Stats.Offline.Load() != 1 {
				t.Error(name, "syncs after the failed one:", m-n)
			}
		})
	}
}

func TestAwaitFlushedEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(crashfs.New())
		slowSync(disk, 1, time.Second)
		l := mustOpen(t, testOptions(disk, 1))
		a := mustAppend(t, l, spec{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		l.StartFlush(a.End)
		if err := l.AwaitFlushed(ctx, a.End); !errors.Is(err, context.DeadlineExceeded) {
			t.Error("while another flushes:", err)
		}
		<-time.After(2 * time.Second)
		a = mustAppend(t, l, spec{})
		if err := l.AwaitFlushed(ctx, a.End); !errors.Is(err, context.DeadlineExceeded) {
			t.Error("it began a flush that nobody waits for:", err)
		}
		mustFlush(t, l)
		mustClose(t, l)
	})
}

// Many dirty logs share the work of syncing: a round holds a thread.
func TestSyncsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound, logs = 3, 20
		o := testOptions(nil, 1)
		dir := o.Dir[:len(o.Dir)-1]
		shared := *o.Shared
		shared.Syncs = NewSyncs(bound)
		disk := faultfs.New(crashfs.New())
		shared.FS = disk
		var now, most atomic.Int64
		disk.OnOp(func(op vfs.Op) {
			if op.Kind == vfs.OpSync && strings.HasSuffix(op.Name, ".log") {
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				<-time.After(time.Millisecond)
				now.Add(-1)
			}
		})
		for i := range logs {
			o.Shared, o.Dir = &shared, dir+strconv.Itoa(i)
			l := mustOpen(t, o)
			l.StartFlush(mustAppend(t, l, spec{}).End)
		}
		<-time.After(time.Second)
		if most.Load() != bound {
			t.Errorf("%d rounds at a time, the bound is %d", most.Load(), bound)
		}
	})
}

func BenchmarkAwaitFlushed(b *testing.B) {
	l := openNew(b, osDisk(b, testOptions(nil, 1)))
	in := batch(b, spec{size: 1000})
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		scratch := make(record.Batch, len(in))
		for pb.Next() {
			copy(scratch, in)
			a, err := l.Append(scratch)
			if err == nil {
				err = l.AwaitFlushed(b.Context(), a.End)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(l.o.Stats.Syncs.Load())/float64(b.N), "syncs/op")
}

// ST-51: what is appended while a sync runs is not acknowledged by it.
func TestAppendDuringASyncWaitsForTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(crashfs.New())
		slowSync(disk, 2, time.Second)
		l := mustOpen(t, testOptions(disk, 1))
		first := mustAppend(t, l, spec{})
		l.StartFlush(first.End)
		synctest.Wait() // the flusher is at the disk
		second := mustAppend(t, l, spec{})
		mustWait := func(end int64) {
			if err := l.AwaitFlushed(t.Context(), end); err != nil {
				t.Error(err)
			}
		}
		mustWait(first.End)
		if f := l.Offsets().Flushed; f != first.End {
			t.Error("flushed", f)
		}
		mustWait(second.End)
		mustClose(t, l)
	})
}
