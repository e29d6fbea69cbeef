package commitlog

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// PF-12: a log of distinct keys, each of them there some times, in segments of 128 MiB. COMPACT_MB (default 64) is its size,
// COMPACT_KEYS (default 100,000) how many keys; the map takes one million. append-p99-ms and
// append-max-ms are of small appends to the same log meanwhile, which wait for no fsync of their own.
func BenchmarkCompact(b *testing.B) {
	size, keys := envInt(b, "COMPACT_MB", 64), envInt(b, "COMPACT_KEYS", 100_000)
	for b.Loop() {
		b.StopTimer()
		o := osDisk(b, testOptions(nil, 1))
		cfg := *o.Config
		cfg.SegmentBytes = 128 << 20
		o.Config, o.AcksAllSync = &cfg, false
		l := mustOpen(b, o)
		fillKeys(b, l, int64(size)<<20, keys)
		if err := l.Roll(); err != nil {
			b.Fatal(err)
		}
		before, idle := l.Size(), heap()
		beside := watchCompaction(b, l)
		passes := 0
		b.StartTimer()
		begin, keyMap := time.Now(), NewKeyMap(1_000_000)
		for c := (Compacted{More: true}); c.More; passes++ {
			var err error
			if c, err = l.Compact(b.Context(), Compaction{From: c.Next, Keys: keyMap, NowMs: begin.UnixMilli()}); err != nil {
				b.Fatal(err)
			}
		}
		took := time.Since(begin)
		b.StopTimer()
		peak, appends := beside()
		b.ReportMetric(appends[len(appends)*99/100].Seconds()*1e3, "append-p99-ms")
		b.ReportMetric(appends[len(appends)-1].Seconds()*1e3, "append-max-ms")
		b.ReportMetric(float64(before)/1e6/took.Seconds(), "MB/s")
		b.ReportMetric(float64(passes), "passes")
		b.ReportMetric(float64(peak-min(peak, idle))/1e6, "MB-heap")
		b.ReportMetric(float64(l.Size())/1e6, "MB-left")
		mustClose(b, l)
		b.StartTimer()
	}
}

// watchCompaction appends to a log and looks at the heap until the function that it returns is called, which
// returns the most bytes of heap that were in use and how long the appends took, in order.
func watchCompaction(b *testing.B, l *Log) func() (peak uint64, appends []time.Duration) {
	var peak uint64
	var appends []time.Duration
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for tick := time.Tick(2 * time.Millisecond); ; {
			select {
			case <-tick:
			case <-stop:
				return
			}
			sent := batch(b, spec{})
			begin := time.Now()
			if _, err := l.Append(sent); err != nil {
				b.Error(err)
			}
			appends = append(appends, time.Since(begin))
			if len(appends)%10 == 0 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				peak = max(peak, m.HeapInuse)
			}
		}
	})
	return func() (uint64, []time.Duration) {
		close(stop)
		running.Wait()
		slices.Sort(appends)
		return peak, appends
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func envInt(b *testing.B, name string, otherwise int) int {
	b.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// fillKeys appends records of 200 bytes in batches of 64.
func fillKeys(b *testing.B, l *Log, size int64, keys int) {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 12))
	key, value := make([]byte, 16), make([]byte, 180)
	for l.Size() < size {
		builder := record.NewBuilder(record.Options{})
		for range 64 {
			binary.BigEndian.PutUint64(key, uint64(rng.IntN(keys)))
			if err := builder.Append(1000, key, value); err != nil {
				b.Fatal(err)
			}
		}
		batch, err := builder.Batch()
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.Append(batch); err != nil {
			b.Fatal(err)
		}
	}
}
