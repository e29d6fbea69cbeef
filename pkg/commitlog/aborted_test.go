package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// transact puts one batch of a transaction into a log.
func transact(t testing.TB, l *Log, id int64, sequence int32, size int) int64 {
	t.Helper()
	a, err := l.AppendVerified(batch(t, spec{id: id, sequence: sequence, size: size, txn: true}), producer.VerifiedInTxn)
	if err != nil {
		t.Fatal(err)
	}
	return a.BaseOffset
}

func abortedAt(t testing.TB, l *Log, offset int64, maxBytes int) []AbortedTransaction {
	t.Helper()
	s, err := l.Read(offset, maxBytes, true, kafka.ReadCommitted)
	if err != nil {
		t.Fatal(err)
	}
	batches(t, s.Region)
	return s.Aborted
}

// spanning makes a log of three segments: 0 a, 1 b | 2 abort of b, 3 plain | 4 abort of a, 5 plain.
func spanning(t testing.TB, o Options) *Log {
	t.Helper()
	l := mustOpen(t, o)
	roll := func() {
		if err := l.Roll(); err != nil {
			t.Fatal(err)
		}
	}
	transact(t, l, 1, 0, 10)
	transact(t, l, 2, 0, 10)
	roll()
	end(t, l, Marker{ProducerID: 2})
	mustAppend(t, l, spec{})
	roll()
	end(t, l, Marker{ProducerID: 1})
	mustAppend(t, l, spec{})
	return l
}

// TX-8: a transaction is aborted in a later segment than it has begun in. Recorded order and bounds are
// Kafka's: by the markers, and all up to the next index entry or segment.
func TestAbortedTransactionsSpanSegments(t *testing.T) {
	l := spanning(t, testOptions(crashfs.New(), 1))
	defer l.Abandon()
	for offset, want := range map[int64][]AbortedTransaction{
		0: {{2, 1}, {1, 0}}, 1: {{2, 1}, {1, 0}}, 2: {{2, 1}, {1, 0}}, 3: {{1, 0}}, 4: {{1, 0}}, 5: {},
	} {
		if got := abortedAt(t, l, offset, 1<<20); !slices.Equal(got, want) {
			t.Errorf("from %d: %v, want %v", offset, got, want)
		}
	}
	if s, err := l.Read(0, 1<<20, true, kafka.ReadUncommitted); err != nil || s.Aborted != nil {
		t.Error(s.Aborted, err)
	} else {
		s.Region.Release()
	}
}

// TX-8: what is aborted behind the next index entry is not told.
func TestAbortedTransactionsEndWithTheRead(t *testing.T) {
	o := testOptions(crashfs.New(), 1)
	o.Config.IndexIntervalBytes = 300
	l := openNew(t, o)
	for i := range int32(40) {
		transact(t, l, 1, i, 100)
		end(t, l, Marker{ProducerID: 1})
	}
	got := abortedAt(t, l, 0, 200)
	if len(got) == 0 || len(got) > 4 {
		t.Errorf("%d aborted transactions for a read of 200 bytes", len(got))
	}
	if got := abortedAt(t, l, 40, 1<<20); len(got) != 20 {
		t.Errorf("%d aborted transactions in the second half", len(got))
	}
}

// ST-8: a .txnindex that is missing, cut or not of its log is made anew from the
// log, once, and that is logged; after a clean stop and a kill, of sealed segments and of the newest.
func TestDamagedTransactionIndexIsRebuilt(t *testing.T) {
	damage := map[string]func(vfs.FS, string) error{
		"missing": func(d vfs.FS, name string) error { return d.Remove(name) },
		"cut":     func(d vfs.FS, name string) error { return resize(d, name, 20) },
		"zeros":   func(d vfs.FS, name string) error { return errors.Join(resize(d, name, 0), resize(d, name, 34)) },
	}
	for what, spoil := range damage {
		for _, base := range []int{2, 4} {
			for _, clean := range []bool{true, false} {
				disk := crashfs.New()
				mustClose(t, spanning(t, testOptions(disk, 1)))
				if err := spoil(disk, fmt.Sprintf("%s/%020d.txnindex", testDir, base)); err != nil {
					t.Fatal(err)
				}
				for boot := range int32(2) {
					o := testOptions(disk, 2+boot)
					var log bytes.Buffer
					o.Logger, o.Clean = slog.New(slog.NewTextHandler(&log, nil)), clean
					l := mustOpen(t, o)
					for range 2 {
						if got := abortedAt(t, l, 0, 1<<20); !slices.Equal(got, []AbortedTransaction{{2, 1}, {1, 0}}) {
							t.Errorf("%s, %d, clean %v: %v", what, base, clean, got)
						}
					}
					checkCommitted(t, l, what)
					want := 1
					if boot > 0 || base == 4 && !clean { // mended, or checked batch by batch as it was
						want = 0
					}
					if n := strings.Count(log.String(), "rebuilt"); n != want {
						t.Errorf("%s, %d, clean %v, boot %d: rebuilt %d times:\n%s", what, base, clean, boot, n, log.String())
					}
					mustClose(t, l)
				}
			}
		}
	}
}

// ST-8: also where the segment was opened to replay its producers, and nothing else was aborted.
func TestOnlyTransactionIndexIsRebuilt(t *testing.T) {
	disk := crashfs.New()
	l := mustOpen(t, testOptions(disk, 1))
	transact(t, l, 1, 0, 10)
	end(t, l, Marker{ProducerID: 1})
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, spec{})
	mustClose(t, l)
	for _, name := range []string{"2.snapshot", "3.snapshot", "0.txnindex"} {
		n, suffix, _ := strings.Cut(name, ".")
		if err := disk.Remove(fmt.Sprintf("%s/%020s.%s", testDir, n, suffix)); err != nil {
			t.Fatal(err)
		}
	}
	l = mustOpen(t, testOptions(disk, 2))
	defer l.Abandon()
	if got := abortedAt(t, l, 0, 1<<20); !slices.Equal(got, []AbortedTransaction{{1, 0}}) {
		t.Error(got)
	}
}

// ST-8, TX-6: the power goes, or the process is killed and then the power goes, at every
// operation of a rebuild: the index is the right one after it, or is rebuilt again, but never says that nothing was aborted.
func TestPowerCutInARebuildOfATransactionIndex(t *testing.T) {
	for n := 0; ; n++ {
		disk := crashfs.New()
		mustClose(t, spanning(t, testOptions(disk, 1)))
		name := fmt.Sprintf("%s/%020d.txnindex", testDir, 2)
		if n%2 == 0 {
			if err := errors.Join(disk.Remove(name), disk.SyncDir(testDir)); err != nil {
				t.Fatal(err)
			}
		} else if err := resize(disk, name, 20); err != nil {
			t.Fatal(err)
		}
		disk.StopAfter(n / 2)
		read := func(disk vfs.FS, what string) {
			l, err := Open(testOptions(disk, 2))
			if err != nil {
				return // the power is gone
			}
			defer l.Abandon()
			s, err := l.Read(0, 1<<20, true, kafka.ReadCommitted)
			if err == nil && !slices.Equal(s.Aborted, []AbortedTransaction{{2, 1}, {1, 0}}) {
				t.Fatalf("%s: %v", what, s.Aborted)
			}
		}
		read(disk, "in the rebuild")
		for _, s := range crashfs.Survivals(uint64(n), 6) {
			read(disk.CrashClone(s), fmt.Sprintf("cut after %d operations, %v", n/2, s))
			killed := disk.KillClone()
			read(killed, "killed")
			read(killed.CrashClone(s), fmt.Sprintf("killed after %d operations, then cut, %v", n/2, s))
		}
		if _, cut := disk.Cut(); !cut {
			break
		}
	}
}

// ST-8: where the indexes of many segments are missing, the log is walked once for all of them.
func TestManyTransactionIndexesAreRebuiltInOneWalk(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	l := mustOpen(t, testOptions(disk, 1))
	for i := range int32(40) {
		transact(t, l, 1, i, 10)
		end(t, l, Marker{ProducerID: 1, Commit: i%2 == 0})
		if err := l.Roll(); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, l)
	for i := range 40 {
		if err := disk.Remove(fmt.Sprintf("%s/%020d.txnindex", testDir, 2*i)); err != nil {
			t.Fatal(err)
		}
	}
	o := testOptions(disk, 2)
	o.Clean = true
	l = openNew(t, o)
	before := disk.Count(vfs.OpRead)
	for i := range int64(40) {
		want := []AbortedTransaction{}
		if i%2 == 1 {
			want = append(want, AbortedTransaction{1, 2 * i})
		}
		if got := abortedAt(t, l, 2*i, 1<<20); !slices.Equal(got, want) {
			t.Errorf("segment %d: %v, want %v", i, got, want)
		}
	}
	if reads := disk.Count(vfs.OpRead) - before; reads > 40*25 {
		t.Errorf("%d reads for 40 segments", reads)
	}
}

func resize(d vfs.FS, name string, size int64) error {
	f, err := d.OpenFile(name, 2, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// TX-8: where the aborted transactions can't be read, there are no records either: a
// consumer would take all of them. Reads of read_uncommitted go on.
func TestReadWithoutItsAbortedTransactionsFails(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	l := spanning(t, testOptions(disk, 1))
	defer l.Abandon()
	fault := disk.Fail(faultfs.Rule{Name: "*.txnindex", Times: -1})
	if got := abortedAt(t, l, 0, 1<<20); len(got) != 2 { // from the log, and kept in memory
		t.Error(got)
	}
	if fault.Hits() == 0 {
		t.Error("the index was not read")
	}
	disk = faultfs.New(crashfs.New())
	l = spanning(t, testOptions(disk, 1))
	defer l.Abandon()
	disk.Fail(faultfs.Rule{Name: "*.txnindex", Times: -1})
	disk.Fail(faultfs.Rule{Kinds: vfs.OpRead, Name: "*.log", Nth: 3, Times: -1})
	s, err := l.Read(0, 1<<20, true, kafka.ReadCommitted)
	if !errors.Is(err, kerr.KafkaStorageError) || s.Region.Length != 0 || s.Region.Release != nil {
		t.Error(s, err)
	}
}

// A log without aborted transactions is not looked through for them: it opens no segment for it, and allocates nothing.
func TestReadCommittedOfALogWithoutTransactions(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	o := testOptions(disk, 1)
	o.Config.SegmentBytes = 1000
	l := mustOpen(t, o)
	for range 50 {
		mustAppend(t, l, spec{size: 200})
	}
	mustClose(t, l)
	o = testOptions(disk, 2)
	o.Clean = true
	l = openNew(t, o)
	if got := abortedAt(t, l, 0, 1<<20); got == nil || len(got) != 0 {
		t.Error(got)
	}
	opened := 0
	for _, p := range *l.parts.Load() {
		if p.opened.Load() != nil {
			opened++
		}
	}
	if opened != 2 { // the newest, and the one that was read
		t.Errorf("%d segments are open", opened)
	}
	if n := testing.AllocsPerRun(100, func() {
		s, err := l.Read(0, 1<<20, true, kafka.ReadCommitted)
		if err != nil {
			t.Fatal(err)
		}
		s.Region.Release()
	}); n != 0 {
		t.Errorf("%v allocations a read", n)
	}
}

// TX-11: what retention or DeleteRecords takes from a transaction, index and all, leaves the rest of it aborted.
func TestDeletedPartOfAnAbortedTransaction(t *testing.T) {
	disk := crashfs.New()
	l := spanning(t, testOptions(disk, 1))
	start, err := l.CheckStart(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.MoveStart(start); err != nil {
		t.Fatal(err)
	}
	if got := names(t, disk); strings.Contains(got, " 1.") || !strings.Contains(got, "2.txnindex") {
		t.Fatal(got)
	}
	check := func(l *Log, what string) {
		if got := abortedAt(t, l, 3, 1<<20); !slices.Equal(got, []AbortedTransaction{{1, 0}}) {
			t.Errorf("%s: %v", what, got)
		}
	}
	check(l, "before the restart")
	l.Abandon()
	l = mustOpen(t, startingAt(testOptions(disk, 2), start))
	defer l.Abandon()
	check(l, "after it")
}

// TX-11: the last stable offset is the start while a transaction from below it is open.
func TestLogStartInsideAnOpenTransaction(t *testing.T) {
	disk := crashfs.New()
	l := mustOpen(t, testOptions(disk, 1))
	transact(t, l, 1, 0, 10)
	transact(t, l, 1, 1, 10)
	transact(t, l, 1, 2, 10)
	start, err := l.CheckStart(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	for boot := range int32(3) {
		if err := l.MoveStart(start); err != nil {
			t.Fatal(err)
		}
		if at := l.Offsets(); at.LogStart != 2 || at.LastStable != 2 {
			t.Errorf("boot %d: %+v", boot, at)
		}
		if s, err := l.Read(2, 1000, true, kafka.ReadCommitted); err != nil || s.Region.Length != 0 {
			t.Errorf("boot %d: %+v %v", boot, s, err)
		}
		l.Abandon()
		l = mustOpen(t, startingAt(testOptions(disk, 2+boot), start))
	}
	end(t, l, Marker{ProducerID: 1})
	if got := abortedAt(t, l, 2, 1<<20); len(got) != 1 || got[0].ProducerID != 1 {
		t.Error(got)
	}
	checkCommitted(t, l, "in the end")
	l.Abandon()
}
