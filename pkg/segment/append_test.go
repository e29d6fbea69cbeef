package segment

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// ST-5: a .log file is the batches, one after another, as they came.
func TestLogFileIsTheConcatenationOfItsBatches(t *testing.T) {
	o, _ := options(newDisk(t))
	m := sealed(t, o, 100, 50, 700)
	if !bytes.Equal(content(t, o, 100, LogSuffix), m.bytes()) {
		t.Fatal("the file is not what was appended")
	}
}

// ST-62: a write that fails part-way leaves nothing, and the next one succeeds.
func TestFailedWriteIsCutBack(t *testing.T) {
	for _, short := range []int{0, 1, 61, 300, 700} {
		disk := faultfs.New(newDisk(t))
		o, _ := options(disk)
		m := &model{}
		s := create(t, o, 0)
		fill(t, s, m, 3, 700)
		disk.Fail(faultfs.Rule{Kinds: vfs.OpWrite, Name: "*.log", Err: syscall.ENOSPC, Short: short})
		b := batch(m.next(0), 2, 701, 5)
		if err := s.Append(b, 4096); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrTorn) {
			t.Fatalf("append on a full disk: %v", err)
		}
		m.check(t, s)
		if got := content(t, o, 0, LogSuffix); !bytes.Equal(got, m.bytes()) {
			t.Fatalf("short %d: the file has %d bytes, want %d", short, len(got), m.size)
		}
		fill(t, s, m, 3, 650)
		m.check(t, s)
		ok(t, s.Close())
	}
}

// ST-62: if the cut fails too, the segment takes no more; what was there stays readable.
func TestTornSegmentRefusesFurtherWrites(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	m := &model{}
	s := create(t, o, 0)
	fill(t, s, m, 3, 700)
	disk.Fail(faultfs.Rule{Kinds: vfs.OpWrite, Name: "*.log", Short: 200})
	disk.Fail(faultfs.Rule{Kinds: vfs.OpTruncate})
	b := batch(m.next(0), 1, 700, 5)
	err := s.Append(b, 4096)
	if !errors.Is(err, ErrTorn) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("first: %v", err)
	}
	if err := s.Append(b, 4096); !errors.Is(err, ErrTorn) {
		t.Fatalf("second: %v", err)
	}
	if err := s.Seal(); !errors.Is(err, ErrTorn) {
		t.Fatalf("seal: %v", err)
	}
	m.check(t, s)
	ok(t, s.Close())

	// The next start cuts what could not be cut now.
	s, r, err := Recover(o, 0, false, 0, nil)
	ok(t, err)
	if r.Cut != 200 || r.Next != m.next(0) {
		t.Fatalf("recovered %+v", r)
	}
	m.check(t, s)
	ok(t, s.Close())
}

// A reservation that fails is no failed append.
func TestFailedAllocationDoesNotFailTheAppend(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	fault := disk.Fail(faultfs.Rule{Kinds: vfs.OpAllocate, Times: -1, Err: syscall.ENOSPC})
	m := &model{}
	s := create(t, o, 0)
	fill(t, s, m, 40, 64<<10)
	if hits := fault.Hits(); hits == 0 || hits > 4 {
		t.Fatalf("%d allocations tried for 3 MiB", hits)
	}
	m.check(t, s)
	ok(t, s.Close())
}

// Space is reserved in growing steps; nothing for a small partition. Seal and
// Close give back what was not used.
func TestAllocationGrowsWithTheSegmentAndIsTrimmed(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	s := create(t, o, 0)
	m := &model{}
	fill(t, s, m, 60, 4096)
	if n := disk.Count(vfs.OpAllocate); n != 0 {
		t.Fatalf("%d allocations for a small partition", n)
	}
	fill(t, s, m, 120, 64<<10)
	if n := disk.Count(vfs.OpAllocate); n < 3 || n > 8 {
		t.Fatalf("%d allocations for 8 MiB", n)
	}
	if s.allocated <= s.Size() {
		t.Fatal("nothing is allocated ahead")
	}
	before := disk.Count(vfs.OpTruncate)
	ok(t, s.trim())
	if disk.Count(vfs.OpTruncate) != before+1 || s.allocated != s.Size() {
		t.Fatal("not trimmed")
	}
	ok(t, s.Seal())
	ok(t, s.Close())
}

func TestAppendRefusesWhatIsNoNextBatch(t *testing.T) {
	o, _ := options(newDisk(t))
	m := &model{}
	s := create(t, o, 100)
	fill(t, s, m, 3, 700)
	negative := batch(200, 1, 700, 1)
	put32(negative[23:], 0xffffffff)
	for what, b := range map[string]record.Batch{
		"less than a header": make(record.Batch, 60),
		"part of a batch":    batch(200, 1, 700, 1)[:699],
		"an old offset":      batch(m.next(100)-1, 1, 700, 1),
		"below the base":     batch(5, 1, 700, 1),
		"a negative delta":   negative,
		"too far":            batch(100+1<<31, 1, 700, 1),
	} {
		if err := s.Append(b, 4096); err == nil {
			t.Errorf("%s was appended", what)
		}
	}
	m.check(t, s)
	// ST-6: the log is told before.
	if s.IndexFull(100+1<<31-1) || !s.IndexFull(100+1<<31) {
		t.Error("IndexFull is not at 32 bits")
	}
	ok(t, s.Close())
}

// ST-61: a failed sync is told apart from a full disk.
func TestFailedSyncIsErrSync(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	s := create(t, o, 0)
	fill(t, s, &model{}, 3, 700)
	disk.Fail(faultfs.Rule{Kinds: vfs.OpSync, Name: "*.log"})
	if err := s.Flush(); !errors.Is(err, ErrSync) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("flush: %v", err)
	}
	disk.Fail(faultfs.Rule{Kinds: vfs.OpSync, Name: "*.log"})
	if err := s.Seal(); !errors.Is(err, ErrSync) {
		t.Fatalf("seal: %v", err)
	}
	ok(t, s.Close())
}

// A roll on a full disk fails without harm: the segment goes on and can be sealed later.
func TestSealCanBeTriedAgainAfterAFullDisk(t *testing.T) {
	for _, name := range []string{"*.index", "*.timeindex", "*.txnindex"} {
		disk := faultfs.New(newDisk(t))
		o, _ := options(disk)
		m := &model{}
		s := create(t, o, 0)
		fill(t, s, m, 30, 700)
		disk.Fail(faultfs.Rule{Kinds: vfs.OpCreate | vfs.OpWrite, Name: name, Err: syscall.ENOSPC})
		if err := s.Seal(); !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrSync) {
			t.Fatalf("%s: seal: %v", name, err)
		}
		fill(t, s, m, 30, 700)
		m.check(t, s)
		ok(t, s.Seal())
		m.check(t, s)
		ok(t, s.Close())
		s = must[*Segment](t)(Open(o, 0))
		m.check(t, s)
		ok(t, s.Close())
	}
}

// ST-8: .txnindex is made at the roll, so that missing and empty differ.
func TestSealMakesAllFilesAndTakesNoMore(t *testing.T) {
	o, _ := options(newDisk(t))
	s := create(t, o, 0)
	m := &model{}
	fill(t, s, m, 3, 700)
	ok(t, s.Seal())
	if got := strings.Join(names(t, o), " "); got != "00000000000000000000.index 00000000000000000000.log "+
		"00000000000000000000.timeindex 00000000000000000000.txnindex" {
		t.Fatal(got)
	}
	if err := s.Append(batch(50, 1, 100, 1), 4096); !errors.Is(err, ErrSealed) {
		t.Fatal(err)
	}
	ok(t, s.Flush())
	ok(t, s.Seal())
	m.check(t, s)
	ok(t, s.Close())
}

// A sealed segment is durable without any further sync but the directory's.
func TestSealedSegmentSurvivesAPowerCut(t *testing.T) {
	disk := newDisk(t)
	o, _ := options(disk)
	m := sealed(t, o, 0, 100, 700)
	o, log := options(disk.CrashClone(crashfs.LoseUnsynced))
	s := must[*Segment](t)(Open(o, 0))
	m.check(t, s)
	if log.Len() > 0 {
		t.Fatalf("logged: %s", log)
	}
	ok(t, s.Close())
}

func benchmarkAppend(b *testing.B, size int) {
	o := osOptions(b)
	s := create(b, o, 0)
	data := batch(0, 10, size, 1)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	base := int64(0)
	for b.Loop() {
		if s.Size() > 256<<20 {
			ok(b, s.Remove())
			s = create(b, o, base)
		}
		data.SetBaseOffset(base)
		data.SetMaxTimestamp(base)
		if err := s.Append(data, 4096); err != nil {
			b.Fatal(err)
		}
		base += 10
	}
	ok(b, s.Remove())
}

func BenchmarkAppend4KiB(b *testing.B)  { benchmarkAppend(b, 4<<10) }
func BenchmarkAppend64KiB(b *testing.B) { benchmarkAppend(b, 64<<10) }
