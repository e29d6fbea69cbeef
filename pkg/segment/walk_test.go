package segment

import (
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

func TestBatchesStopsWhenToldTo(t *testing.T) {
	o, _ := options(newDisk(t))
	m := sealed(t, o, 0, 50, 700)
	s := must[*Segment](t)(Open(o, 0))
	seen := 0
	ok(t, s.Batches(m.pos[10], func(pos int64, h record.Batch) bool {
		if pos != m.pos[10+seen] || h.BaseOffset() != m.batches[10+seen].BaseOffset() || len(h) != record.HeaderSize {
			t.Fatalf("batch %d", seen)
		}
		seen++
		return seen < 5
	}))
	if seen != 5 {
		t.Fatalf("%d seen", seen)
	}
	ok(t, s.Batches(m.size, func(int64, record.Batch) bool { t.Error("behind the end"); return true }))
	ok(t, s.Close())
}

// A walk reads small batches many at a time, and of large ones little more than their headers.
func TestWalkAdaptsItsReads(t *testing.T) {
	for _, c := range []struct {
		n, size, reads int
		bytes          int64
	}{
		{20_000, 100, 100, 3 << 20},
		{100, 64 << 10, 105, 100 << 10},
	} {
		disk := faultfs.New(newDisk(t))
		o, _ := options(disk)
		m := sealed(t, o, 0, c.n, c.size)
		s := must[*Segment](t)(Open(o, 0))
		reads, read := 0, int64(0)
		disk.OnOp(func(op vfs.Op) {
			if op.Kind == vfs.OpRead {
				reads++
				read += op.Length
			}
		})
		m.checkWalk(t, s)
		if reads > c.reads || read > c.bytes {
			t.Errorf("%d batches of %d: %d reads of %d bytes", c.n, c.size, reads, read)
		}
		ok(t, s.Close())
	}
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte(batch(5, 2, 100, 3)), int64(5))
	f.Add(make([]byte, 61), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, next int64) {
		if len(data) < record.HeaderSize {
			return
		}
		h := record.Batch(data)
		if fault(h, int64(len(data)), next) != "" {
			return
		}
		if h.Size() > len(data) || h.LastOffset() < next || h.LastOffset()+1 < h.BaseOffset() {
			t.Fatalf("%d bytes, offsets %d to %d were let through", h.Size(), h.BaseOffset(), h.LastOffset())
		}
	})
}
