package crashfs

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// file opens a file, which it creates if need be.
func openFile(t *testing.T, d *FS, name string) vfs.File {
	t.Helper()
	f, err := d.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	ok(t, err)
	return f
}

// durableFile makes a file with content and name that survive.
func durableFile(t *testing.T, d *FS, name, content string) vfs.File {
	t.Helper()
	f := openFile(t, d, name)
	write(t, f, content, 0)
	ok(t, f.Sync())
	ok(t, d.SyncDir("."))
	return f
}

func write(t *testing.T, f vfs.File, s string, off int64) {
	t.Helper()
	_, err := f.WriteAt([]byte(s), off)
	ok(t, err)
}

func read(t *testing.T, d *FS, name string) string {
	t.Helper()
	b, err := vfs.ReadFile(d, name)
	ok(t, err)
	return string(b)
}

// seen collects what n random power cuts leave.
func seen[T comparable](d *FS, n int, look func(after *FS) T) map[T]int {
	all := map[T]int{}
	for seed := range uint64(n) {
		all[look(d.CrashClone(Random(seed)))]++
	}
	return all
}

// ST-70: every file is cut to what its last fsync covered.
func TestContentUpToTheLastSyncSurvives(t *testing.T) {
	d := New()
	f := durableFile(t, d, "f", "synced")
	write(t, f, " and not", 6)
	equal(t, read(t, d, "f"), "synced and not")
	equal(t, read(t, d.CrashClone(LoseUnsynced), "f"), "synced")
	equal(t, read(t, d.CrashClone(KeepUnsynced), "f"), "synced and not")
	for got := range seen(d, 100, func(after *FS) string { return read(t, after, "f") }) {
		if !bytes.HasPrefix([]byte(got), []byte("synced")) {
			t.Errorf("a power cut left %q", got)
		}
	}
	ok(t, f.Sync())
	equal(t, read(t, d.CrashClone(LoseUnsynced), "f"), "synced and not")
}

// ST-70: unflushed bytes are dropped, zeroed, partly kept, or kept sector by sector.
func TestSectorsSurviveEachOnItsOwn(t *testing.T) {
	d := New()
	f := durableFile(t, d, "f", "")
	for i := range 3 {
		write(t, f, string(bytes.Repeat([]byte{byte('a' + i)}, sectorSize)), int64(i*sectorSize))
	}
	shapes := seen(d, 3000, func(after *FS) string {
		shape := ""
		for i, b := range []byte(read(t, after, "f")) {
			if i%sectorSize == 0 {
				shape += string(max(b, '0'))
			}
		}
		return shape
	})
	for _, want := range []string{"", "0", "a", "00", "a0", "0b", "ab", "000", "a00", "0b0", "00c", "ab0", "a0c", "0bc", "abc"} {
		if shapes[want] == 0 {
			t.Errorf("no power cut left %q", want)
		}
		delete(shapes, want)
	}
	if len(shapes) != 0 {
		t.Errorf("impossible: %v", shapes)
	}
}

func TestAFirstPartMaySurviveInAFileThatHasGrown(t *testing.T) {
	d := New()
	f := durableFile(t, d, "f", "")
	const sectors = 40
	write(t, f, string(bytes.Repeat([]byte("x"), sectors*sectorSize)), 0)
	parts := seen(d, 2000, func(after *FS) int {
		all := read(t, after, "f")
		rest := strings.TrimLeft(all, "x")
		if len(all) != sectors*sectorSize || strings.Contains(rest, "x") {
			return -1
		}
		return (len(all) - len(rest)) / sectorSize
	})
	for part := 1; part < 8; part++ {
		if parts[part] == 0 {
			t.Errorf("no power cut left %d sectors and then zeros", part)
		}
	}
}

func TestAFileMayBeCutInTheMiddleOfAWrite(t *testing.T) {
	d := New()
	f := durableFile(t, d, "f", "synced")
	write(t, f, "1234", 6)
	all := seen(d, 1000, func(after *FS) string { return read(t, after, "f") })
	for _, want := range []string{"synced", "synced1", "synced12", "synced123", "synced1234", "synced\x00\x00"} {
		if all[want] == 0 {
			t.Errorf("no power cut left %q", want)
		}
	}
}

func TestASectorMayHaveAnEarlierState(t *testing.T) {
	d := New()
	f := durableFile(t, d, "f", "0")
	for _, s := range []string{"1", "2", "3"} {
		write(t, f, s, 0)
	}
	all := seen(d, 500, func(after *FS) string { return read(t, after, "f") })
	for _, want := range []string{"0", "1", "2", "3"} {
		if all[want] == 0 {
			t.Errorf("no power cut left %q", want)
		}
	}
	equal(t, len(all), 4)
}

func TestStatesOfASectorAreBounded(t *testing.T) {
	var c content
	c.writeAt([]byte("durable"), 0)
	c.sync()
	for i := range 100 {
		c.writeAt([]byte{byte(i)}, 0)
	}
	equal(t, len(c.dirty[0]), versionsMax)
	equal(t, string(c.dirty[0][0][:7]), "durable")
	equal(t, c.dirty[0][versionsMax-1][0], 98)
}

func TestATruncationMayNotHaveHappened(t *testing.T) {
	d := New()
	old := string(bytes.Repeat([]byte("x"), 2*sectorSize))
	f := durableFile(t, d, "f", old)
	ok(t, f.Truncate(10))
	equal(t, read(t, d.CrashClone(LoseUnsynced), "f"), old)
	equal(t, read(t, d.CrashClone(KeepUnsynced), "f"), old[:10])
	all := seen(d, 300, func(after *FS) string { return read(t, after, "f") })
	if all[old] == 0 || all[old[:10]] == 0 {
		t.Error("a power cut never, or always, took the truncation back")
	}
	write(t, f, "new", 10)
	equal(t, read(t, d.CrashClone(LoseUnsynced), "f"), old)
	ok(t, f.Sync())
	for got := range seen(d, 20, func(after *FS) string { return read(t, after, "f") }) {
		equal(t, got, old[:10]+"new")
	}
}

// ST-61: the state after a failed fsync: readers see the data, a later sync
// succeeds, and the disk has never got it.
func TestAFailedSyncDropsTheDirtyData(t *testing.T) {
	d := New()
	f := durableFile(t, d, "f", "old")
	write(t, f, "new and longer", 0)
	DropUnsynced(f)
	equal(t, read(t, d, "f"), "new and longer")
	equal(t, read(t, d.CrashClone(LoseUnsynced), "f"), "old")
	ok(t, f.Sync())
	all := seen(d, 200, func(after *FS) string { return read(t, after, "f") })
	none := "old" + string(make([]byte, 11)) // the length came, the data did not
	if all[none] == 0 || all["new and longer"] == 0 || all[none] < all["new and longer"] || len(all) != 2 {
		t.Errorf("power cuts left %v", all)
	}
	equal(t, read(t, d.CrashClone(KeepUnsynced), "f"), none)
	write(t, f, "N", 0) // the sector is dirty again, as a whole
	ok(t, f.Sync())
	equal(t, read(t, d.CrashClone(LoseUnsynced), "f"), "New and longer")
}

// A model: whatever is done, a reader sees the bytes of a plain slice, and a
// synced file survives as it is.
func FuzzContentIsASliceToItsReaders(f *testing.F) {
	f.Add([]byte{1, 2, 3, 250, 9, 9, 128, 0, 77})
	f.Fuzz(func(t *testing.T, script []byte) {
		var c content
		var model []byte
		rng := rand.New(rand.NewPCG(1, uint64(len(script))))
		for _, b := range script {
			at := rng.Int64N(4 * sectorSize)
			switch b % 5 {
			case 0, 1:
				p := bytes.Repeat([]byte{b}, int(b)*3+1)
				c.writeAt(p, at)
				if need := int(at) + len(p) - len(model); need > 0 {
					model = append(model, make([]byte, need)...)
				}
				copy(model[at:], p)
			case 2:
				c.truncate(at)
				if int(at) > len(model) {
					model = append(model, make([]byte, int(at)-len(model))...)
				}
				model = model[:at:at]
			case 3:
				c.sync()
				after := c.clone()
				after.settle(survivor{random, rng}.fate())
				if !bytes.Equal(after.data, model) {
					t.Fatal("a synced file did not survive")
				}
			case 4:
				c.clone().settle(survivor{random, rng}.fate()) // must not touch the original
			}
			if !bytes.Equal(c.data, model) {
				t.Fatal("a reader sees something else than was written")
			}
		}
	})
}
