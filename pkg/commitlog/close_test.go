package commitlog

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// A deleted topic's log wakes who waits, and every later call says that it is gone.
func TestAbandonWakesAndRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New(crashfs.New())
		slowSync(disk, 1, time.Second)
		l := mustOpen(t, testOptions(disk, 1))
		a := mustAppend(t, l, spec{})
		l.StartFlush(a.End)
		synctest.Wait()
		var wg sync.WaitGroup
		b := mustAppend(t, l, spec{}) // waits for the round after the one that runs
		wg.Go(func() {
			if err := l.AwaitFlushed(t.Context(), b.End); !errors.Is(err, kerr.UnknownTopicOrPartition) {
				t.Error(err)
			}
		})
		s, err := l.Read(0, 100, true, kafka.ReadUncommitted)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		l.Abandon()
		wg.Wait()
		for name, err := range map[string]error{
			"append": second(l.Append(batch(t, spec{}))),
			"read":   second(l.Read(0, 100, true, kafka.ReadUncommitted)),
			"time":   second(l.OffsetForTimestamp(0, kafka.ReadUncommitted)),
			"max":    second(l.OffsetForMaxTimestamp(kafka.ReadUncommitted)),
			"flush":  l.AwaitFlushed(t.Context(), b.End),
		} {
			if !errors.Is(err, kerr.UnknownTopicOrPartition) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := batches(t, s.Region); len(got) != 1 {
			t.Error("a region that is being sent stays readable:", got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

// ST-50: a stop that could not flush is not clean.
func TestCloseTellsOfAFailure(t *testing.T) {
	for _, rule := range []faultfs.Rule{
		{Kinds: vfs.OpSync, Name: "*.log"}, {Kinds: vfs.OpSync, Name: "*.index"}, {Kinds: vfs.OpCreate, Name: "*.snapshot"}, {Kinds: vfs.OpSyncDir},
	} {
		disk := faultfs.New(crashfs.New())
		l := mustOpen(t, testOptions(disk, 1))
		mustAppend(t, l, spec{})
		disk.Fail(rule)
		if err := l.Close(); err == nil {
			t.Errorf("%+v: clean", rule)
		}
	}
}

// ST-50: what a clean stop has closed survives a power cut, acknowledged or not.
func TestCloseMakesEverythingDurable(t *testing.T) {
	disk := crashfs.New()
	l := mustOpen(t, testOptions(disk, 1))
	for i := range int32(5) {
		mustAppend(t, l, spec{id: 3, sequence: i})
		if i == 2 {
			mustFlush(t, l)
		}
	}
	mustClose(t, l)
	o := testOptions(disk.CrashClone(crashfs.LoseUnsynced), 2)
	o.Clean = true
	l = openNew(t, o)
	if at := l.Offsets(); at.End != 5 || at.Flushed != 5 || l.saved != 5 {
		t.Error(at, l.saved)
	}
	if n := l.o.Stats.Recovered.Load(); n != 0 {
		t.Error("the indexes were not durable: bytes checked", n)
	}
}

// ST-50: the indexes that a stop makes are there after a power cut, also those of a segment without a record, for which
// there is no snapshot to write.
func TestCloseMakesTheNamesOfIndexesDurable(t *testing.T) {
	disk := crashfs.New()
	l := mustOpen(t, testOptions(disk, 1))
	mustAppend(t, l, spec{n: 3})
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	start, err := l.CheckStart(t.Context(), 3) // syncs the directory
	if err != nil || start != 3 {
		t.Fatal(start, err)
	}
	mustClose(t, l)
	disk = disk.CrashClone(crashfs.LoseUnsynced)
	for _, suffix := range []string{segment.LogSuffix, segment.IndexSuffix, segment.TimeIndexSuffix} {
		if _, err := disk.Stat(l.path(segment.FileName(3, suffix))); err != nil {
			t.Error(err)
		}
	}
}

// ST-50, ST-54: a clean stop makes durable what a killed process had left, also
// where this one appended nothing.
func TestCloseMakesDurableWhatAKillLeft(t *testing.T) {
	disk := crashfs.New()
	l := mustOpen(t, testOptions(disk, 1))
	for i := range int32(5) {
		mustAppend(t, l, spec{id: 3, sequence: i})
	}
	disk = disk.KillClone()
	l.Abandon()
	mustClose(t, mustOpen(t, testOptions(disk, 2)))
	o := testOptions(disk.CrashClone(crashfs.LoseUnsynced), 3)
	o.Clean = true
	l = openNew(t, o)
	if at := l.Offsets(); at.End != 5 || l.o.Stats.Recovered.Load() != 0 {
		t.Error(at, l.o.Stats.Recovered.Load())
	}
}

// Appenders, rolls, flushes, readers, lookups and watchers when the log ends
// beside them: all of them return, with the error of the end, and what was
// acknowledged is there (run with -race).
func TestTheLogEndsBesideItsUsers(t *testing.T) {
	for round := range 12 {
		disk := crashfs.New()
		o := testOptions(disk, 1)
		o.Config.SegmentBytes, o.FsyncInterval = 2000, 1
		l := mustOpen(t, o)
		abandon := round%2 == 0
		var users sync.WaitGroup
		var acked atomic.Int64
		var ended sync.Once
		use := func(f func(i int) error) {
			users.Go(func() {
				for i := 0; ; i++ {
					err := f(i)
					if err == nil {
						continue
					}
					if errors.Is(err, kerr.UnknownTopicOrPartition) != abandon || !abandon && !errors.Is(err, kerr.KafkaStorageError) {
						t.Error(err)
					}
					return
				}
			})
		}
		for range 3 {
			use(func(i int) error {
				a, err := l.Append(batch(t, spec{size: 50}))
				switch {
				case err != nil:
					return err
				case i%3 == 0:
					l.StartFlush(a.End)
				case i%3 == 1:
					if err := l.AwaitFlushed(t.Context(), a.End); err != nil {
						return err
					}
					for was := acked.Load(); was < a.End && !acked.CompareAndSwap(was, a.End); was = acked.Load() {
					}
				}
				if a.End > int64(20+17*round) {
					ended.Do(func() {
						if abandon {
							l.Abandon()
						} else if err := l.Close(); err != nil {
							t.Error(err)
						}
					})
				}
				return nil
			})
		}
		use(func(int) error {
			s, err := l.Read(l.Offsets().End/2, 500, true, kafka.ReadUncommitted)
			if s.Region.Length > 0 {
				s.Region.Release()
			}
			return err
		})
		use(func(int) error { return second(l.OffsetForTimestamp(1, kafka.ReadUncommitted)) })
		users.Go(func() {
			wake := make(chan struct{}, 1)
			defer l.Watch(wake)()
			for l.endedErr() == nil {
				<-wake
			}
		})
		users.Wait()
		if abandon {
			continue
		}
		o = testOptions(disk.CrashClone(crashfs.LoseUnsynced), 2)
		o.Clean = true
		l = mustOpen(t, o)
		if at := l.Offsets(); at.End < acked.Load() || int64(len(contents(t, l))) != at.End {
			t.Errorf("%+v, acknowledged were %d", at, acked.Load())
		}
		mustClose(t, l)
	}
}
