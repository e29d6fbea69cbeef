package segment

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// ST-1: the names are Kafka's.
func TestFileNameHasTwentyDigits(t *testing.T) {
	if got := FileName(1234567890123, LogSuffix); got != "00000001234567890123.log" {
		t.Fatal(got)
	}
}

func TestCreateDoesNotReplaceALog(t *testing.T) {
	o, _ := options(newDisk(t))
	m := stopped(t, o, 0, 3, 700)
	if _, err := Create(o, 0); !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	s, r, err := Recover(o, 0, true, 0, nil)
	ok(t, err)
	if r.Next != m.next(0) {
		t.Fatalf("%+v", r)
	}
	ok(t, s.Close())
}

// Index files that a removed segment has left do not get into its successor's.
func TestCreateIgnoresIndexesThatAreThere(t *testing.T) {
	o, _ := options(newDisk(t))
	sealed(t, o, 0, 2_000, 700)
	ok(t, o.FS.Remove(o.path(0, LogSuffix)))
	m := sealed(t, o, 0, 100, 700)
	s := must[*Segment](t)(Open(o, 0))
	m.check(t, s)
	ok(t, s.Close())
}

func TestEmptySegment(t *testing.T) {
	o, _ := options(newDisk(t))
	s, m := create(t, o, 77), &model{}
	m.check(t, s)
	region, err := s.Read(77, 100, true, -1)
	if region.Length != 0 || region.Release != nil || err != nil {
		t.Fatal(region, err)
	}
	if pos, err := s.TimePosition(5); pos != 0 || err != nil {
		t.Fatal(pos, err)
	}
	ok(t, s.Seal())
	m.check(t, s)
	ok(t, s.Close())
}

// A closed segment writes nothing: its directory may be another topic's by then.
func TestCloseMakesNoFile(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	s := create(t, o, 0)
	fill(t, s, &model{}, 100, 700)
	before := disk.Count(vfs.OpCreate | vfs.OpWrite)
	ok(t, s.Close())
	ok(t, s.Close())
	if disk.Count(vfs.OpCreate|vfs.OpWrite) != before || len(names(t, o)) != 1 {
		t.Fatal("Close has written")
	}
	if err := s.Append(batch(5_000, 1, 700, 1), 4096); err == nil {
		t.Error("append to a closed segment")
	}
	if err := s.Flush(); !errors.Is(err, fs.ErrClosed) {
		t.Error("flush:", err)
	}
	if err := s.WriteIndexes(true); !errors.Is(err, fs.ErrClosed) {
		t.Error("indexes:", err)
	}
	if _, err := s.Read(0, 1, true, -1); !errors.Is(err, fs.ErrClosed) {
		t.Error("read:", err)
	}
	ok(t, s.Remove())
}
