package vfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// ST-70: the disks of the tests behave as the real one, or what the tests
// prove on them is not about this program.
func TestDisksBehaveAlike(t *testing.T) {
	disks := map[string]func(t *testing.T) (vfs.FS, string){
		"OS": func(t *testing.T) (vfs.FS, string) { return vfs.OS, t.TempDir() },
		"crashfs": func(t *testing.T) (vfs.FS, string) {
			d := crashfs.New()
			ok(t, d.Mkdir("/data", 0o755))
			return d, "/data"
		},
		"crashfs after a crash": func(t *testing.T) (vfs.FS, string) {
			d := crashfs.New()
			ok(t, d.Mkdir("data", 0o755))
			return d.CrashClone(crashfs.KeepUnsynced), "data"
		},
		"faultfs": func(t *testing.T) (vfs.FS, string) { return faultfs.New(vfs.OS), t.TempDir() },
	}
	for disk, open := range disks {
		for _, c := range conformance {
			t.Run(disk+"/"+c.name, func(t *testing.T) {
				fsys, dir := open(t)
				c.test(t, fsys, func(name string) string { return filepath.Join(dir, name) })
			})
		}
	}
}

var conformance = []struct {
	name string
	test func(t *testing.T, fsys vfs.FS, at func(string) string)
}{
	{"a missing file is ErrNotExist", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		_, err := fsys.OpenFile(at("f"), os.O_RDWR, 0)
		is(t, err, fs.ErrNotExist)
		_, err = fsys.OpenFile(at("no/f"), os.O_RDWR|os.O_CREATE, 0o644)
		is(t, err, fs.ErrNotExist)
		_, err = fsys.Stat(at("f"))
		is(t, err, fs.ErrNotExist)
		_, err = fsys.ReadDir(at("d"))
		is(t, err, fs.ErrNotExist)
		is(t, fsys.Remove(at("f")), fs.ErrNotExist)
		is(t, fsys.Rename(at("f"), at("g")), fs.ErrNotExist)
		is(t, fsys.SyncDir(at("d")), fs.ErrNotExist)
		is(t, fsys.Mkdir(at("d/e"), 0o755), fs.ErrNotExist)
		ok(t, fsys.RemoveAll(at("d")))
		_, err = vfs.ReadFile(fsys, at("f"))
		is(t, err, fs.ErrNotExist)
	}},
	{"an existing file is ErrExist", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		create(t, fsys, at("f"), "x")
		_, err := fsys.OpenFile(at("f"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		is(t, err, fs.ErrExist)
		is(t, fsys.Mkdir(at("f"), 0o755), fs.ErrExist)
		ok(t, fsys.Mkdir(at("d"), 0o755))
		is(t, fsys.Mkdir(at("d"), 0o755), fs.ErrExist)
		is(t, fsys.Rename(at("f"), at("d")), fs.ErrExist)
		is(t, vfs.MkdirAll(fsys, at("f"), 0o755), fs.ErrExist)
	}},
	{"a file is no directory and the reverse", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		create(t, fsys, at("f"), "x")
		ok(t, fsys.Mkdir(at("d"), 0o755))
		for _, err := range []error{
			second(fsys.OpenFile(at("d"), os.O_RDWR, 0)),
			second(fsys.OpenFile(at("f/g"), os.O_RDWR|os.O_CREATE, 0o644)),
			second(fsys.ReadDir(at("f"))),
			second(fsys.Stat(at("f/g"))),
			fsys.Rename(at("d"), at("f")),
			fsys.Rename(at("d"), at("d/e")),
			vfs.MkdirAll(fsys, at("f/g"), 0o755),
		} {
			if err == nil {
				t.Error("no error")
			}
		}
	}},
	{"open creates, keeps and truncates", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		create(t, fsys, at("f"), "content")
		f := open(t, fsys, at("f"), os.O_RDWR|os.O_CREATE)
		equal(t, f.Name(), at("f"))
		content(t, f, "content")
		f2 := open(t, fsys, at("f"), os.O_RDWR|os.O_TRUNC)
		content(t, f2, "")
		content(t, f, "") // the same file
	}},
	{"a read reaches the end", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		create(t, fsys, at("f"), "0123456789")
		f := open(t, fsys, at("f"), os.O_RDONLY)
		for _, r := range []struct {
			off     int64
			len, n  int
			isEOF   bool
			content string
		}{
			{0, 10, 10, false, "0123456789"}, {4, 3, 3, false, "456"}, {8, 5, 2, true, "89"},
			{10, 1, 0, true, ""}, {1000, 1, 0, true, ""}, {10, 0, 0, false, ""},
		} {
			b := make([]byte, r.len)
			n, err := f.ReadAt(b, r.off)
			equal(t, n, r.n)
			equal(t, errors.Is(err, io.EOF), r.isEOF)
			equal(t, err == nil, !r.isEOF)
			equal(t, string(b[:n]), r.content)
		}
		if _, err := f.ReadAt(make([]byte, 1), -1); err == nil || errors.Is(err, io.EOF) {
			t.Error("read at -1:", err)
		}
	}},
	{"writes name their offset and may leave holes", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		f := open(t, fsys, at("f"), os.O_RDWR|os.O_CREATE)
		n, err := f.WriteAt([]byte("end"), 5000)
		ok(t, err)
		equal(t, n, 3)
		_, err = f.WriteAt([]byte("begin"), 0)
		ok(t, err)
		content(t, f, "begin"+string(make([]byte, 4995))+"end")
		_, err = f.WriteAt(nil, 9000)
		ok(t, err)
		size(t, f, 5003)
		if _, err := f.WriteAt([]byte("x"), -1); err == nil {
			t.Error("write at -1 succeeded")
		}
	}},
	{"a write does not keep the caller's buffer", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		f := open(t, fsys, at("f"), os.O_RDWR|os.O_CREATE)
		b := []byte("mine")
		_, err := f.WriteAt(b, 0)
		ok(t, err)
		copy(b, "gone")
		content(t, f, "mine")
	}},
	{"truncate cuts, and extends with zeros", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		f := open(t, fsys, at("f"), os.O_RDWR|os.O_CREATE)
		_, err := f.WriteAt(bytes.Repeat([]byte("x"), 2000), 0)
		ok(t, err)
		ok(t, f.Truncate(3))
		content(t, f, "xxx")
		ok(t, f.Truncate(1500))
		content(t, f, "xxx"+string(make([]byte, 1497)))
		ok(t, f.Truncate(2))
		_, err = f.WriteAt([]byte("y"), 4)
		ok(t, err)
		content(t, f, "xx\x00\x00y")
		if f.Truncate(-1) == nil {
			t.Error("truncated to -1")
		}
	}},
	{"allocate leaves the size alone", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		f := open(t, fsys, at("f"), os.O_RDWR|os.O_CREATE)
		_, err := f.WriteAt([]byte("abc"), 0)
		ok(t, err)
		ok(t, f.Allocate(0, 1<<20))
		ok(t, f.Allocate(1<<20, 0))
		content(t, f, "abc")
	}},
	{"a file that is open for reading is not written", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		create(t, fsys, at("f"), "x")
		f := open(t, fsys, at("f"), os.O_RDONLY)
		if _, err := f.WriteAt([]byte("y"), 0); err == nil {
			t.Error("written")
		}
		if f.Truncate(0) == nil {
			t.Error("truncated")
		}
		content(t, f, "x")
	}},
	{"a closed file is ErrClosed", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		f, err := fsys.OpenFile(at("f"), os.O_RDWR|os.O_CREATE, 0o644)
		ok(t, err)
		ok(t, f.Close())
		is(t, f.Close(), fs.ErrClosed)
		is(t, f.Sync(), fs.ErrClosed)
		is(t, f.Truncate(0), fs.ErrClosed)
		is(t, second(f.Size()), fs.ErrClosed)
		is(t, second(f.ReadAt(make([]byte, 1), 0)), fs.ErrClosed)
		is(t, second(f.WriteAt(make([]byte, 1), 0)), fs.ErrClosed)
	}},
	{"rename replaces a file, and open files stay", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		create(t, fsys, at("old"), "old")
		create(t, fsys, at("new"), "new")
		replaced := open(t, fsys, at("old"), os.O_RDWR)
		moved := open(t, fsys, at("new"), os.O_RDWR)
		ok(t, fsys.Rename(at("new"), at("old")))
		content(t, replaced, "old")
		_, err := moved.WriteAt([]byte("N"), 0)
		ok(t, err)
		content(t, open(t, fsys, at("old"), os.O_RDONLY), "New")
		_, err = fsys.Stat(at("new"))
		is(t, err, fs.ErrNotExist)
		ok(t, fsys.Rename(at("old"), at("old")))
	}},
	// The deletion of a topic renames the directory of each partition.
	{"rename moves a directory with its content", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		ok(t, fsys.Mkdir(at("demo-0"), 0o755))
		create(t, fsys, at("demo-0/0.log"), "records")
		f := open(t, fsys, at("demo-0/0.log"), os.O_RDWR)
		ok(t, fsys.Rename(at("demo-0"), at("demo-0.x-delete")))
		_, err := fsys.Stat(at("demo-0"))
		is(t, err, fs.ErrNotExist)
		content(t, open(t, fsys, at("demo-0.x-delete/0.log"), os.O_RDONLY), "records")
		ok(t, fsys.RemoveAll(at("demo-0.x-delete")))
		content(t, f, "records")
		names(t, fsys, at("."))
		ok(t, fsys.Mkdir(at("d"), 0o755))
		is(t, fsys.Rename(at("d"), at("d")), fs.ErrExist)
		names(t, fsys, at("."), "d")
	}},
	{"remove takes files and empty directories", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		ok(t, vfs.MkdirAll(fsys, at("a/b/c"), 0o755))
		create(t, fsys, at("a/b/f"), "x")
		is(t, fsys.Remove(at("a/b")), fs.ErrExist)
		ok(t, fsys.Remove(at("a/b/f")))
		ok(t, fsys.Remove(at("a/b/c")))
		ok(t, fsys.Remove(at("a/b")))
		names(t, fsys, at("a"))
		create(t, fsys, at("a/f"), "x")
		ok(t, fsys.RemoveAll(at("a")))
		names(t, fsys, at("."))
	}},
	{"a directory lists its names in order", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		for _, name := range []string{"b", "a", "10", "9", "B"} {
			create(t, fsys, at(name), "x")
		}
		ok(t, fsys.Mkdir(at("a.d"), 0o755))
		names(t, fsys, at("."), "10", "9", "B", "a", "a.d", "b")
		entries, err := fsys.ReadDir(at("."))
		ok(t, err)
		equal(t, entries[4].IsDir(), true)
		equal(t, entries[5].IsDir(), false)
	}},
	{"stat tells name, size and kind", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		create(t, fsys, at("f"), "12345")
		fi, err := fsys.Stat(at("f"))
		ok(t, err)
		equal(t, fi.Name(), "f")
		equal(t, fi.Size(), 5)
		equal(t, fi.Mode().IsRegular(), true)
		equal(t, fi.ModTime().IsZero(), false)
		fi, err = fsys.Stat(at("."))
		ok(t, err)
		equal(t, fi.IsDir(), true)
	}},
	{"syncs succeed", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		create(t, fsys, at("f"), "x")
		ok(t, open(t, fsys, at("f"), os.O_RDWR).Sync())
		ok(t, fsys.SyncDir(at(".")))
	}},
	// ST-4: a second broker on a data directory in use is refused.
	{"a lock excludes", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		l, err := fsys.Lock(at("LOCK"))
		ok(t, err)
		_, err = fsys.Lock(at("LOCK"))
		is(t, err, vfs.ErrLocked)
		ok(t, l.Close())
		l, err = fsys.Lock(at("LOCK"))
		ok(t, err)
		ok(t, l.Close())
		is(t, l.Close(), fs.ErrClosed)
		_, err = fsys.Lock(at("no/LOCK"))
		is(t, err, fs.ErrNotExist)
	}},
	{"a small file is replaced as a whole", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		for _, want := range []string{"first, long", "second", ""} {
			ok(t, vfs.WriteFileSync(fsys, at("f"), []byte(want), 0o644))
			got, err := vfs.ReadFile(fsys, at("f"))
			ok(t, err)
			equal(t, string(got), want)
			names(t, fsys, at("."), "f")
		}
	}},
	{"files serve several goroutines", func(t *testing.T, fsys vfs.FS, at func(string) string) {
		f := open(t, fsys, at("f"), os.O_RDWR|os.O_CREATE)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 50 {
					b := bytes.Repeat([]byte{byte(i)}, 100)
					off := int64(100 * (8*j + i))
					if _, err := f.WriteAt(b, off); err != nil {
						t.Error(err)
					}
					got := make([]byte, 100)
					if _, err := f.ReadAt(got, off); err != nil || !bytes.Equal(got, b) {
						t.Errorf("read back %x, %v", got, err)
					}
				}
			})
		}
		wg.Wait()
		size(t, f, 8*50*100)
	}},
}

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

func open(t *testing.T, fsys vfs.FS, name string, flag int) vfs.File {
	t.Helper()
	f, err := fsys.OpenFile(name, flag, 0o644)
	ok(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func create(t *testing.T, fsys vfs.FS, name, text string) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	ok(t, err)
	_, err = f.WriteAt([]byte(text), 0)
	ok(t, err)
	ok(t, f.Close())
}

func size(t *testing.T, f vfs.File, want int64) {
	t.Helper()
	n, err := f.Size()
	ok(t, err)
	equal(t, n, want)
}

func content(t *testing.T, f vfs.File, want string) {
	t.Helper()
	size(t, f, int64(len(want)))
	b := make([]byte, len(want))
	_, err := f.ReadAt(b, 0)
	ok(t, err)
	if string(b) != want {
		t.Errorf("content %q, want %q", b, want)
	}
}

func names(t *testing.T, fsys vfs.FS, dir string, want ...string) {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	ok(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if len(got) != len(want) {
		t.Fatalf("names %q, want %q", got, want)
	}
	for i := range want {
		equal(t, got[i], want[i])
	}
}
