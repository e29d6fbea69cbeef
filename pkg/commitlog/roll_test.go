package commitlog

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

func bases(l *Log) (all []int64) {
	for _, p := range *l.parts.Load() {
		all = append(all, p.base)
	}
	return all
}

// ST-6: by size.
func TestRollsOnceABatchWouldGoPastSegmentBytes(t *testing.T) {
	o := testOptions(crashfs.New(), 1)
	size := int64(len(batch(t, spec{size: 1000, timestamp: 1})))
	o.Config.SegmentBytes = 3 * size
	l := openNew(t, o)
	for range 7 {
		mustAppend(t, l, spec{size: 1000, timestamp: 1})
	}
	if got := bases(l); !slices.Equal(got, []int64{0, 3, 6}) {
		t.Error(got)
	}
	if l.Size() != 7*size || len(contents(t, l)) != 7 {
		t.Error(l.Size(), len(contents(t, l)))
	}
}

// ST-6: by record time, judged at append; without timestamps by the age of the segment.
func TestRollsByRecordTime(t *testing.T) {
	o := testOptions(crashfs.New(), 1)
	o.Config.SegmentMs = 1000
	l := openNew(t, o)
	for _, ts := range []int64{50_000, 51_000, 10, 51_001, 51_002, 99_000} {
		mustAppend(t, l, spec{timestamp: ts})
	}
	if got := bases(l); !slices.Equal(got, []int64{0, 3, 5}) {
		t.Error(got)
	}
	synctest.Test(t, func(t *testing.T) {
		o := testOptions(crashfs.New(), 1)
		o.Config.SegmentMs = 1000
		l := mustOpen(t, o)
		mustAppend(t, l, spec{timestamp: -1})
		<-time.After(time.Second)
		mustAppend(t, l, spec{timestamp: -1})
		<-time.After(2 * time.Millisecond)
		mustAppend(t, l, spec{timestamp: -1})
		if got := bases(l); !slices.Equal(got, []int64{0, 2}) {
			t.Error(got)
		}
		mustClose(t, l)
	})
}

// ST-6: when an offset would not fit the index's 32 bits.
func TestRollsBeforeARelativeOffsetOverflows(t *testing.T) {
	for end, want := range map[int64][]int64{1<<31 - 1: {0}, 1 << 31: {0, 1 << 31}} {
		l := openNew(t, testOptions(crashfs.New(), 1))
		mustAppend(t, l, spec{})
		l.mu.Lock() // as if so many records had come in between
		at := l.marks.load()
		at.End, at.LastStable = end, end
		l.marks.store(at)
		l.mu.Unlock()
		mustAppend(t, l, spec{})
		if got := bases(l); !slices.Equal(got, want) {
			t.Errorf("after a batch at offset %d the segments begin at %d, want %d", end, got, want)
		}
	}
}

// segment.jitter.ms makes a segment roll early, by less than the jitter.
func TestRollJitter(t *testing.T) {
	o := testOptions(crashfs.New(), 1)
	o.Config.SegmentMs, o.Config.SegmentJitterMs = 1000, 100
	l := openNew(t, o)
	for ts := int64(10_000); ts < 20_000; ts += 10 {
		mustAppend(t, l, spec{timestamp: ts})
	}
	if n := len(bases(l)); n < 9 || n > 12 {
		t.Error(n)
	}
}

// ST-54: the sealed segment is durable before its successor exists, and ST-9:
// so is everything a recovery wants of it.
func TestSealedSegmentIsSyncedBeforeItsSuccessorExists(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	o := testOptions(disk, 1)
	o.Config.SegmentBytes = 3000
	l := openNew(t, o)
	mustAppend(t, l, spec{size: 1000}) // less than half, so that nothing is flushed ahead
	var ops []string
	var mu sync.Mutex
	disk.OnOp(func(op vfs.Op) {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind&(syncs|vfs.OpCreate) != 0 && !strings.Contains(op.Name, "index") {
			ops = append(ops, op.String())
		}
	})
	mustAppend(t, l, spec{size: 2500})
	disk.OnOp(nil)
	mu.Lock()
	got := slices.Clone(ops)
	mu.Unlock()
	want := []string{
		"sync demo-0/00000000000000000000.log",
		"sync demo-0/partition.metadata",
		"syncdir demo-0",
		"syncdir .",
		"create demo-0/00000000000000000001.snapshot",
		"create demo-0/00000000000000000001.log",
	}
	got = got[:slices.Index(got, want[len(want)-1])+1] // what follows is a flush of the new segment
	if !slices.Equal(got, want) {
		t.Errorf("operations of the roll:\n%s", strings.Join(got, "\n"))
	}
	if l.Offsets().Flushed < 1 {
		t.Error("a rolled segment is flushed:", l.Offsets())
	}
}

// Rolling must not stall: the first half of a segment is synced ahead.
func TestHalfFullSegmentIsSyncedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := testOptions(crashfs.New(), 1)
		o.Config.SegmentBytes = 10_000
		l := mustOpen(t, o)
		mustAppend(t, l, spec{size: 4000})
		synctest.Wait()
		if f := l.Offsets().Flushed; f != 0 {
			t.Error(f)
		}
		mustAppend(t, l, spec{size: 1000})
		synctest.Wait()
		if f := l.Offsets().Flushed; f != 2 {
			t.Error(f)
		}
		mustAppend(t, l, spec{size: 1000})
		synctest.Wait()
		if f := l.Offsets().Flushed; f != 2 {
			t.Error("once is enough:", f)
		}
		mustClose(t, l)
	})
}

// An append that rolls waits for a running flush and does not mind what
// happened meanwhile, even that its own batch came in by another connection.
func TestRollDuringAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(crashfs.New())
		slowSync(disk, 1, time.Second)
		o := testOptions(disk, 1)
		o.Config.SegmentBytes = 3000
		l := mustOpen(t, o)
		a := mustAppend(t, l, spec{size: 2000})
		l.StartFlush(a.End)
		synctest.Wait() // the flusher is at the disk
		var wg sync.WaitGroup
		var fresh, repeats int
		var mu sync.Mutex
		for range 4 {
			wg.Go(func() {
				a := mustAppend(t, l, spec{size: 2000, id: 7})
				mu.Lock()
				defer mu.Unlock()
				if a.Duplicate {
					repeats++
				} else {
					fresh++
				}
			})
		}
		wg.Wait()
		if fresh != 1 || repeats != 3 || l.Offsets().End != 2 {
			t.Error(fresh, repeats, l.Offsets())
		}
		mustClose(t, l)
	})
}

// ST-60: a roll that finds no space is tried again by the next append.
func TestRollOnAFullDisk(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	o := testOptions(disk, 1)
	o.Config.SegmentBytes = 3000
	l := openNew(t, o)
	mustAppend(t, l, spec{size: 2000, id: 7})
	disk.SetFull(true)
	for range 3 {
		if _, err := l.Append(batch(t, spec{size: 2000, id: 7, sequence: 1})); !errors.Is(err, kerr.KafkaStorageError) {
			t.Fatal(err)
		}
	}
	mustFlush(t, l)
	disk.SetFull(false)
	mustAppend(t, l, spec{size: 10, id: 7, sequence: 1}) // it would have fitted the sealed one
	if got := contents(t, l); len(got) != 2 || l.Offsets().End != 2 {
		t.Error(len(got), l.Offsets())
	}
	mustFlush(t, l)
}

// ST-61: a failing fsync at a roll is a failed fsync.
func TestFailedSyncAtARoll(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	o := testOptions(disk, 1)
	o.Config.SegmentBytes = 10_000
	l := openNew(t, o)
	mustAppend(t, l, spec{size: 4000})
	disk.Fail(faultfs.Rule{Kinds: vfs.OpSync, Name: "*.log"})
	for range 2 {
		if _, err := l.Append(batch(t, spec{size: 8000})); !errors.Is(err, kerr.KafkaStorageError) {
			t.Fatal(err)
		}
	}
	if s, err := l.Read(0, 1<<20, true, kafka.ReadUncommitted); err != nil || s.End != 1 || s.Region.Length == 0 {
		t.Error(s, err)
	} else {
		s.Region.Release()
	}
	if err := l.AwaitFlushed(t.Context(), 1); !errors.Is(err, kerr.KafkaStorageError) {
		t.Error(err)
	}
}

// ST-54: names that a running flush has not synced yet do not pass for
// durable because the segment rolls meanwhile.
func TestRollWaitsForTheNamesOfARunningFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(crashfs.New())
		o := testOptions(disk, 1)
		o.Config.SegmentBytes = 5000
		l := mustOpen(t, o)
		a := mustAppend(t, l, spec{size: 2000})
		var once sync.Once
		disk.OnOp(func(op vfs.Op) {
			if op.Kind == vfs.OpSyncDir {
				once.Do(func() { <-time.After(time.Second) })
			}
		})
		l.StartFlush(a.End)
		synctest.Wait() // the flusher is at the directory
		var wg sync.WaitGroup
		wg.Go(func() { mustAppend(t, l, spec{size: 4000}) })
		synctest.Wait()
		if at := l.Offsets(); at.End != 1 || at.Flushed != 0 {
			t.Error(at)
		}
		wg.Wait()
		mustClose(t, l)
	})
}

// A segment that was sealed and whose successor could not be made takes no
// more, however small the batch is: the next append makes the successor.
func TestSuccessorIsMadeByALaterAppend(t *testing.T) {
	for _, name := range []string{"*.log", "*.snapshot"} {
		disk := faultfs.New(crashfs.New())
		o := testOptions(disk, 1)
		o.Config.SegmentBytes = 3000
		l := openNew(t, o)
		mustAppend(t, l, spec{size: 2000, id: 7})
		disk.Fail(faultfs.Rule{Kinds: vfs.OpCreate, Name: name, Happens: true})
		if _, err := l.Append(batch(t, spec{size: 2000, id: 7, sequence: 1})); !errors.Is(err, kerr.KafkaStorageError) {
			t.Fatal(err)
		}
		mustAppend(t, l, spec{size: 10, id: 7, sequence: 1})
		if got := bases(l); !slices.Equal(got, []int64{0, 1}) || len(contents(t, l)) != 2 {
			t.Error(got)
		}
		mustFlush(t, l)
	}
}
