package commitlog

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// retained is a log of 10 batches, segments at 0, 8 and 16, whose newest records have the times 1031, 1071, 1091.
func retained(t testing.TB, bytes, ms int64) *Log {
	t.Helper()
	l := smallSegments(t, 10)
	l.SetConfig(limits(l.config.Load(), bytes, ms))
	return l
}

func limits(of *Config, bytes, ms int64) *Config {
	c := *of
	c.Delete, c.RetentionBytes, c.RetentionMs = true, bytes, ms
	return &c
}

// closed are the options of a log as it would be opened; the log is closed.
func closed(t testing.TB, l *Log, bytes, ms int64) *Options {
	t.Helper()
	mustClose(t, l)
	o := l.o
	o.Config = limits(o.Config, bytes, ms)
	return &o
}

// ST-30, ST-32, ST-33: what goes, by size, by age, by both; the same whether the log is open or not.
func TestExpired(t *testing.T) {
	size := int64(len(batch(t, spec{n: 2, size: 100, timestamp: 1000, id: 1}))) // segments of 4, 4 and 2
	for _, c := range []struct {
		what           string
		bytes, ms, now int64
		want           int64
	}{
		{"nothing is limited", -1, -1, 1 << 50, 0},
		{"as large as it may be", 10 * size, -1, 5000, 0},
		{"a byte too large", 10*size - 1, -1, 5000, 8},
		{"as large without the oldest", 6 * size, -1, 5000, 8},
		{"a byte larger without the oldest", 6*size - 1, -1, 5000, 16},
		{"the active segment stays", 0, -1, 5000, 16},
		{"as old as it may be", -1, 1000, 2031, 0},
		{"a millisecond older", -1, 1000, 2032, 8},
		{"all are old", -1, 0, 5000, 16},
		{"the clock is behind", -1, 0, 500, 0},
		{"by age, then by size", 6*size - 1, 1000, 2032, 16},
		{"by size, then by age", 10*size - 1, 1000, 2072, 16},
	} {
		l := retained(t, c.bytes, c.ms)
		if got, err := l.Expired(c.now); got != c.want || err != nil {
			t.Errorf("%s: %d, %v; want %d", c.what, got, err, c.want)
		}
		got, ok, err := ExpiredClosed(closed(t, l, c.bytes, c.ms), c.now)
		if got != c.want || ok != (c.want > 0) || err != nil {
			t.Errorf("%s, closed: %d, %v, %v; want %d", c.what, got, ok, err, c.want)
		}
	}
}

// A topic that is compacted alone is exempt, as is one with neither policy; the later records of a segment may be older.
func TestExpiredGoesByThePolicyAndTheLargestTimestamp(t *testing.T) {
	l := retained(t, 0, 0)
	cfg := *l.config.Load()
	cfg.Delete = false
	l.SetConfig(&cfg)
	if got, err := l.Expired(1 << 50); got != 0 || err != nil {
		t.Error(got, err)
	}
	o := testOptions(crashfs.New(), 1)
	l = openNew(t, o)
	for _, ts := range []int64{5000, 1000} {
		mustAppend(t, l, spec{timestamp: ts})
	}
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	l.SetConfig(limits(l.config.Load(), -1, 1000))
	for now, want := range map[int64]int64{5900: 0, 6001: 2} {
		if got, err := l.Expired(now); got != want || err != nil {
			t.Error(now, got, err)
		}
	}
}

// ST-31: a limit that is set beats the one of before, in both directions, at once.
func TestLimitsApplyAtOnce(t *testing.T) {
	l := retained(t, -1, 1000)
	for _, c := range []struct{ bytes, ms, want int64 }{{-1, -1, 0}, {-1, 1000, 16}, {-1, 1 << 40, 0}, {0, 1 << 40, 16}} {
		l.SetConfig(limits(l.config.Load(), c.bytes, c.ms))
		if got, err := l.Expired(5000); got != c.want || err != nil {
			t.Errorf("%+v: %d, %v", c, got, err)
		}
	}
}

// No record without a timestamp is older than its file (LogSegment.largestTimestamp).
func TestSegmentsWithoutTimestampsAreAsOldAsTheirFile(t *testing.T) {
	l := openNew(t, osDisk(t, testOptions(vfs.OS, 1)))
	mustAppend(t, l, spec{timestamp: -1})
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(l.o.Dir, segment.FileName(0, ".log")))
	if err != nil {
		t.Fatal(err)
	}
	written := info.ModTime().UnixMilli()
	l.SetConfig(limits(l.config.Load(), -1, 1000))
	for now, want := range map[int64]int64{written + 1000: 0, written + 1001: 1} {
		if got, err := l.Expired(now); got != want || err != nil {
			t.Error(now-written, got, err)
		}
	}
	o := closed(t, l, -1, 1000)
	for now, want := range map[int64]bool{written + 1000: false, written + 1001: true} {
		if _, got, err := ExpiredClosed(o, now); got != want || err != nil {
			t.Error(now-written, got, err)
		}
	}
}

// ST-33: a log that is not open is judged by its last time index entries. One that says too little
// costs no record: the segment is asked before it is given up, and its index is made anew.
func TestAWrongTimeIndexCostsNoRecord(t *testing.T) {
	for name, content := range map[string][]byte{
		"zeros": make([]byte, 12), "torn": {1, 2, 3}, "empty": {}, "too early": {7: 1, 11: 7},
	} {
		l := retained(t, -1, 1000)
		o := closed(t, l, -1, 1000)
		put(t, o.FS, segment.FileName(0, ".timeindex"), string(content))
		if start, ok, err := ExpiredClosed(o, 2031); ok || err != nil {
			t.Errorf("%s: %d, %v", name, start, err)
		}
		if start, ok, err := ExpiredClosed(o, 2032); start != 8 || !ok || err != nil {
			t.Errorf("%s, expired: %d, %v, %v", name, start, ok, err)
		}
	}
}

// ST-34: files below the start go from a directory whose log is not open, durably, and its open begins there.
func TestTrimClosed(t *testing.T) {
	l := retained(t, -1, 1000)
	o := closed(t, l, -1, 1000)
	disk := o.FS.(*crashfs.FS)
	o.LogStart = 16
	if err := TrimClosed(o); err != nil {
		t.Fatal(err)
	}
	for _, s := range crashfs.Survivals(5, 8) {
		if got := logFiles(t, disk.CrashClone(s)); !slices.Equal(got, []int64{16}) {
			t.Errorf("%v: segments %d", s, got)
		}
	}
	o.Clean = true
	if l = openNew(t, *o); l.Offsets().LogStart != 16 || l.Offsets().End != 20 {
		t.Error(l.Offsets())
	}
	if a := mustAppend(t, l, spec{n: 2, size: 100, timestamp: 1090, id: 1, sequence: 18}); !a.Duplicate {
		t.Error("the producer is not known:", a)
	}
	// ST-1: a directory of another topic is not touched, nor is one that is not there.
	other := *closed(t, l, -1, 0)
	other.TopicID, other.LogStart = [16]byte{9}, 100
	before := names(t, disk)
	if err := TrimClosed(&other); err != nil || names(t, disk) != before {
		t.Error(err, names(t, disk))
	}
	other.Dir = "none-0"
	if err := TrimClosed(&other); err != nil {
		t.Error(err)
	}
	if _, ok, err := ExpiredClosed(&other, 1<<50); ok || err != nil {
		t.Error(ok, err)
	}
}

// A roll on demand makes the newest records ones that retention may have; an empty segment is not rolled.
func TestRoll(t *testing.T) {
	l := retained(t, 0, -1)
	for range 2 {
		if err := l.Roll(); err != nil {
			t.Fatal(err)
		}
	}
	if got := logFiles(t, l.o.FS); !slices.Equal(got, []int64{0, 8, 16, 20}) {
		t.Error(got)
	}
	if got, err := l.Expired(0); got != 20 || err != nil {
		t.Error(got, err)
	}
	mustAppend(t, l, spec{})
	if empty := openNew(t, testOptions(crashfs.New(), 1)); empty.Roll() != nil || names(t, empty.o.FS) != "" {
		t.Error("an empty log was rolled")
	}
}

// ST-9: before an open after a kill, or the sweep of a log that is not open, removes
// segments, the directory is synced: the name of their successor may be of a process that was killed.
func TestNamesAreDurableBeforeWhatLiesBelowTheStartGoes(t *testing.T) {
	for what, trim := range map[string]func(Options) error{
		"open": func(o Options) error {
			l, err := Open(o)
			if err == nil {
				l.Abandon()
			}
			return err
		},
		"closed": func(o Options) error { return TrimClosed(&o) },
	} {
		inner := crashfs.New()
		l := mustOpen(t, testOptions(inner, 1))
		mustAppend(t, l, spec{})
		if err := l.Roll(); err != nil {
			t.Fatal(err)
		}
		l.Abandon() // killed: nothing has synced the name of the new segment
		disk := faultfs.New(inner)
		var ops []string
		disk.OnOp(func(op vfs.Op) {
			if op.Kind&(vfs.OpSyncDir|vfs.OpRemove) != 0 {
				ops = append(ops, op.Kind.String())
			}
		})
		if err := trim(startingAt(testOptions(disk, 2), 1)); err != nil {
			t.Fatal(what, err)
		}
		if len(ops) < 3 || ops[0] != vfs.OpSyncDir.String() || ops[1] != vfs.OpRemove.String() || ops[len(ops)-1] != vfs.OpSyncDir.String() {
			t.Errorf("%s: %v", what, ops)
		}
	}
}
