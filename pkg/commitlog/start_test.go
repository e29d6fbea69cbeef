package commitlog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// deleteTo is DeleteRecords without a meta.db.
func deleteTo(t testing.TB, l *Log, offset int64) int64 {
	t.Helper()
	start, err := l.CheckStart(t.Context(), offset)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.MoveStart(start); err != nil {
		t.Fatal(err)
	}
	return start
}

// logFiles are the segments that a disk has, by base.
func logFiles(t testing.TB, disk vfs.FS) (bases []int64) {
	t.Helper()
	entries, err := disk.ReadDir(testDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if base, suffix, ok := parseName(e.Name()); ok && suffix == ".log" {
			bases = append(bases, base)
		}
	}
	return bases
}

// ST-34, ST-35: what is below the start is unreadable at once, and segments wholly below it are gone, but never the active one.
func TestMoveStart(t *testing.T) {
	l := smallSegments(t, 10) // offsets 0 to 19, segments at 0, 8, 16
	for _, c := range []struct {
		to, start int64
		files     []int64
	}{{0, 0, []int64{0, 8, 16}}, {7, 7, []int64{0, 8, 16}}, {8, 8, []int64{8, 16}}, {3, 8, []int64{8, 16}}, {17, 17, []int64{16}}, {-1, 20, []int64{16}}} {
		if got := deleteTo(t, l, c.to); got != c.start || l.Offsets().LogStart != c.start {
			t.Fatalf("to %d: the log starts at %d", c.to, got)
		}
		if got := logFiles(t, l.o.FS); !slices.Equal(got, c.files) {
			t.Errorf("to %d: segments %d", c.to, got)
		}
		if _, err := l.Read(c.start-1, 1000, true, kafka.ReadUncommitted); !errors.Is(err, kerr.OffsetOutOfRange) {
			t.Errorf("to %d: below the start: %v", c.to, err)
		}
		contents(t, l)
	}
	for _, offset := range []int64{-2, 21} {
		if _, err := l.CheckStart(t.Context(), offset); !errors.Is(err, kerr.OffsetOutOfRange) {
			t.Error(offset, err)
		}
	}
	if a := mustAppend(t, l, spec{id: 1, sequence: 20}); a.BaseOffset != 20 || a.LogStart != 20 {
		t.Error(a)
	}
}

// A compacted topic's records are deleted by tombstones, unless the topic is deleted from as well.
func TestCheckStartGoesByThePolicy(t *testing.T) {
	l := smallSegments(t, 1)
	for _, c := range []struct{ compact, delete, ok bool }{{true, false, false}, {true, true, true}, {false, true, true}, {false, false, true}} {
		cfg := *l.config.Load()
		cfg.Compact, cfg.Delete = c.compact, c.delete
		l.SetConfig(&cfg)
		if _, err := l.CheckStart(t.Context(), 1); (err == nil) != c.ok || err != nil && !errors.Is(err, kerr.PolicyViolation) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// ST-34: the removal is durable when MoveStart has returned, so that a power cut brings nothing back.
func TestRemovedSegmentsDoNotComeBack(t *testing.T) {
	l := smallSegments(t, 10)
	deleteTo(t, l, 17)
	for _, s := range crashfs.Survivals(3, 10) {
		if got := logFiles(t, l.o.FS.(*crashfs.FS).CrashClone(s)); !slices.Equal(got, []int64{16}) {
			t.Errorf("%v: segments %d", s, got)
		}
	}
}

// Files go oldest first, and the log of a segment after its indexes, whether the segment was opened or not.
func TestFilesGoOldestFirst(t *testing.T) {
	for _, opened := range []bool{true, false} {
		l := smallSegments(t, 14) // segments at 0, 8, 16, 24
		disk := l.o.FS.(*crashfs.FS)
		if !opened {
			mustClose(t, l)
			o := l.o
			o.Clean = true
			l = openNew(t, o)
		}
		var removed []string
		disk.OnOp(func(op vfs.Op) {
			if op.Kind == vfs.OpRemove && !strings.HasSuffix(op.Name, snapshotSuffix) {
				removed = append(removed, strings.TrimPrefix(op.Name, testDir+"/"))
			}
		})
		deleteTo(t, l, 24)
		disk.OnOp(nil)
		if want := slices.Concat(segmentFiles(0), segmentFiles(8), segmentFiles(16)); !slices.Equal(removed, want) {
			t.Errorf("opened %v: %q", opened, removed)
		}
		if got := names(t, disk); strings.Contains(got, "00000000000000000008") {
			t.Errorf("opened %v: left are %s", opened, got)
		}
	}
}

// ST-34: a region that was handed out before stays readable.
func TestReadersInFlightKeepTheirFiles(t *testing.T) {
	l := smallSegments(t, 10)
	s, err := l.Read(2, 1<<20, true, kafka.ReadUncommitted)
	if err != nil {
		t.Fatal(err)
	}
	deleteTo(t, l, -1)
	if got := batches(t, s.Region); len(got) != 3 || got[0].BaseOffset() != 2 || got[0].CheckCRC() != nil {
		t.Errorf("%d batches", len(got))
	}
}

// A long poll is woken when the start moves: what it waits for may be gone.
func TestMoveStartWakesWatchers(t *testing.T) {
	l := smallSegments(t, 1)
	wake := make(chan struct{}, 1)
	defer l.Watch(wake)()
	deleteTo(t, l, 1)
	select {
	case <-wake:
	default:
		t.Error("nobody was woken")
	}
}

// ST-60: a file that can't be removed costs an answer, not the log; the next move removes it.
func TestAFileThatStaysIsRemovedLater(t *testing.T) {
	o := testOptions(crashfs.New(), 1)
	disk := faultfs.New(o.FS)
	o.FS, o.Config.SegmentBytes = disk, 1000
	l := openNew(t, o)
	for i := range int64(20) {
		mustAppend(t, l, spec{size: 100, timestamp: 1000 + i})
	}
	disk.Fail(faultfs.Rule{Kinds: vfs.OpRemove, Nth: 6, Name: "*"})
	start, err := l.CheckStart(t.Context(), HighWatermark)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.MoveStart(start); !errors.Is(err, kerr.KafkaStorageError) || len(logFiles(t, disk)) < 2 {
		t.Fatal(err)
	}
	if at := l.Offsets(); at.LogStart != 20 {
		t.Error(at)
	}
	deleteTo(t, l, 0)
	if got := logFiles(t, disk); len(got) != 1 {
		t.Error(got)
	}
}

// ST-61: after a failed sync of the directory the names of other files are not known either.
func TestAFailedSyncOfARemovalTakesThePartitionOffline(t *testing.T) {
	o := testOptions(crashfs.New(), 1)
	disk := faultfs.New(o.FS)
	o.FS, o.Config.SegmentBytes = disk, 1000
	l := openNew(t, o)
	for range 20 {
		mustAppend(t, l, spec{size: 100})
	}
	start, err := l.CheckStart(t.Context(), HighWatermark)
	if err != nil {
		t.Fatal(err)
	}
	disk.Fail(faultfs.Rule{Kinds: vfs.OpSyncDir})
	if err := l.MoveStart(start); !errors.Is(err, kerr.KafkaStorageError) {
		t.Error(err)
	}
	if _, err := l.Append(batch(t, spec{})); !errors.Is(err, kerr.KafkaStorageError) {
		t.Error("an append after it:", err)
	}
}

// A segment that is deleted entirely while it is the active one goes when it has a successor.
func TestARollRemovesWhatWasDeletedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := smallSegments(t, 4) // the next batch rolls
		deleteTo(t, l, -1)
		disk := l.o.FS.(*crashfs.FS)
		disk.OnOp(func(op vfs.Op) {
			if op.Kind == vfs.OpRemove {
				if got := logFiles(t, disk.CrashClone(crashfs.LoseUnsynced)); !slices.Equal(got, []int64{0, 8}) {
					t.Errorf("a segment goes while of its successor not even the name is durable: %d", got)
				}
				disk.OnOp(nil)
			}
		})
		mustAppend(t, l, spec{id: 1, sequence: 8})
		synctest.Wait()
		if got := logFiles(t, l.o.FS); !slices.Equal(got, []int64{8}) {
			t.Errorf("segments %d", got)
		}
		mustClose(t, l)
	})
}

// A log that is being deleted or closed is waited for, so that no file of its successor is removed.
func TestCloseWaitsForARemoval(t *testing.T) {
	l := smallSegments(t, 10)
	disk := l.o.FS.(*crashfs.FS)
	start, err := l.CheckStart(t.Context(), HighWatermark)
	if err != nil {
		t.Fatal(err)
	}
	under, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk.OnOp(func(op vfs.Op) {
		if op.Kind == vfs.OpRemove {
			once.Do(func() { close(under); <-goOn })
		}
	})
	var moved, ended sync.WaitGroup
	moved.Go(func() {
		if err := l.MoveStart(start); err != nil {
			t.Error(err)
		}
	})
	<-under
	var gone atomic.Bool
	ended.Go(func() { l.Abandon(); gone.Store(true) })
	for l.endedErr() == nil { // Abandon has begun
	}
	if gone.Load() {
		t.Error("the log ended while files were removed")
	}
	close(goOn)
	moved.Wait()
	ended.Wait()
	if err := l.MoveStart(20); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Error(err)
	}
}

// ST-34: a reader that scans without pause while segments are removed sees either data or
// OFFSET_OUT_OF_RANGE, and lookups go on with what is left (run with -race).
func TestScanWhileSegmentsAreRemoved(t *testing.T) {
	o := testOptions(crashfs.New(), 1)
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 2000, 300
	l := openNew(t, o)
	const total = 3000
	done, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	var outOfRange atomic.Int64
	for r := range 3 {
		readers.Go(func() {
			for offset := int64(0); done.Err() == nil; {
				s, err := l.Read(offset, 4000, true, kafka.ReadUncommitted)
				switch {
				case errors.Is(err, kerr.OffsetOutOfRange):
					if start := l.Offsets().LogStart; start <= offset {
						t.Errorf("offset %d is out of range of a log that starts at %d", offset, start)
						return
					}
					outOfRange.Add(1)
					offset = l.Offsets().LogStart
					continue
				case err != nil:
					t.Error("read", err)
					return
				}
				for _, b := range batches(t, s.Region) {
					if b.BaseOffset() != offset || b.CheckCRC() != nil {
						t.Errorf("offset %d: a batch at %d", offset, b.BaseOffset())
						return
					}
					offset++
				}
				if r == 0 {
					offset = l.Offsets().LogStart
				}
				if _, err := l.OffsetForTimestamp(1000+offset, kafka.ReadUncommitted); err != nil {
					t.Error("by time", err)
				}
				if _, err := l.OffsetForMaxTimestamp(kafka.ReadUncommitted); err != nil {
					t.Error("greatest", err)
				}
				if _, err := l.EarliestEpoch(); err != nil {
					t.Error("earliest epoch", err)
				}
				if _, _, err := l.EndOffsetForEpoch(0); err != nil {
					t.Error("end of an epoch", err)
				}
				l.Available(offset, kafka.ReadUncommitted)
			}
		})
	}
	for i := range int64(total) {
		mustAppend(t, l, spec{size: 150, timestamp: 1000 + i})
		if i%40 == 39 {
			deleteTo(t, l, i-60*(i%3)/2-1)
		}
	}
	stop()
	readers.Wait()
	t.Logf("out of range %d times, %d segments removed", outOfRange.Load(), l.o.Stats.Removed.Load())
	if l.o.Stats.Removed.Load() < 50 {
		t.Error("too few for the test to mean anything")
	}
}
