package commitlog

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// afterFailedSync is a disk with two batches, of which an fsync has dropped the second, as the next process finds it.
func afterFailedSync(t *testing.T) *crashfs.FS {
	t.Helper()
	inner := crashfs.New()
	disk := faultfs.New(inner)
	l := mustOpen(t, testOptions(disk, 1))
	mustAppend(t, l, spec{id: 5})
	mustFlush(t, l)
	a := mustAppend(t, l, spec{id: 5, sequence: 1})
	disk.Fail(faultfs.Rule{Kinds: vfs.OpSync, Then: crashfs.DropUnsynced})
	if err := l.AwaitFlushed(t.Context(), a.End); !errors.Is(err, kerr.KafkaStorageError) {
		t.Fatal(err)
	}
	return inner.KillClone()
}

// ST-61: the page cache has a batch that a failed fsync has dropped, and the next process acknowledges its repeat. The batch is written anew
// for it, since its own fsync, which succeeds, would not write it.
func TestWhatAFailedFsyncHasDroppedIsWrittenAnew(t *testing.T) {
	disk := afterFailedSync(t)
	l := mustOpen(t, testOptions(disk, 2))
	a := mustAppend(t, l, spec{id: 5, sequence: 1})
	if !a.Duplicate || l.Flushed(a.End) {
		t.Fatal("no repeat, or none that waits:", a)
	}
	mustFlush(t, l)
	if _, err := disk.Stat(l.path(failedName)); err == nil {
		t.Error("every start would write it anew")
	}
	for _, s := range crashfs.Survivals(1, 20) {
		l := mustOpen(t, testOptions(disk.CrashClone(s), 3))
		if end := l.Offsets().End; end != 2 {
			t.Errorf("%v: the log ends at %d", s, end)
		}
		l.Abandon()
	}
}

// ST-61, ST-72: where it can't be written anew the partition stays offline for writes, until a start at which it can; nothing durable is lost on the way.
func TestADiskThatTakesNoRescueKeepsThePartitionOffline(t *testing.T) {
	offline := 0
	for n := 1; ; n++ {
		inner := afterFailedSync(t)
		disk := faultfs.New(inner)
		fault := disk.Fail(faultfs.Rule{Name: "*", Kinds: vfs.OpChanges, Nth: n})
		l, err := Open(testOptions(disk, 2))
		if err == nil {
			if end := l.Offsets().End; end != 2 {
				t.Errorf("operation %d: the log ends at %d", n, end)
			}
			contents(t, l)
			if _, err := l.Append(batch(t, spec{id: 5, sequence: 2})); l.failed != nil {
				offline++
				if !errors.Is(err, kerr.KafkaStorageError) {
					t.Errorf("operation %d: an append: %v", n, err)
				}
			}
			l.Abandon()
		}
		fault.Remove()
		for _, s := range crashfs.Survivals(uint64(n), 5) {
			l := mustOpen(t, testOptions(inner.CrashClone(s), 3))
			if end := l.Offsets().End; end < 1 {
				t.Errorf("operation %d, %v: the log ends at %d", n, s, end)
			}
			l.Abandon()
		}
		l = mustOpen(t, testOptions(inner, 3))
		mustFlush(t, l)
		l.Abandon()
		if end := mustOpen(t, testOptions(inner.CrashClone(crashfs.LoseUnsynced), 4)).Offsets().End; end < 2 {
			t.Errorf("operation %d: after the next start the log ends at %d", n, end)
		}
		if fault.Hits() == 0 {
			break
		}
	}
	if offline < 5 {
		t.Error("the rescue has not failed:", offline)
	}
}
