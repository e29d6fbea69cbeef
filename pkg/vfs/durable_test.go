package vfs_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// sweepCuts cuts the power after every operation of a workload, with several
// survivals each. It returns the number of operations.
func sweepCuts(t *testing.T, setup, workload func(vfs.FS) error, check func(t *testing.T, after vfs.FS, err error)) int {
	t.Helper()
	for n := 0; ; n++ {
		disk := crashfs.New()
		ok(t, setup(disk))
		disk.StopAfter(n)
		err := workload(disk)
		for _, s := range crashfs.Survivals(uint64(n), 64) {
			check(t, disk.CrashClone(s), err)
			if t.Failed() {
				op, _ := disk.Cut()
				t.Fatalf("power cut after %d operations, before %q, %v", n, op, s)
			}
		}
		if _, cut := disk.Cut(); !cut {
			ok(t, err)
			return n
		}
	}
}

func TestReadFileReportsErrors(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	create(t, disk, "f", "content")
	for _, kind := range []vfs.Kind{vfs.OpOpen, vfs.OpRead} {
		fault := disk.Fail(faultfs.Rule{Kinds: kind})
		if _, err := vfs.ReadFile(disk, "f"); err == nil {
			t.Error(kind, "failed, no error")
		}
		equal(t, fault.Hits(), 1)
	}
}

// ST-70: a power cut leaves the old content or the new, and the new once it is promised.
func TestWriteFileSyncSurvivesAnyPowerCut(t *testing.T) {
	const before, after = "the old content", "the new content, which is longer"
	ops := sweepCuts(t,
		func(d vfs.FS) error { return vfs.WriteFileSync(d, "f", []byte(before), 0o644) },
		func(d vfs.FS) error { return vfs.WriteFileSync(d, "f", []byte(after), 0o644) },
		func(t *testing.T, d vfs.FS, err error) {
			got, readErr := vfs.ReadFile(d, "f")
			if readErr != nil || string(got) != after && (err == nil || string(got) != before) {
				t.Errorf("%q, %v after WriteFileSync returned %v", got, readErr, err)
			}
			// What the crash left lying about is in nobody's way.
			ok(t, vfs.WriteFileSync(d, "f", []byte("third"), 0o644))
			got, readErr = vfs.ReadFile(d, "f")
			ok(t, readErr)
			equal(t, string(got), "third")
		})
	equal(t, ops, 5)
}

// ST-70: the sweep catches a missing sync, or it proves nothing.
func TestSweepCatchesAMissingSync(t *testing.T) {
	for _, missing := range []vfs.Kind{vfs.OpSync, vfs.OpSyncDir} {
		caught := 0
		for seed := range uint64(64) {
			disk := crashfs.New()
			ok(t, vfs.WriteFileSync(disk, "f", []byte("old"), 0o644))
			lying := faultfs.New(disk)
			lying.Fail(faultfs.Rule{Kinds: missing, Err: errSkipped})
			if err := vfs.WriteFileSync(skipping{lying}, "f", []byte("new"), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := vfs.ReadFile(disk.CrashClone(crashfs.Random(seed)), "f")
			if err != nil || string(got) != "new" {
				caught++
			}
		}
		if caught == 0 {
			t.Errorf("no power cut showed that %s was missing", missing)
		}
	}
}

var errSkipped = errors.New("skipped")

// skipping is a disk on which a sync that fails with errSkipped was no sync,
// and nobody hears of it.
type skipping struct{ vfs.FS }

func (s skipping) SyncDir(name string) error { return skip(s.FS.SyncDir(name)) }

func (s skipping) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	return skippingFile{f}, err
}

type skippingFile struct{ vfs.File }

func (f skippingFile) Sync() error { return skip(f.File.Sync()) }

func skip(err error) error {
	if errors.Is(err, errSkipped) {
		return nil
	}
	return err
}

// ST-72: every operation fails once; the name holds the old or the new
// content, no temporary file stays, and no failure is kept quiet.
func TestWriteFileSyncReportsEveryFailure(t *testing.T) {
	for n := 1; ; n++ {
		disk := faultfs.New(crashfs.New())
		ok(t, vfs.WriteFileSync(disk, "f", []byte("old"), 0o644))
		fault := disk.Fail(faultfs.Rule{Nth: n})
		err := vfs.WriteFileSync(disk, "f", []byte("new"), 0o644)
		if fault.Hits() == 0 {
			ok(t, err)
			equal(t, n, 7) // create, write, sync, close, rename, syncdir
			return
		}
		if err == nil {
			t.Errorf("%s failed, no error", fault.Last())
		}
		got, err := vfs.ReadFile(disk, "f")
		ok(t, err)
		if string(got) != "old" && string(got) != "new" {
			t.Errorf("%q after %s failed", got, fault.Last())
		}
		names(t, disk, ".", "f")
	}
}

// ST-70: a directory that MkdirAll has promised survives, with its parents.
func TestMkdirAllSurvivesAnyPowerCut(t *testing.T) {
	ops := sweepCuts(t,
		func(d vfs.FS) error { return d.Mkdir("there", 0o755) }, // and not synced: a killed process left it
		func(d vfs.FS) error { return vfs.MkdirAll(d, "there/a/b/c", 0o755) },
		func(t *testing.T, d vfs.FS, err error) {
			fi, statErr := d.Stat("there/a/b/c")
			if err == nil && (statErr != nil || !fi.IsDir()) {
				t.Errorf("promised, but: %v", statErr)
			}
			ok(t, vfs.MkdirAll(d, "there/a/b/c", 0o755))
		})
	equal(t, ops, 7) // 3 mkdir, 4 syncdir
}

func TestMkdirAllOfAnExistingDirectorySyncsItsName(t *testing.T) {
	disk := crashfs.New()
	ok(t, disk.Mkdir("d", 0o755))
	ok(t, vfs.MkdirAll(disk, "d", 0o755))
	_, err := disk.CrashClone(crashfs.LoseUnsynced).Stat("d")
	ok(t, err)
	ok(t, vfs.MkdirAll(disk, "/", 0o755))
	ok(t, vfs.MkdirAll(disk, ".", 0o755))
}

// A data directory may be mounted below one that the broker must not read.
func TestMkdirAllNeedsNoPermissionOnAParentItDidNotMake(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	ok(t, vfs.MkdirAll(disk, "mnt/data", 0o755))
	disk.Fail(faultfs.Rule{Kinds: vfs.OpSyncDir, Name: "mnt", Times: -1, Err: os.ErrPermission})
	ok(t, vfs.MkdirAll(disk, "mnt/data", 0o755))
	is(t, vfs.MkdirAll(disk, "mnt/more", 0o755), fs.ErrPermission)
}

func TestMkdirAllReportsEveryFailure(t *testing.T) {
	for n := 1; ; n++ {
		disk := faultfs.New(crashfs.New())
		fault := disk.Fail(faultfs.Rule{Nth: n, Kinds: vfs.OpMkdir | vfs.OpSyncDir | vfs.OpStat})
		err := vfs.MkdirAll(disk, "a/b", 0o755)
		if fault.Hits() == 0 {
			ok(t, err)
			equal(t, n, 8) // 3 stat, 2 mkdir, 2 syncdir
			return
		}
		if err == nil {
			t.Errorf("%s failed, no error", fault.Last())
		}
	}
}

func TestACopyIsDurable(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	create(t, disk, "from", "content")
	ok(t, vfs.CopySynced(disk, "to", "from", 0o644))
	got, err := vfs.ReadFile(disk, "to")
	ok(t, err)
	equal(t, string(got), "content")
	for _, kind := range []vfs.Kind{vfs.OpOpen, vfs.OpRead, vfs.OpWrite, vfs.OpSync} {
		fault := disk.Fail(faultfs.Rule{Kinds: kind})
		if err := vfs.CopySynced(disk, "to", "from", 0o644); err == nil {
			t.Error(kind, "failed, no error")
		}
		equal(t, fault.Hits(), 1)
	}
}
