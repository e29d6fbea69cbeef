package commitlog

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// ST-61: a sync of the directory that fails in a compaction drops the name of a segment that was rolled in the same moment. What is in that
// segment is durable for nobody from then on: neither a round that has no part in the compaction, nor a later sync that would succeed, says so.
func TestANameThatACompactionLosesIsDurableForNobody(t *testing.T) {
	for n := 1; ; n++ {
		inner := crashfs.New()
		disk := faultfs.New(inner)
		m := beforeCompaction(t, disk)
		fault := disk.Fail(faultfs.Rule{Kinds: vfs.OpSyncDir, Nth: n, Then: crashfs.DropUnsynced, ThenDir: crashfs.DropUnsyncedNames})
		syncs := 0
		disk.OnOp(func(op vfs.Op) {
			if op.Kind != vfs.OpSyncDir {
				return
			}
			if syncs++; syncs != n || !m.l.mu.TryLock() {
				return // it is not the time, or a sync under the lock, beside which nobody rolls
			}
			m.l.mu.Unlock()
			// All was flushed, so that the roll has no name to sync before its own.
			if err := errors.Join(m.l.Roll(), m.put(0, false, record.None, keyedRecord{key: "rolled", value: "1"})); err != nil {
				t.Error(err)
			}
		})
		_ = m.compact()
		disk.OnOp(nil)
		if fault.Hits() == 0 {
			m.l.Abandon()
			if n < 4 {
				t.Error("only", n-1, "syncs")
			}
			return
		}
		// A round that outran the error on its way to the log's lock.
		if err := m.l.sync(job{obligations: obligations{dir: true}}); err == nil {
			t.Errorf("sync %d: a later one has succeeded", n)
		}
		end := m.l.Offsets().End
		err := m.put(0, false, record.None, keyedRecord{key: "later", value: "1"})
		if err == nil && m.l.dirty.dir {
			err = m.l.AwaitFlushed(t.Context(), end+1)
		}
		if err != nil && !errors.Is(err, kerr.KafkaStorageError) {
			t.Error(err)
		}
		flushed := m.l.Offsets().Flushed
		m.l.Abandon()
		again := newKeyed(t, mustOpen(t, keyedOptions(testOptions(inner.CrashClone(crashfs.LoseUnsynced), 2))), 1)
		if got := again.l.Offsets().End; got < flushed {
			t.Errorf("sync %d: the log ends at %d, and was flushed up to %d", n, got, flushed)
		}
		again.l.Abandon()
	}
}
