package crashfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// workload is one of each operation that changes the disk.
func workload(d *FS) error {
	err := vfs.MkdirAll(d, "data/demo-0", 0o755)
	if err != nil {
		return err
	}
	f, err := d.OpenFile("data/demo-0/0.log", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, 1000), 0)
	return errors.Join(err, f.Truncate(900), f.Sync(), d.SyncDir("data/demo-0"),
		d.Rename("data/demo-0", "data/x"), d.RemoveAll("data/x"))
}

var workloadOps = []string{
	"mkdir data", "syncdir .", "mkdir data/demo-0", "syncdir data", "create data/demo-0/0.log",
	"write data/demo-0/0.log at 0+1000", "truncate data/demo-0/0.log to 900", "sync data/demo-0/0.log", "syncdir data/demo-0",
	"rename data/demo-0 to data/x", "remove data/x/0.log", "remove data/x",
}

// ST-72: every operation can be swept, and says which it is.
func TestOperationsAreCountedAndNamed(t *testing.T) {
	d := New()
	var ops []string
	d.OnOp(func(op vfs.Op) {
		equal(t, d.CrashClone(KeepUnsynced).Count(), 0) // no lock is held
		ops = append(ops, op.String())
	})
	ok(t, workload(d))
	equal(t, fmt.Sprint(ops), fmt.Sprint(workloadOps))
	equal(t, d.Count(), len(workloadOps))
}

func TestTheHookSeesTheDiskBeforeTheOperation(t *testing.T) {
	d := New()
	f := durableFile(t, d, "f", "")
	d.OnOp(func(vfs.Op) { equal(t, read(t, d, "f"), "") })
	write(t, f, "x", 0)
	equal(t, read(t, d, "f"), "x")
}

// ST-72: the power can be cut after each operation.
func TestThePowerGoesAfterTheNthOperation(t *testing.T) {
	for n, name := range workloadOps {
		d := New()
		d.StopAfter(n)
		if err := workload(d); !errors.Is(err, ErrPowerLost) {
			t.Errorf("error %v, want %v", err, ErrPowerLost)
		}
		op, cut := d.Cut()
		equal(t, op.String(), name)
		equal(t, cut, true)
		equal(t, d.Count(), n)
	}
	d := New()
	d.StopAfter(len(workloadOps))
	ok(t, workload(d))
	_, cut := d.Cut()
	equal(t, cut, false)
}

func TestWithoutPowerEverythingFails(t *testing.T) {
	d := New()
	ok(t, d.Mkdir("d", 0o755))
	f := durableFile(t, d, "f", "x")
	l, err := d.Lock("LOCK")
	ok(t, err)
	d.StopAfter(0)
	_, err = d.ReadDir("d")
	ok(t, err) // it is the first change that finds the power gone
	for i, err := range []error{
		d.Mkdir("e", 0o755), d.Remove("f"), d.RemoveAll("f"), d.RemoveAll("no"), d.Rename("f", "g"), d.SyncDir("."),
		f.Sync(), f.Truncate(0), f.Allocate(0, 1),
		second(f.Size()), second(f.ReadAt(make([]byte, 1), 0)), second(f.WriteAt(nil, 0)),
		second(d.OpenFile("f", os.O_RDONLY, 0)), second(d.OpenFile("g", os.O_CREATE|os.O_RDWR, 0o644)),
		second(d.Stat("f")), second(d.ReadDir("d")), second(d.Lock("LOCK")),
	} {
		if !errors.Is(err, ErrPowerLost) {
			t.Errorf("%d: error %v, want %v", i, err, ErrPowerLost)
		}
		if _, path := errors.AsType[*fs.PathError](err); i != 4 && !path {
			t.Errorf("%d: a %T, want a PathError", i, err)
		}
	}
	ok(t, f.Close())
	ok(t, l.Close())
	after := d.CrashClone(LoseUnsynced)
	equal(t, ls(t, after, "."), "d/ f=x")
	ok(t, after.Mkdir("e", 0o755)) // it has power
	d.StopAfter(-1)
	ok(t, d.Mkdir("e", 0o755))
}

func second[T any](_ T, err error) error { return err }

func TestAClonesAndItsOriginalAreIndependent(t *testing.T) {
	d := New()
	f := durableFile(t, d, "f", "original")
	for _, clone := range []*FS{d.CrashClone(KeepUnsynced), d.KillClone()} {
		write(t, f, "ORIGINAL", 0)
		write(t, openFile(t, clone, "f"), "clone", 0)
		ok(t, clone.Mkdir("d", 0o755))
		equal(t, ls(t, d, "."), "f=ORIGINAL")
		equal(t, ls(t, clone, "."), "d/ f=clonenal")
		write(t, f, "original", 0)
	}
}

// ST-53: a kill loses nothing that was written. ST-54: and makes nothing durable.
func TestAKillLosesNothingAndSyncsNothing(t *testing.T) {
	d := New()
	f := durableFile(t, d, "f", "synced")
	write(t, f, "WRITTEN", 0)
	synced(t, d, "g", "1")
	killed := d.KillClone()
	write(t, openFile(t, d.KillClone(), "f"), "of another clone", 0)
	for left := range seen(d, 100, func(after *FS) string { return read(t, after, "f") }) {
		if strings.Contains(left, "clone") {
			t.Fatalf("a clone shares its sectors: %q", left)
		}
	}
	equal(t, ls(t, killed, "."), "f=WRITTEN g=1")
	equal(t, ls(t, killed.CrashClone(LoseUnsynced), "."), "f=synced")
	again := openFile(t, killed, "f")
	ok(t, again.Sync()) // the new process need not have written it
	ok(t, killed.SyncDir("."))
	equal(t, ls(t, killed.CrashClone(LoseUnsynced), "."), "f=WRITTEN g=1")
}

// ST-4: no lock outlives its process.
func TestALockIsFreeAfterACrash(t *testing.T) {
	d := New()
	l, err := d.Lock("LOCK")
	ok(t, err)
	for _, clone := range []*FS{d.CrashClone(KeepUnsynced), d.CrashClone(LoseUnsynced), d.KillClone()} {
		again, err := clone.Lock("LOCK")
		ok(t, err)
		ok(t, again.Close())
	}
	ok(t, l.Close())
}

func TestASeedGivesTheSameDiskEachTime(t *testing.T) {
	d := New()
	for i := range 20 {
		name := fmt.Sprint("f", i)
		write(t, openFile(t, d, name), string(bytes.Repeat([]byte("x"), 300*i)), 0)
	}
	different := map[string]bool{}
	for _, s := range Survivals(7, 20) {
		first := ls(t, d.CrashClone(s), ".")
		different[first] = true
		for range 5 {
			if ls(t, d.CrashClone(s), ".") != first {
				t.Fatalf("%v gives another disk", s)
			}
		}
	}
	if len(different) < 15 {
		t.Errorf("20 survivals gave %d disks", len(different))
	}
	equal(t, fmt.Sprint(Survivals(7, 3)), "[crashfs.LoseUnsynced crashfs.KeepUnsynced crashfs.Random(458754)]")
	equal(t, len(Survivals(7, 1)), 1)
}

func TestADiskServesSeveralGoroutinesWhileItIsCloned(t *testing.T) {
	d := New()
	var wg sync.WaitGroup
	for i := range 4 {
		f := openFile(t, d, fmt.Sprint("f", i))
		wg.Go(func() {
			b := make([]byte, 100)
			for j := range 100 {
				_, err := f.WriteAt(b, int64(j*100))
				_, readErr := f.ReadAt(b, 0)
				if err := errors.Join(err, readErr, f.Sync(), d.SyncDir(".")); err != nil && !errors.Is(err, io.EOF) {
					t.Error(err)
				}
			}
		})
	}
	for seed := range uint64(50) {
		ls(t, d.CrashClone(Random(seed)), ".")
	}
	wg.Wait()
}

func BenchmarkAppendAndSync(b *testing.B) {
	d := New()
	f, err := d.OpenFile("f", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		b.Fatal(err)
	}
	record := make([]byte, 1000)
	off := int64(0)
	for b.Loop() {
		if _, err := f.WriteAt(record, off); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		if off += 1000; off > 1<<24 {
			off = 0
		}
	}
}
