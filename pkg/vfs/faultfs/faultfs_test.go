package faultfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v, want %v", err, target)
	}
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func second[T any](_ T, err error) error { return err }

func open(t *testing.T, d vfs.FS, name string) vfs.File {
	t.Helper()
	f, err := d.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	ok(t, err)
	return f
}

func write(t *testing.T, f vfs.File, s string) {
	t.Helper()
	_, err := f.WriteAt([]byte(s), 0)
	ok(t, err)
}

func read(t *testing.T, d vfs.FS, name string) string {
	t.Helper()
	b, err := vfs.ReadFile(d, name)
	ok(t, err)
	return string(b)
}

// everything is each kind of operation once. The files "f" and "g" exist.
func everything(d vfs.FS, f vfs.File) map[vfs.Kind]func() error {
	return map[vfs.Kind]func() error{
		vfs.OpOpen:      func() error { return second(d.OpenFile("f", os.O_RDONLY, 0)) },
		vfs.OpCreate:    func() error { return second(d.OpenFile("new", os.O_RDWR|os.O_CREATE, 0o644)) },
		vfs.OpMkdir:     func() error { return d.Mkdir("d", 0o755) },
		vfs.OpRemove:    func() error { return d.Remove("g") },
		vfs.OpRemoveAll: func() error { return d.RemoveAll("g") },
		vfs.OpRename:    func() error { return d.Rename("g", "h") },
		vfs.OpStat:      func() error { return second(d.Stat("f")) },
		vfs.OpReadDir:   func() error { return second(d.ReadDir(".")) },
		vfs.OpSyncDir:   func() error { return d.SyncDir(".") },
		vfs.OpLock:      func() error { return second(d.Lock("LOCK")) },
		vfs.OpRead:      func() error { return second(f.ReadAt(make([]byte, 1), 0)) },
		vfs.OpWrite:     func() error { return second(f.WriteAt([]byte("X"), 0)) },
		vfs.OpTruncate:  func() error { return f.Truncate(0) },
		vfs.OpSync:      f.Sync,
		vfs.OpAllocate:  func() error { return f.Allocate(0, 1) },
		vfs.OpClose:     f.Close,
	}
}

// state is the names and contents of a disk.
func state(t *testing.T, d vfs.FS) string {
	t.Helper()
	entries, err := d.ReadDir(".")
	ok(t, err)
	s := ""
	for _, e := range entries {
		s += e.Name()
		if !e.IsDir() {
			s += "=" + read(t, d, e.Name())
		}
		s += " "
	}
	return s
}

// ST-72: each kind of operation can fail, with any error, and has then done nothing;
// or everything, if the rule wants that.
func TestEachKindOfOperationFails(t *testing.T) {
	for _, happens := range []bool{false, true} {
		for kind := vfs.OpOpen; kind <= vfs.OpClose && kind != 0; kind <<= 1 {
			inner, plain := crashfs.New(), crashfs.New()
			d := faultfs.New(inner)
			for _, disk := range []vfs.FS{d, plain} {
				write(t, open(t, disk, "f"), "1")
				write(t, open(t, disk, "g"), "2")
			}
			before := state(t, inner)
			do := everything(d, open(t, d, "f"))[kind]
			fault := d.Fail(faultfs.Rule{Kinds: kind, Err: syscall.ENOSPC, Happens: happens})
			err := do()
			is(t, err, syscall.ENOSPC)
			if pe, path := errors.AsType[*fs.PathError](err); !path || pe.Op != kind.String() || pe.Path == "" {
				t.Errorf("%v: %#v", kind, err)
			}
			equal(t, fault.Hits(), 1)
			equal(t, fault.Last().Kind, kind)
			if happens {
				ok(t, everything(plain, open(t, plain, "f"))[kind]())
				equal(t, state(t, inner), state(t, plain))
			} else {
				equal(t, state(t, inner), before)
				ok(t, everything(d, open(t, d, "f"))[kind]()) // once only
			}
		}
	}
}

func TestTheNthMatchFails(t *testing.T) {
	d := faultfs.New(crashfs.New())
	f := open(t, d, "f")
	fault := d.Fail(faultfs.Rule{Kinds: vfs.OpSync, Nth: 3, Times: 2})
	pattern := ""
	for range 6 {
		ok(t, d.SyncDir(".")) // another kind does not count
		if err := f.Sync(); err != nil {
			is(t, err, syscall.EIO)
			pattern += "x"
		} else {
			pattern += "."
		}
	}
	equal(t, pattern, "..xx..")
	equal(t, fault.Hits(), 2)
	equal(t, d.Count(vfs.OpSync), 6)
	equal(t, d.Count(vfs.OpSync|vfs.OpSyncDir), 12)
}

func TestARuleEndsWhenItIsRemoved(t *testing.T) {
	d := faultfs.New(crashfs.New())
	f := open(t, d, "f")
	first := d.Fail(faultfs.Rule{Kinds: vfs.OpSync, Times: -1})
	other := d.Fail(faultfs.Rule{Kinds: vfs.OpSync, Times: -1, Err: syscall.EROFS})
	for range 3 {
		is(t, f.Sync(), syscall.EIO)
	}
	first.Remove()
	is(t, f.Sync(), syscall.EROFS)
	other.Remove()
	ok(t, f.Sync())
	equal(t, first.Hits(), 3)
	equal(t, other.Hits(), 1)
}

func TestARuleMatchesTheEndOfThePath(t *testing.T) {
	for _, c := range []struct {
		pattern string
		matches bool
	}{
		{"", true}, {"0.log", true}, {"*.log", true}, {"demo-?/*.log", true}, {"data/demo-0/0.log", true},
		{"*.index", false}, {"log", false}, {"demo-1/*.log", false}, {"*/demo-0", false}, {"a/b/data/demo-0/0.log", false},
	} {
		d := faultfs.New(crashfs.New())
		ok(t, vfs.MkdirAll(d, "data/demo-0", 0o755))
		f := open(t, d, "data/demo-0/0.log")
		d.Fail(faultfs.Rule{Name: c.pattern})
		equal(t, f.Sync() != nil, c.matches)
	}
	d := faultfs.New(crashfs.New())
	open(t, d, "0.log.cleaned")
	d.Fail(faultfs.Rule{Name: "*.log"})
	is(t, d.Rename("0.log.cleaned", "0.log"), syscall.EIO)
}

func TestABadPatternPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	faultfs.New(crashfs.New()).Fail(faultfs.Rule{Name: "["})
}

// ST-62: a write that fails part-way.
func TestAShortWriteLeavesAPrefix(t *testing.T) {
	for short, want := range []string{"", "n", "ne", "new", "new", "new"} {
		inner := crashfs.New()
		d := faultfs.New(inner)
		f := open(t, d, "f")
		d.Fail(faultfs.Rule{Kinds: vfs.OpWrite, Err: syscall.ENOSPC, Short: short})
		n, err := f.WriteAt([]byte("new"), 0)
		is(t, err, syscall.ENOSPC)
		equal(t, n, len(want))
		equal(t, read(t, inner, "f"), want)
	}
}

// ST-61: the disk on which a failed fsync is believed when it is tried again.
func TestAFailingSyncCanDropTheDirtyData(t *testing.T) {
	inner := crashfs.New()
	d := faultfs.New(inner)
	f := open(t, d, "f")
	write(t, f, "old")
	ok(t, errors.Join(f.Sync(), d.SyncDir(".")))
	write(t, f, "new")
	d.Fail(faultfs.Rule{Kinds: vfs.OpSync, Then: crashfs.DropUnsynced})
	is(t, f.Sync(), syscall.EIO)
	ok(t, f.Sync())
	equal(t, read(t, d, "f"), "new")
	equal(t, read(t, inner.CrashClone(crashfs.LoseUnsynced), "f"), "old")
	equal(t, read(t, inner.CrashClone(crashfs.KeepUnsynced), "f"), "old")
}

func TestAFailingSyncOfADirectoryCanDropTheNames(t *testing.T) {
	inner := crashfs.New()
	d := faultfs.New(inner)
	f := open(t, d, "f")
	ok(t, f.Sync())
	d.Fail(faultfs.Rule{Kinds: vfs.OpSyncDir, ThenDir: crashfs.DropUnsyncedNames})
	is(t, d.SyncDir("."), syscall.EIO)
	ok(t, d.SyncDir("."))
	equal(t, state(t, d), "f= ")
	equal(t, state(t, inner.CrashClone(crashfs.KeepUnsynced)), "")
}

// ST-60: a full disk refuses what needs room, until there is some.
func TestAFullDiskRefusesWhatNeedsRoom(t *testing.T) {
	d := faultfs.New(crashfs.New())
	f := open(t, d, "f")
	write(t, f, "content")
	ok(t, d.Mkdir("dir", 0o755))
	d.SetFull(true)
	for _, refused := range []error{
		second(f.WriteAt([]byte("x"), 0)), f.Truncate(100), f.Allocate(0, 10), d.Mkdir("d", 0o755),
		second(d.OpenFile("new", os.O_RDWR|os.O_CREATE, 0o644)), second(d.Lock("LOCK")),
		vfs.WriteFileSync(d, "f", nil, 0o644), vfs.MkdirAll(d, "a/b", 0o755),
	} {
		is(t, refused, syscall.ENOSPC)
	}
	ok(t, f.Sync())
	ok(t, f.Truncate(3))
	ok(t, d.SyncDir("."))
	ok(t, d.Rename("f", "g"))
	is(t, d.Mkdir("dir", 0o755), fs.ErrExist)
	equal(t, read(t, d, "g"), "con")
	open(t, d, "g") // it is there
	ok(t, d.Remove("g"))
	d.SetFull(false)
	write(t, open(t, d, "f"), "x")
}

func TestTheHookSeesEveryOperation(t *testing.T) {
	d := faultfs.New(crashfs.New())
	var ops []string
	d.OnOp(func(op vfs.Op) {
		d.Count(op.Kind) // no lock is held
		ops = append(ops, op.String())
	})
	ok(t, vfs.WriteFileSync(d, "f", []byte("abc"), 0o644))
	read(t, d, "f")
	equal(t, fmt.Sprint(ops), "[create f.tmp write f.tmp at 0+3 sync f.tmp close f.tmp rename f.tmp to f syncdir . "+
		"open f read f at 0+3 close f]")
}

// A sendfile(2) would read past the rules.
func TestNoFileHasADescriptor(t *testing.T) {
	f, err := faultfs.New(vfs.OS).OpenFile(os.DevNull, os.O_RDWR, 0)
	ok(t, err)
	_, has := f.Fd()
	equal(t, has, false)
	ok(t, f.Close())
}
