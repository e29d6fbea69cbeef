package segment

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// openFiles counts the files of a disk that are open now.
func openFiles(d *faultfs.FS) int { return d.Count(vfs.OpOpen|vfs.OpCreate) - d.Count(vfs.OpClose) }

// ST-8: the descriptors of sealed segments are bounded, in use or not.
func TestIdleFilesAreBounded(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	var segments []*Segment
	var models []*model
	for i := range int64(20) {
		models = append(models, sealed(t, o, i*1_000, 20, 700))
		segments = append(segments, must[*Segment](t)(Open(o, i*1_000)))
		if n := openFiles(disk); n > o.Files.limit {
			t.Fatalf("%d files open after %d segments", n, i+1)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		i := r.IntN(len(segments))
		models[i].checkOffset(t, segments[i], int64(i)*1_000+r.Int64N(30))
		if n := openFiles(disk); n > o.Files.limit || n != o.Files.idle {
			t.Fatalf("%d files open, %d idle", n, o.Files.idle)
		}
	}
	regions := make([]Region, len(segments))
	for i, s := range segments {
		regions[i] = must[Region](t)(s.Read(s.Base(), 100, true, -1))
	}
	if n := openFiles(disk); n < len(segments) {
		t.Fatalf("%d files open for %d regions", n, len(segments))
	}
	for i, s := range segments {
		ok(t, s.Close())
		read(t, regions[i])
	}
	if n := openFiles(disk); n != 0 || o.Files.idle != 0 || o.Files.oldest != nil || o.Files.newest != nil {
		t.Fatalf("%d files left open, %d idle", n, o.Files.idle)
	}
}

// Where a name can't be unlinked while the file is open (Windows), it goes with the last region.
func TestRemoveIsTriedAgainWithTheLastRegion(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	m := sealed(t, o, 0, 20, 700)
	s := must[*Segment](t)(Open(o, 0))
	a := must[Region](t)(s.Read(0, 1<<20, true, -1))
	b := must[Region](t)(s.Read(m.next(0)-1, 1<<20, true, -1))
	disk.Fail(faultfs.Rule{Kinds: vfs.OpRemove, Name: "*.log", Err: syscall.EACCES})
	ok(t, s.Remove())
	read(t, a)
	if got := names(t, o); len(got) != 1 || got[0] != FileName(0, LogSuffix) {
		t.Fatalf("left: %v", got)
	}
	read(t, b)
	if got := names(t, o); len(got) != 0 {
		t.Fatalf("left: %v", got)
	}
	if n := openFiles(disk); n != 0 {
		t.Fatalf("%d files open", n)
	}
}

// A removal that fails for good is an error, and the log goes last: no index is without its log.
func TestRemoveReportsAnError(t *testing.T) {
	for _, name := range []string{"*.index", "*.timeindex", "*.txnindex", "*.log"} {
		disk := faultfs.New(newDisk(t))
		o, _ := options(disk)
		sealed(t, o, 0, 20, 700)
		s := must[*Segment](t)(Open(o, 0))
		disk.Fail(faultfs.Rule{Kinds: vfs.OpRemove, Name: name})
		if err := s.Remove(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := disk.Stat(o.path(0, LogSuffix)); err != nil {
			t.Errorf("%s: the log is gone: %v", name, err)
		}
	}
}

func TestHandlesUnderManyUsers(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	var segments []*Segment
	for i := range int64(8) {
		sealed(t, o, i*1_000, 20, 700)
		segments = append(segments, must[*Segment](t)(Open(o, i*1_000)))
	}
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(g, 9))
			for range 2_000 {
				s := segments[r.IntN(len(segments))]
				region, err := s.Read(s.Base()+r.Int64N(20), 100, true, -1)
				if err == nil {
					region.Release()
				} else if !errors.Is(err, fs.ErrClosed) {
					t.Error(err)
				}
				if g == 0 && r.IntN(1_000) == 0 {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for _, s := range segments {
		ok(t, s.Close())
	}
	if n := openFiles(disk); n != 0 || o.Files.idle != 0 {
		t.Fatalf("%d files left open, %d idle", n, o.Files.idle)
	}
}
