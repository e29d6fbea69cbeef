package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// A compactionFault is one way in which the operation n of a compaction fails.
type compactionFault struct {
	name string
	// final: it may be an fsync that fails, after which nothing more is written.
	final bool
	rule  func(n int) faultfs.Rule
}

const places = vfs.OpCreate | vfs.OpWrite | vfs.OpRename // what may find no room

var compactionFaults = []compactionFault{
	{"no room for a write", false, func(n int) faultfs.Rule {
		return faultfs.Rule{Kinds: vfs.OpWrite, Err: syscall.ENOSPC, Short: n * 37 % 200}
	}},
	{"no room for a name", false, func(int) faultfs.Rule { return faultfs.Rule{Kinds: vfs.OpCreate, Err: syscall.ENOSPC} }},
	{"no room for a rename", false, func(int) faultfs.Rule { return faultfs.Rule{Kinds: vfs.OpRename, Err: syscall.ENOSPC} }},
	{"no room from there on", false, func(n int) faultfs.Rule {
		return faultfs.Rule{Kinds: places, Err: syscall.ENOSPC, Short: n * 61 % 300, Times: -1}
	}},
	{"no room, says an fsync", true, func(int) faultfs.Rule {
		return faultfs.Rule{Kinds: syncs, Err: syscall.ENOSPC, Then: crashfs.DropUnsynced, ThenDir: crashfs.DropUnsyncedNames}
	}},
	{"EIO", true, func(n int) faultfs.Rule { return faultfs.Rule{Kinds: vfs.OpChanges, Short: n * 37 % 200} }},
	{"EIO, and done all the same", true, func(int) faultfs.Rule { return faultfs.Rule{Kinds: vfs.OpChanges, Happens: true} }},
	{"EIO of all writes from there on", true, func(int) faultfs.Rule { return faultfs.Rule{Kinds: vfs.OpChanges, Times: -1} }},
}

// A held is a region that a reader has before the compaction, and what it reads.
type held struct {
	segment.Region
	content []byte
}

// A bystander reads between all the steps of a compaction.
type bystander struct {
	*keyed
	held   []held
	before []keyedRecord
	known  map[keyedRecord]bool // that were ever written
	reads  int
	inside bool
}

func newBystander(m *keyed) *bystander {
	b := &bystander{keyed: m, before: m.found(0), known: map[keyedRecord]bool{}}
	for _, r := range b.before {
		b.known[r] = true
	}
	for _, p := range *m.l.parts.Load() {
		s, err := m.l.Read(p.base, 1<<20, true, kafka.ReadUncommitted)
		if err != nil {
			m.t.Fatal(err)
		}
		h := held{s.Region, make([]byte, s.Region.Length)}
		if _, err := h.File.ReadAt(h.content, h.Offset); err != nil {
			m.t.Fatal(err)
		}
		b.held = append(b.held, h)
	}
	return b
}

// busy is the first part that is being swapped: who reads that one waits.
func (b *bystander) busy(parts []*part) int {
	return slices.IndexFunc(parts, func(p *part) bool {
		if !p.mu.TryLock() {
			return true
		}
		p.mu.Unlock()
		return false
	})
}

// look reads what there is before an operation: each part from its base on, and the regions that were held before. In the part that is
// being swapped a reader waits, and this goroutine is the one for which it would.
func (b *bystander) look(op vfs.Op) {
	if b.inside {
		return // an operation of the reading
	}
	b.inside = true
	defer func() { b.inside = false }()
	parts := *b.l.parts.Load()
	busy := b.busy(parts)
	for i, p := range parts {
		if busy >= 0 && (i == busy || b.l.marks.load().LogStart > p.base) {
			continue
		}
		s, err := b.l.Read(p.base, 1<<20, true, kafka.ReadUncommitted)
		if err != nil {
			b.t.Fatalf("%s: before %v, a read at %d: %v", b.what, op, p.base, err)
		}
		b.reads++
		if s.Region.Length == 0 {
			continue
		}
		next := p.base
		for _, batch := range batches(b.t, s.Region) {
			if batch.LastOffset() < next || batch.CheckCRC() != nil {
				b.t.Fatalf("%s: before %v: offsets %d to %d where %d is next, %v", b.what, op, batch.BaseOffset(), batch.LastOffset(), next, batch.CheckCRC())
			}
			next = batch.LastOffset() + 1
		}
	}
	b.checkHeld()
}

// checkHeld reads the regions again that were there before: whatever has become of the log, a response on its way has what it had.
func (b *bystander) checkHeld() {
	for _, h := range b.held {
		got := make([]byte, len(h.content))
		if _, err := h.File.ReadAt(got, h.Offset); err != nil || !bytes.Equal(got, h.content) {
			b.t.Fatalf("%s: a region of before reads differently: %v", b.what, err)
		}
		b.reads++
	}
}

// checkNothingLost wants the latest record of each key to be there, and nothing that was not written, in order.
func (b *bystander) checkNothingLost(before *keyed) {
	b.t.Helper()
	got := b.found(0)
	latest := before.latest(maxOffset)
	for _, batch := range before.batches {
		for _, r := range batch.records {
			if batch.txn != "aborted" && r.value != "-" && latest[r.key] == r.offset && !slices.Contains(got, r) {
				b.t.Fatalf("%s: %v is gone, of\n%v", b.what, r, got)
			}
		}
	}
	for i, r := range got {
		if !b.known[r] || i > 0 && r.offset <= got[i-1].offset {
			b.t.Fatalf("%s: %v was never written there, in\n%v", b.what, r, got)
		}
	}
	b.checkStable()
	b.checkReadCommitted(got)
}

// checkReopened wants the next process to find what there is after a compaction that succeeded, and no more: no later one looks
// for it.
func (b *bystander) checkReopened(disk vfs.FS) {
	b.t.Helper()
	c := newKeyed(b.t, mustOpen(b.t, keyedOptions(testOptions(disk, 3))), 3)
	defer c.l.Abandon()
	c.what = b.what + ", opened again"
	if got, want := c.found(0), b.want(); !slices.Equal(got, want) {
		b.t.Fatalf("%s: the log has\n%v, and should have\n%v", c.what, got, want)
	}
}

// cutAtSyncs looks before each sync of a directory at what a power cut could leave.
func (b *bystander) cutAtSyncs(disk *crashfs.FS, before *keyed, what string) {
	disk.OnOp(func(op vfs.Op) {
		if op.Kind != vfs.OpSyncDir {
			return
		}
		for _, s := range crashfs.Survivals(7, 12) {
			b.checkInterrupted(disk.CrashClone(s), before, fmt.Sprintf("%s%s, cut before %v: %v", b.what, what, op, s))
		}
	})
}

// checkNextProcess reads all of the log, which makes its indexes, and flushes it; then the power is cut.
func (b *bystander) checkNextProcess(disk *crashfs.FS, before *keyed) {
	b.t.Helper()
	b.cutAtSyncs(disk, before, ", killed, opened")
	defer disk.OnOp(nil)
	l := mustOpen(b.t, keyedOptions(testOptions(disk, 2)))
	defer l.Abandon()
	for _, p := range *l.parts.Load() {
		s, err := l.Read(p.base, 1, true, kafka.ReadCommitted)
		if err != nil {
			b.t.Fatal(err)
		}
		if s.Region.Length > 0 {
			s.Region.Release()
		}
	}
	if _, err := l.allAborted(); err != nil {
		b.t.Fatal(err)
	}
	for _, flush := range []bool{false, true} {
		if flush {
			mustFlush(b.t, l)
		}
		for _, s := range crashfs.Survivals(9, 8) {
			b.checkInterrupted(disk.CrashClone(s), before, fmt.Sprintf("%s, killed, opened, flushed %v, cut: %v", b.what, flush, s))
		}
	}
}

// put1 appends a record, and wants it to be taken at the end, or refused as the disk's fault is.
func (b *bystander) put1(want error) {
	b.t.Helper()
	end := b.l.Offsets().End
	err := b.put(0, false, record.None, keyedRecord{key: "later", value: fmt.Sprint(end)})
	if err == nil {
		err = b.l.AwaitFlushed(b.t.Context(), end+1)
	}
	if !errors.Is(err, want) {
		b.t.Fatalf("%s: a produce then: %v, not %v", b.what, err, want)
	}
	if now := b.l.Offsets().End; err == nil && now != end+1 || err != nil && now != end {
		b.t.Fatalf("%s: the end was %d and is %d: %v", b.what, end, now, err)
	}
}

// ST-48, ST-60, ST-61, ST-62, ST-72: in each of several ways, every operation of a compaction that changes the disk fails: no room for a write (after a part of it), for a name,
// for a rename, for all of them from then on, an fsync that fails and drops what it was to make durable, EIO with or without effect. The log is read
// between all steps, before, in and after the segment that is rewritten, and by who held regions of before. Then it takes records, or refuses them after a failed
// fsync; once there is room a later compaction succeeds; the next process loses nothing.
func TestACompactionThatFailsAtAnyStepLeavesTheLogAsItIs(t *testing.T) {
	for _, f := range compactionFaults {
		n, reads, again := 1, 0, 0
		for ; ; n += every() {
			inner := crashfs.New()
			disk := faultfs.New(inner)
			m := beforeCompaction(t, disk)
			before := m.snapshot()
			b := newBystander(m)
			r := f.rule(n)
			r.Nth = n
			m.what, m.maxKeys = fmt.Sprintf("%s, operation %d", f.name, n), 3
			fault := disk.Fail(r)
			disk.OnOp(b.look)
			err := m.compact()
			disk.OnOp(nil)
			if fault.Hits() == 0 {
				if err != nil {
					t.Fatal(m.what, err)
				}
				m.l.Abandon()
				break
			}
			m.what += fmt.Sprintf(", which is %v: %v", fault.Last(), err)
			failed := f.final && m.l.failed != nil
			if !f.final && m.l.failed != nil {
				t.Fatalf("%s: the log is offline", m.what)
			}
			if err != nil && !errors.Is(err, kerr.KafkaStorageError) {
				t.Fatalf("%s: not Kafka's error", m.what)
			}
			b.checkNothingLost(before)
			b.checkHeld()
			if r.Times < 0 { // it fails still
				b.put1(kerr.KafkaStorageError)
				b.checkNothingLost(before)
				failed = f.final && m.l.failed != nil
			}
			fault.Remove()
			m.checkInterrupted(inner.KillClone(), before, m.what+", killed")
			survivals := 1
			if fault.Last().Kind&(syncs|vfs.OpRename) != 0 { // nobody knows what of the names is on the disk
				survivals = 8
			}
			for _, s := range crashfs.Survivals(uint64(n), survivals) {
				m.checkInterrupted(inner.CrashClone(s), before, fmt.Sprintf("%s, cut: %v", m.what, s))
			}
			if failed {
				b.checkNextProcess(inner.KillClone(), before)
			}
			if failed {
				b.put1(kerr.KafkaStorageError) // what the disk has is not trusted any more
				if err := m.compact(); !errors.Is(err, kerr.KafkaStorageError) {
					t.Fatalf("%s: a compaction after it: %v", m.what, err)
				}
				b.checkNothingLost(before)
			} else {
				b.put1(nil)
				if err := m.compact(); err != nil {
					t.Fatalf("%s: again: %v", m.what, err)
				}
				m.check()
				b.checkReopened(inner.KillClone())
				b.checkReopened(inner.CrashClone(crashfs.LoseUnsynced))
				again++
			}
			b.checkHeld()
			for _, h := range b.held {
				h.Release()
			}
			reads += b.reads
			m.l.Abandon()
		}
		t.Logf("%s: each of %d operations, %d reads between steps, %d compactions succeeded afterwards", f.name, n-1, reads, again)
	}
}

// ST-46, ST-48, ST-61: a rename whose durability is not known, since it or the sync after it failed, leaves no index of the one log beside the other: neither what this process
// reads from then on, nor what the next one does. The segment has an aborted transaction, marker and all, of which the new log has no
// batch, so that its index of aborted transactions is empty.
func TestAnUnsureRenameLeavesNoIndexOfAnotherLog(t *testing.T) {
	for _, rule := range []faultfs.Rule{
		{Kinds: syncs, Then: crashfs.DropUnsynced, ThenDir: crashfs.DropUnsyncedNames}, {Kinds: vfs.OpRename, Happens: true}, {Kinds: vfs.OpRename | syncs},
	} {
		n := 1
		for ; ; n++ {
			inner := crashfs.New()
			disk := faultfs.New(inner)
			m := newKeyed(t, mustOpen(t, keyedOptions(testOptions(disk, 1))), 1)
			if err := errors.Join(m.put(0, false, record.None, keyedRecord{key: "a", value: "1"}), m.put(1, true, record.None, keyedRecord{key: "b", value: "aborted"}),
				m.end(1, false), m.put(1, true, record.None, keyedRecord{key: "c", value: "1"}), m.end(1, true), m.l.Roll(),
				m.put(0, false, record.None, keyedRecord{key: "a", value: "active"})); err != nil {
				t.Fatal(err)
			}
			mustFlush(t, m.l)
			before := m.snapshot()
			b := newBystander(m)
			rule.Nth = n
			fault := disk.Fail(rule)
			m.what = fmt.Sprintf("operation %d of %+v", n, rule.Kinds)
			b.cutAtSyncs(inner, before, "")
			err := m.compact()
			m.what = fmt.Sprintf("%v, which is %d, fails: %v", fault.Last(), n, err)
			if fault.Hits() == 0 {
				m.l.Abandon()
				break
			}
			b.checkNothingLost(before)
			inner.OnOp(nil)
			for _, s := range crashfs.Survivals(uint64(n), 12) {
				m.checkInterrupted(inner.CrashClone(s), before, fmt.Sprintf("%s, cut: %v", m.what, s))
			}
			b.checkNextProcess(inner.KillClone(), before)
			m.l.Abandon()
		}
		if n < 2 {
			t.Error("nothing has failed")
		}
	}
}
