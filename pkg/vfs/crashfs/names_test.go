package crashfs

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// ls is the names of a directory and what the files contain.
func ls(t *testing.T, d *FS, dir string) string {
	t.Helper()
	entries, err := d.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	ok(t, err)
	var all []string
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			all = append(all, name+"/")
		} else {
			all = append(all, name+"="+read(t, d, dir+"/"+name))
		}
	}
	return strings.Join(all, " ")
}

// exactly checks that random power cuts leave these states, each of them, and no other.
func exactly(t *testing.T, d *FS, dir string, want ...string) {
	t.Helper()
	all := seen(d, 400, func(after *FS) string { return ls(t, after, dir) })
	for _, w := range want {
		if all[w] == 0 {
			t.Errorf("no power cut left %q", w)
		}
		delete(all, w)
	}
	if len(all) != 0 {
		t.Errorf("impossible: %v", all)
	}
}

// synced makes a file whose content survives and whose name does not.
func synced(t *testing.T, d *FS, name, content string) {
	t.Helper()
	f := openFile(t, d, name)
	write(t, f, content, 0)
	ok(t, f.Sync())
}

// ST-70: every name created since its directory's last fsync is gone or back.
func TestSyncingAFileDoesNotMakeItsNameDurable(t *testing.T) {
	d := New()
	synced(t, d, "a", "1")
	synced(t, d, "b", "2")
	equal(t, ls(t, d.CrashClone(LoseUnsynced), "."), "")
	equal(t, ls(t, d.CrashClone(KeepUnsynced), "."), "a=1 b=2")
	exactly(t, d, ".", "", "a=1", "b=2", "a=1 b=2")
	ok(t, d.SyncDir("."))
	exactly(t, d, ".", "a=1 b=2")
}

func TestADurableNameMayNameAnEmptyFile(t *testing.T) {
	d := New()
	write(t, openFile(t, d, "f"), "x", 0)
	ok(t, d.SyncDir("."))
	exactly(t, d, ".", "f=", "f=x", "f=\x00")
}

// ST-70: every name removed since its directory's last fsync is gone or back.
func TestARemovedNameMayComeBack(t *testing.T) {
	d := New()
	durableFile(t, d, "f", "old")
	ok(t, d.Remove("f"))
	exactly(t, d, ".", "", "f=old")
	synced(t, d, "f", "new")
	exactly(t, d, ".", "", "f=old", "f=new")
	ok(t, d.SyncDir("."))
	exactly(t, d, ".", "f=new")
}

// ST-70: every name renamed since its directory's last fsync is gone or back.
func TestARenameMayBeLostOrHalfDone(t *testing.T) {
	d := New()
	durableFile(t, d, "old", "1")
	ok(t, d.Rename("old", "new"))
	equal(t, ls(t, d.CrashClone(LoseUnsynced), "."), "old=1")
	equal(t, ls(t, d.CrashClone(KeepUnsynced), "."), "new=1")
	exactly(t, d, ".", "old=1", "new=1", "new=1 old=1")
	ok(t, d.SyncDir("."))
	exactly(t, d, ".", "new=1")
}

func TestARenameOverAFileKeepsOneOfTheTwo(t *testing.T) {
	d := New()
	durableFile(t, d, "f", "old")
	synced(t, d, "f.tmp", "new")
	ok(t, d.Rename("f.tmp", "f"))
	exactly(t, d, ".", "f=old", "f=new", "f=old f.tmp=new", "f=new f.tmp=new")
}

func TestARenameDoesNotRemoveAnotherFileOfTheOldName(t *testing.T) {
	d := New()
	durableFile(t, d, "tmp", "1")
	ok(t, d.Remove("tmp"))
	synced(t, d, "tmp", "2")
	ok(t, d.Rename("tmp", "f"))
	all := seen(d, 400, func(after *FS) string { return ls(t, after, ".") })
	if all["f=2 tmp=1"] == 0 {
		t.Errorf("never was only the removal lost: %v", all)
	}
}

func TestNameOperationsSurviveInAnyOrder(t *testing.T) {
	d := New()
	synced(t, d, "a", "1")
	ok(t, d.Rename("a", "b")) // may survive without the creation of a
	synced(t, d, "c", "2")
	exactly(t, d, ".", "", "a=1", "b=1", "c=2", "a=1 b=1", "a=1 c=2", "b=1 c=2", "a=1 b=1 c=2")
}

func TestARenameBetweenDirectoriesMayLoseBothNames(t *testing.T) {
	d := New()
	for _, dir := range []string{"x", "y"} {
		ok(t, d.Mkdir(dir, 0o755))
	}
	synced(t, d, "x/f", "1")
	ok(t, d.SyncDir("x"))
	ok(t, d.SyncDir("."))
	ok(t, d.Rename("x/f", "y/f"))
	all := seen(d, 300, func(after *FS) string { return ls(t, after, "x") + "|" + ls(t, after, "y") })
	for _, want := range []string{"f=1|", "|f=1", "f=1|f=1", "|"} {
		if all[want] == 0 {
			t.Errorf("no power cut left %q", want)
		}
	}
}

func TestAFileIsLostWithADirectoryThatIsNotDurable(t *testing.T) {
	d := New()
	ok(t, d.Mkdir("d", 0o755))
	synced(t, d, "d/f", "1")
	ok(t, d.SyncDir("d"))
	exactly(t, d, "d", "-", "f=1")
	ok(t, d.SyncDir("."))
	exactly(t, d, "d", "f=1")
}

// The deletion of a topic: renamed, the parent synced, then removed.
func TestARemovedDirectoryMayComeBackWithSomeOfItsContent(t *testing.T) {
	d := New()
	ok(t, d.Mkdir("demo-0", 0o755))
	synced(t, d, "demo-0/0.log", "1")
	synced(t, d, "demo-0/0.index", "2")
	ok(t, d.SyncDir("demo-0"))
	ok(t, d.SyncDir("."))
	ok(t, d.Rename("demo-0", "demo-0-delete"))
	exactly(t, d, ".", "demo-0/", "demo-0-delete/") // never both: a directory has one name
	ok(t, d.SyncDir("."))
	ok(t, d.RemoveAll("demo-0-delete"))
	exactly(t, d, ".", "demo-0-delete/", "")
	exactly(t, d, "demo-0-delete", "-", "", "0.log=1", "0.index=2", "0.index=2 0.log=1")
}

func TestADirectoryMovedBetweenDirectoriesHasOneName(t *testing.T) {
	d := New()
	for _, dir := range []string{"x", "y", "x/d"} {
		ok(t, d.Mkdir(dir, 0o755))
	}
	ok(t, d.SyncDir("x"))
	ok(t, d.SyncDir("."))
	ok(t, d.Rename("x/d", "y/d"))
	for state := range seen(d, 200, func(after *FS) string { return ls(t, after, "x") + "|" + ls(t, after, "y") }) {
		if state == "d/|d/" {
			t.Error("the directory has two names")
		}
	}
}

// ST-61, ST-70: after a failed fsync of a directory a later one succeeds, and
// makes durable only what was done since.
func TestAFailedSyncDropsTheDirtyNames(t *testing.T) {
	d := New()
	durableFile(t, d, "old", "1")
	synced(t, d, "new", "2")
	ok(t, d.Remove("old"))
	DropUnsyncedNames(d, ".")
	equal(t, ls(t, d, "."), "new=2")
	synced(t, d, "later", "3")
	ok(t, d.SyncDir("."))
	equal(t, ls(t, d, "."), "later=3 new=2")
	exactly(t, d, ".", "later=3 old=1")
}
