package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// beforeCompaction is a log with something for every rule, all of it flushed: old records, tombstones new and past their
// horizon, unkeyed records, a segment that comes out empty, transactions both ways, producers with snapshots.
func beforeCompaction(t testing.TB, disk vfs.FS) *keyed {
	t.Helper()
	m := newKeyed(t, mustOpen(t, keyedOptions(testOptions(disk, 1))), 1)
	m.producers[4] = &keyedProducer{}
	key := func(k, v string) keyedRecord { return keyedRecord{key: k, value: v} }
	must := func(errs ...error) {
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(m.put(0, false, record.None, key("a", "1"), key("b", "1")), m.put(0, false, record.Gzip, key("c", "1"), key("dead", "-"), key("-", "x")),
		m.put(1, true, record.None, key("a", "committed")), m.end(1, true), m.l.Roll(),
		// The first abort's marker goes, what was committed after it stays, and so does the last marker, for the producer's sake:
		// the old index of aborted transactions beside the new log would take the committed one from consumers.
		m.put(4, true, record.None, key("b", "aborted")), m.end(4, false), m.put(4, true, record.None, key("zz", "1")), m.end(4, true),
		m.put(4, true, record.None, key("b", "aborted")), m.end(4, false), m.l.Roll(),
		m.put(2, true, record.LZ4, key("b", "aborted"), key("e", "aborted")), m.end(2, false), m.l.Roll(),
		m.compact())
	m.now += deleteRetention
	must(m.put(0, false, record.None, key("f", "1")), m.put(0, false, record.None, key("f", "2")), m.l.Roll(), // comes out empty
		m.put(2, true, record.Zstd, key("g", "1"), key("c", "-")), m.put(1, true, record.None, key("h", "aborted")), m.l.Roll(),
		m.end(1, false), m.end(2, true), m.put(3, false, record.None, key("f", "2.5"), key("f", "3"), key("a", "2")),
		m.put(0, false, record.None, key("t", "-")), m.l.Roll(), // the last batch goes, and a snapshot is bound to it
		m.put(0, false, record.None, key("a", "active")))
	mustFlush(t, m.l)
	return m
}

// compactWorkload compacts twice, with a pass for every few keys.
func (m *keyed) compactWorkload() error {
	m.maxKeys = 3
	err := m.compact()
	if err == nil {
		m.now += deleteRetention
		err = m.compact()
	}
	return errors.Join(err, m.l.Close())
}

// checkInterrupted opens what is left of a compaction: nothing that has to stay is missing, nothing is there that was not written,
// no transaction is open that was not, the producers are known, and another compaction leaves exactly what the rules say.
func (m *keyed) checkInterrupted(disk vfs.FS, before *keyed, what string) {
	t := m.t
	t.Helper()
	c := newKeyed(t, mustOpen(t, keyedOptions(testOptions(disk, 2))), 2)
	defer c.l.Abandon()
	c.what, c.dirty, c.now, c.producers = what, m.dirty, m.now, before.producers
	for _, b := range before.batches {
		b := *b
		b.records = slices.Clone(b.records)
		c.batches = append(c.batches, &b)
	}
	all, got := c.want(), c.found(0)
	for _, r := range got {
		if !slices.Contains(all, r) {
			t.Fatalf("%s: %v was never written, or had gone", what, r)
		}
	}
	latest := c.latest(maxOffset)
	for _, b := range c.batches {
		for _, r := range b.records {
			if b.txn != "aborted" && r.value != "-" && latest[r.key] == r.offset && !slices.Contains(got, r) {
				t.Fatalf("%s: %v is gone, of\n%v", what, r, got)
			}
		}
	}
	c.checkStable()
	c.checkReadCommitted(got)
	c.checkProducers()
	// Tombstones may or may not have a horizon by now: past every horizon all have gone.
	for range 3 {
		c.now += 2 * deleteRetention
		if err := c.compact(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	c.check()
	for name := range namesSeq(t, disk) {
		if base, suffix, ok := parseName(name); (!ok && name != metadataName && name != failedName) || (ok && suffix != snapshotSuffix && find(*c.l.parts.Load(), base) < 0) {
			t.Errorf("%s: %s is left over", what, name)
		}
	}
}

func namesSeq(t testing.TB, disk vfs.FS) func(func(string) bool) {
	t.Helper()
	entries, err := disk.ReadDir(testDir)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(string) bool) {
		for _, e := range entries {
			if !yield(e.Name()) {
				return
			}
		}
	}
}

// snapshot is the model as it is, for another log.
func (m *keyed) snapshot() *keyed {
	c := &keyed{producers: m.producers}
	for _, b := range m.batches {
		b := *b
		b.records = slices.Clone(b.records)
		c.batches = append(c.batches, &b)
	}
	return c
}

// every is how many operations a sweep goes on at a time.
func every() int {
	if short() {
		return 5
	}
	return 1
}

// ST-48, ST-46, ST-9: the power goes, or the process is killed, after every single operation of a compaction.
func TestPowerCutAfterEveryOperationOfACompaction(t *testing.T) {
	survivals := 6
	if short() {
		survivals = 3
	}
	cutEverywhere(t, beforeCompaction, every(), survivals)
}

// ST-9: until the new log has its name, the producer snapshot at its end fits the old one as well. The segments before have been
// rewritten by then, so that without it the batches they had would be taken for new ones when they are sent again.
func TestASnapshotFitsTheOldLogUntilTheNewOneHasItsName(t *testing.T) {
	cutEverywhere(t, func(t testing.TB, disk vfs.FS) *keyed {
		m := newKeyed(t, mustOpen(t, keyedOptions(testOptions(disk, 1))), 1)
		var errs []error
		for i := range 3 {
			errs = append(errs, m.put(1, false, record.None, keyedRecord{key: "a", value: fmt.Sprint(i)}))
		}
		errs = append(errs, m.l.Roll(),
			m.put(1, false, record.None, keyedRecord{key: "a", value: "3"}), m.put(0, false, record.None, keyedRecord{key: "t", value: "-"}), m.l.Roll(),
			m.put(0, false, record.None, keyedRecord{key: "b", value: "1"}))
		mustFlush(t, m.l)
		errs = append(errs, m.l.Close()) // of the snapshots up to the active segment only the one at its start is left
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		m.l = mustOpen(t, keyedOptions(testOptions(disk, 1)))
		return m
	}, 1, 2)
}

// cutEverywhere takes the power, or kills the process, after every so many operations of the compaction of a log.
func cutEverywhere(t *testing.T, begin func(testing.TB, vfs.FS) *keyed, every, survivals int) {
	t.Helper()
	n, clones := 0, 0
	for ; ; n += every {
		disk := crashfs.New()
		m := begin(t, disk)
		before := m.snapshot()
		disk.StopAfter(n)
		err := m.compactWorkload()
		for _, s := range crashfs.Survivals(uint64(n), survivals) {
			m.checkInterrupted(disk.CrashClone(s), before, fmt.Sprintf("cut after %d operations, %v", n, s))
			clones++
		}
		m.checkInterrupted(disk.KillClone(), before, fmt.Sprintf("killed after %d operations", n))
		if _, cut := disk.Cut(); !cut {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	t.Logf("power cut after each of %d operations, %d states", n, clones)
}

// ST-48: what is derived from the old log is gone durably before the new one has its name. After each rename many things
// that may be left of what was not synced are looked at: an index of aborted transactions that comes back takes committed
// records from consumers.
func TestNothingDerivedOutlivesItsLog(t *testing.T) {
	disk := crashfs.New()
	m := beforeCompaction(t, disk)
	before := m.snapshot()
	states, renamed := 0, false
	var checks []func()
	disk.OnOp(func(op vfs.Op) {
		if renamed && op.Kind == vfs.OpSyncDir {
			for i := range 64 {
				clone, dirty := disk.CrashClone(crashfs.Random(uint64(1000*states+i))), m.dirty
				checks = append(checks, func() { // afterwards: the disk's lock is not to be left by a test that fails
					m.dirty = dirty
					m.checkInterrupted(clone, before, fmt.Sprintf("cut before %v, survival %d", op, i))
				})
				states++
			}
		}
		renamed = op.Kind == vfs.OpRename && strings.HasSuffix(op.Name, cleanedSuffix)
	})
	if err := m.compactWorkload(); err != nil || states == 0 {
		t.Fatal(states, err)
	}
	for _, check := range checks {
		check()
	}
}

// ST-48, ST-72: every single operation of a compaction fails once, or from then on the disk is full. The log is readable all
// the time, goes on if it was no fsync, and is whole for the next process.
func TestEveryOperationOfACompactionFails(t *testing.T) {
	for _, full := range []bool{false, true} {
		n := 1
		for ; ; n += every() {
			inner := crashfs.New()
			disk := faultfs.New(inner)
			m := beforeCompaction(t, disk)
			before := m.snapshot()
			rule := faultfs.Rule{Nth: n, Short: 30}
			if full {
				rule = faultfs.Rule{Kinds: vfs.OpCreate | vfs.OpWrite, Nth: n, Times: -1, Err: syscall.ENOSPC}
			}
			fault := disk.Fail(rule)
			m.maxKeys = 3
			err := m.compact()
			m.what = fmt.Sprintf("full %v: operation %d fails: %v: %v", full, n, fault.Last(), err)
			if err != nil && !errors.Is(err, kerr.KafkaStorageError) {
				t.Fatalf("%s: not Kafka's error", m.what)
			}
			if !full {
				fault.Remove()
			}
			got := m.found(0) // readable, whatever has failed
			if len(got) == 0 {
				t.Fatal(m.what, "nothing is left")
			}
			fault.Remove()
			m.checkInterrupted(inner.KillClone(), before, m.what+", killed")
			if full || fault.Last().Kind&syncs == 0 {
				m.checkInterrupted(inner.CrashClone(crashfs.LoseUnsynced), before, m.what+", cut")
				// The next try succeeds.
				if err := m.compact(); err != nil {
					t.Fatalf("%s: again: %v", m.what, err)
				}
				m.check()
			}
			m.l.Abandon()
			if fault.Hits() == 0 {
				break
			}
		}
		t.Logf("full %v: each of %d operations failed", full, n-1)
	}
}

// ST-61: every fsync of a compaction fails once and drops what it was to make durable.
func TestEveryFailedFsyncOfACompaction(t *testing.T) {
	n := 1
	for ; ; n++ {
		inner := crashfs.New()
		disk := faultfs.New(inner)
		m := beforeCompaction(t, disk)
		before := m.snapshot()
		fault := disk.Fail(faultfs.Rule{Kinds: syncs, Nth: n, Then: crashfs.DropUnsynced, ThenDir: crashfs.DropUnsyncedNames})
		err := m.compactWorkload()
		what := fmt.Sprintf("fsync %d fails: %v: %v", n, fault.Last(), err)
		for _, s := range crashfs.Survivals(uint64(n), 4) {
			m.checkInterrupted(inner.CrashClone(s), before, fmt.Sprintf("%s, %v", what, s))
		}
		m.checkInterrupted(inner.KillClone(), before, what+", killed")
		if fault.Hits() == 0 {
			break
		}
	}
	t.Logf("each of %d fsyncs failed once", n-1)
}

// ST-45, ST-48: a segment that was emptied, and can't be removed, is back after the next start. What has deleted its
// records is there as long as it is.
func TestATombstoneStaysWhileItsEmptiedSegmentCannotBeRemoved(t *testing.T) {
	inner := crashfs.New()
	disk := faultfs.New(inner)
	m := newKeyed(t, mustOpen(t, keyedOptions(testOptions(disk, 1))), 1)
	for _, r := range []keyedRecord{{key: "x", value: "1"}, {key: "a", value: "1"}, {key: "a", value: "-"}, {key: "b", value: "1"}} {
		if err := errors.Join(m.put(0, false, record.None, r), m.l.Roll()); err != nil {
			t.Fatal(err)
		}
	}
	fault := disk.Fail(faultfs.Rule{Kinds: vfs.OpRemove, Name: "*1.log", Times: -1})
	for range 3 {
		if err := m.compact(); !errors.Is(err, kerr.KafkaStorageError) {
			t.Fatal(err)
		}
		m.now += 2 * deleteRetention
	}
	if fault.Hits() == 0 {
		t.Fatal("nothing failed")
	}
	c := newKeyed(t, mustOpen(t, keyedOptions(testOptions(inner.KillClone(), 2))), 1)
	if got := c.found(0); !slices.ContainsFunc(got, func(r keyedRecord) bool { return r.key == "a" && r.value == "-" }) {
		t.Errorf("after a kill: %v", got)
	}
	fault.Remove()
	for range 3 {
		if err := m.compact(); err != nil {
			t.Fatal(err)
		}
		m.now += 2 * deleteRetention
	}
	c = newKeyed(t, mustOpen(t, keyedOptions(testOptions(inner.KillClone(), 2))), 1)
	for _, l := range []*keyed{m, c} {
		if got := l.found(0); slices.ContainsFunc(got, func(r keyedRecord) bool { return r.key == "a" }) {
			t.Errorf("after the removal: %v", got)
		}
	}
}
