package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

func names(t testing.TB, disk vfs.FS) string {
	t.Helper()
	entries, err := disk.ReadDir(testDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, strings.TrimLeft(strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())), "0")+filepath.Ext(e.Name()))
	}
	return strings.Join(all, " ")
}

func put(t testing.TB, disk vfs.FS, name, content string) {
	t.Helper()
	if err := vfs.WriteFileSync(disk, filepath.Join(testDir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ST-1: the directory is made at the first append and says whose it is.
func TestDirectoryIsMadeAtTheFirstAppend(t *testing.T) {
	disk := crashfs.New()
	l := openNew(t, testOptions(disk, 1))
	if got := l.Offsets(); got != (Offsets{}) || contents(t, l) != nil || names(t, disk) != "" {
		t.Error(got, names(t, disk))
	}
	mustAppend(t, l, spec{})
	content, err := vfs.ReadFile(disk, l.path(metadataName))
	if want := "version: 0\ntopic_id: " + testTopicID.String(); err != nil || string(content) != want {
		t.Errorf("%q, %v", content, err)
	}
}

// ST-1: a directory of another topic of that name is not opened; one whose id
// was torn by a power cut is, and gets it again.
func TestTopicIDOfTheDirectory(t *testing.T) {
	disk := crashfs.New()
	l := mustOpen(t, testOptions(disk, 1))
	mustAppend(t, l, spec{id: 3})
	mustClose(t, l)
	o := testOptions(disk, 2)
	o.TopicID = kafka.TopicID{9}
	_, err := Open(o)
	if wrong, ok := errors.AsType[*TopicIDError](err); !ok || wrong.Found != testTopicID || wrong.Want != o.TopicID {
		t.Fatal(err)
	}
	for _, torn := range []string{"", "version: 0\ntopic_id: ", "version: 0\ntopic_id: \x00\x00\x00"} {
		put(t, disk, metadataName, torn)
		l = mustOpen(t, testOptions(disk, 2))
		if l.Offsets().End == 0 {
			t.Fatal("the log is gone")
		}
		mustAppend(t, l, spec{})
		mustClose(t, l)
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), testTopicID.String()) {
			t.Errorf("%q was not written anew: %v", torn, err)
		}
	}
}

// A clean stop leaves everything, and the next start reads next to nothing.
func TestCleanStopAndStart(t *testing.T) {
	disk := crashfs.New()
	o := testOptions(disk, 1)
	o.Config.SegmentBytes = 3000
	l := mustOpen(t, o)
	for i := range int32(20) {
		mustAppend(t, l, spec{size: 500, id: 8, sequence: i})
	}
	mustClose(t, l)
	want := l.Offsets()
	if want.Flushed != 20 {
		t.Error(want)
	}
	counted := faultfs.New(disk)
	o2 := testOptions(counted, 2)
	o2.Clean = true
	l = mustOpen(t, o2)
	if got := l.Offsets(); got != want || l.o.Stats.Recovered.Load() != 0 {
		t.Error(got, want)
	}
	// ST-21: however many segments there are, few files are opened.
	if n, segments := counted.Count(vfs.OpOpen|vfs.OpCreate), len(bases(l)); n > 6 || segments < 4 {
		t.Errorf("%d opens for %d segments", n, segments)
	}
	if a := mustAppend(t, l, spec{size: 500, id: 8, sequence: 17}); !a.Duplicate || a.BaseOffset != 17 || !l.Flushed(a.End) {
		t.Error(a)
	}
	if got := contents(t, l); len(got) != 20 {
		t.Error(len(got))
	}
	// A log that was only read is left as it was: a stop with many of them is fast.
	before := counted.Count(vfs.OpChanges)
	mustClose(t, l)
	if n := counted.Count(vfs.OpChanges) - before; n != 0 {
		t.Error("changes by a log that was only read:", n)
	}
}

// ST-54: a torn tail is cut off, and what was before it stays.
func TestTornTailIsCutOff(t *testing.T) {
	disk := crashfs.New()
	l := mustOpen(t, testOptions(disk, 1))
	for i := range int32(3) {
		mustAppend(t, l, spec{size: 100, id: 8, sequence: i})
	}
	l.Abandon()
	name := l.path("00000000000000000000.log")
	f, err := disk.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	size, _ := f.Size()
	if _, err := f.WriteAt([]byte{1}, size-1); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	o := testOptions(disk, 2)
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	l = openNew(t, o)
	if got := l.Offsets(); got.End != 2 || got.Flushed != 0 {
		t.Error(got)
	}
	if !strings.Contains(log.String(), "cut off") {
		t.Error("the log does not tell:", log.String())
	}
	if a := mustAppend(t, l, spec{size: 100, id: 8, sequence: 2}); a.Duplicate || a.BaseOffset != 2 {
		t.Error("the state of the cut batch is still known:", a)
	}
}

// ST-9: a snapshot beyond the recovered end is removed, durably, before the first append.
func TestSnapshotBeyondTheEndIsRemoved(t *testing.T) {
	disk := crashfs.New()
	l := mustOpen(t, testOptions(disk, 1))
	mustAppend(t, l, spec{id: 8})
	mustClose(t, l)
	content, err := vfs.ReadFile(disk, l.path("00000000000000000001.snapshot"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, disk, "00000000000000000007.snapshot", string(content))
	put(t, disk, "00000000000000000007.log.cleaned", "half-written")
	put(t, disk, "00000000000000000000.txnindex.tmp", "half-written")
	put(t, disk, "00000000000000000003.index", "orphan")
	put(t, disk, "notes.txt", "not ours")
	l = mustOpen(t, testOptions(disk, 2))
	cut := disk.CrashClone(crashfs.LoseUnsynced)
	if got, want := names(t, cut), ".index .log .timeindex .txnindex 1.snapshot notes.txt partition.metadata"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	l.Abandon()
}

// ST-9: a snapshot that does not fit the log, or is damaged, is passed over
// for an older one or the log itself.
func TestSnapshotOfAnotherHistoryIsPassedOver(t *testing.T) {
	for name, spoil := range map[string]func(disk vfs.FS, mine, other string){
		"another history": func(disk vfs.FS, _, other string) { put(t, disk, "00000000000000000003.snapshot", other) },
		"torn":            func(disk vfs.FS, mine, _ string) { put(t, disk, "00000000000000000003.snapshot", mine[:len(mine)-3]) },
		"gone": func(disk vfs.FS, _, _ string) {
			_ = disk.Remove(filepath.Join(testDir, "00000000000000000003.snapshot"))
		},
		"whole": func(vfs.FS, string, string) {},
	} {
		var disks [2]*crashfs.FS
		var snapshots [2]string
		for i := range disks {
			disks[i] = crashfs.New()
			l := mustOpen(t, testOptions(disks[i], 1))
			for s := range int32(3) {
				mustAppend(t, l, spec{id: 8 + int64(i), sequence: s, timestamp: 1000})
			}
			mustClose(t, l)
			content, err := vfs.ReadFile(disks[i], l.path("00000000000000000003.snapshot"))
			if err != nil {
				t.Fatal(err)
			}
			snapshots[i] = string(content)
		}
		spoil(disks[0], snapshots[0], snapshots[1])
		o := testOptions(disks[0], 2)
		o.Clean = true
		l := openNew(t, o)
		if a := mustAppend(t, l, spec{id: 8, sequence: 1, timestamp: 1000}); !a.Duplicate || a.BaseOffset != 1 {
			t.Errorf("%s: %+v", name, a)
		}
		if _, known := l.producers.Lookup(9); known {
			t.Errorf("%s: the state is another log's", name)
		}
	}
}

// ST-34: an open removes what lies below the log start, and reads from there on.
func TestLogStart(t *testing.T) {
	disk := crashfs.New()
	o := testOptions(disk, 1)
	o.Config.SegmentBytes = 3000
	l := mustOpen(t, o)
	for i := range int32(20) {
		mustAppend(t, l, spec{size: 500, id: 8, sequence: i})
	}
	old := bases(l)
	mustClose(t, l)
	o = testOptions(disk, 2)
	o.LogStart = old[2] + 1
	l = mustOpen(t, o)
	if at := l.Offsets(); at.LogStart != old[2]+1 || at.End != 20 || bases(l)[0] != old[2] {
		t.Error(at, bases(l))
	}
	if _, err := l.Read(old[2], 1000, true, kafka.ReadUncommitted); !errors.Is(err, kerr.OffsetOutOfRange) {
		t.Error(err)
	}
	if got := readAt(t, l, old[2]+1, 10); len(got) != 1 || got[0].BaseOffset() != old[2]+1 {
		t.Error(got)
	}
	if a := mustAppend(t, l, spec{size: 500, id: 8, sequence: 16}); !a.Duplicate {
		t.Error(a)
	}
	l.Abandon()
	// A start beyond the end: what was moved past is gone (LogLoader).
	o.LogStart = 50
	l = mustOpen(t, o)
	if at := l.Offsets(); at.LogStart != 50 || at.End != 50 || names(t, disk) != metadataName {
		t.Error(at, names(t, disk))
	}
	if a := mustAppend(t, l, spec{}); a.BaseOffset != 50 || a.LogStart != 50 {
		t.Error(a)
	}
	mustClose(t, l)
}

// ST-14: a rotten sealed segment opens and serves what it can.
func TestRottenSealedSegment(t *testing.T) {
	disk := crashfs.New()
	o := testOptions(disk, 1)
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 3000, 1<<20
	l := mustOpen(t, o)
	for range 20 {
		mustAppend(t, l, spec{size: 500, timestamp: 1000})
	}
	size := int64(len(batch(t, spec{size: 500, timestamp: 1000})))
	mustClose(t, l)
	f, err := disk.OpenFile(l.path("00000000000000000000.log"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(make([]byte, 61), 2*size); err != nil {
		t.Fatal(err)
	}
	l = openNew(t, testOptions(disk, 2))
	if got := readAt(t, l, 1, 10); len(got) != 1 {
		t.Error("the good part:", got)
	}
	if _, err := l.Read(3, 1000, true, kafka.ReadUncommitted); !errors.Is(err, kerr.CorruptMessage) {
		t.Error("ST-63: ", err)
	}
	if got := readAt(t, l, bases(l)[1], 10); len(got) != 1 {
		t.Error("the next segment:", got)
	}
	mustAppend(t, l, spec{})
}

// ST-21: what opening costs does not grow with the number of segments.
func BenchmarkOpen(b *testing.B) {
	for _, segments := range []int{1, 100} {
		b.Run(fmt.Sprint(segments), func(b *testing.B) {
			o := osDisk(b, testOptions(nil, 1))
			o.Config.SegmentBytes = 2000
			l := mustOpen(b, o)
			for len(bases(l)) < segments {
				mustAppend(b, l, spec{size: 1500})
			}
			mustClose(b, l)
			o.Clean = true
			b.ReportAllocs()
			for b.Loop() {
				mustClose(b, mustOpen(b, o))
			}
		})
	}
}

// ST-54: what a killed process left reaches the disk by the timer, also if
// nobody appends.
func TestTimerFlushesWhatAKillLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := crashfs.New()
		l := mustOpen(t, testOptions(disk, 1))
		mustAppend(t, l, spec{})
		disk = disk.KillClone()
		l.Abandon()
		o := testOptions(disk, 2)
		o.FsyncInterval = 500 * time.Millisecond
		l = mustOpen(t, o)
		defer l.Abandon()
		<-time.After(501 * time.Millisecond)
		synctest.Wait()
		if at := l.Offsets(); at.Flushed != 1 {
			t.Error(at)
		}
		cut := openNew(t, testOptions(disk.CrashClone(crashfs.LoseUnsynced), 3))
		if at := cut.Offsets(); at.End != 1 {
			t.Error("after a power cut:", at)
		}
	})
}
