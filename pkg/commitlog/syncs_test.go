package commitlog

import (
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// Who asks while a sync of the directory is under way is not served by it, since
// it may have made its name after it began; all of them are served by the next one.
func TestOneSyncOfADirectoryServesAllThatAskBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := crashfs.New()
		if err := inner.Mkdir("data", 0o755); err != nil {
			t.Fatal(err)
		}
		disk, gate := faultfs.New(inner), make(chan struct{})
		disk.OnOp(func(op vfs.Op) {
			if op.Kind == vfs.OpSyncDir {
				<-gate
			}
		})
		s, stats := NewSyncs(4), new(Stats)
		var returned atomic.Int64
		var wg sync.WaitGroup
		ask := func() {
			wg.Go(func() {
				if err := s.syncDir(disk, "data", stats); err != nil {
					t.Error(err)
				}
				returned.Add(1)
			})
			synctest.Wait()
		}
		ask()
		for range 10 {
			ask()
		}
		gate <- struct{}{}
		synctest.Wait()
		if n := returned.Load(); n != 1 {
			t.Errorf("the first sync served %d", n)
		}
		gate <- struct{}{}
		wg.Wait()
		if n, counted := disk.Count(vfs.OpSyncDir), stats.Syncs.Load(); n != 2 || counted != 2 {
			t.Errorf("%d syncs for eleven that asked, %d were counted", n, counted)
		}
	})
}

// ST-61: a failed sync of the directory is the answer to all that it was for, and to all later: their names may be lost.
func TestAFailedSyncOfTheDirectoryIsFinal(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	if err := disk.Mkdir("data", 0o755); err != nil {
		t.Fatal(err)
	}
	disk.Fail(faultfs.Rule{Kinds: vfs.OpSyncDir})
	s := NewSyncs(1)
	for range 3 {
		if err := s.syncDir(disk, "data", new(Stats)); !errors.Is(err, syscall.EIO) {
			t.Error(err)
		}
	}
	if n := disk.Count(vfs.OpSyncDir); n != 1 {
		t.Errorf("%d syncs after one that failed", n)
	}
}

// A name that another log made before the failed sync of the directory is not taken for durable by its own sync after it.
func TestAFailedSyncOfTheDirectoryTakesTheOthersOffline(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	first := testOptions(disk, 1)
	first.Syncs = NewSyncs(2)
	second := first
	second.Dir = first.Dir + "1"
	a, b := openNew(t, first), openNew(t, second)
	ends := []int64{mustAppend(t, a, spec{}).End, mustAppend(t, b, spec{}).End}
	disk.Fail(faultfs.Rule{Kinds: vfs.OpSyncDir, Name: "."}) // where both directories are
	for i, l := range []*Log{a, b} {
		if err := l.AwaitFlushed(t.Context(), ends[i]); !errors.Is(err, syscall.EIO) {
			t.Errorf("log %d: %v", i, err)
		}
	}
}
