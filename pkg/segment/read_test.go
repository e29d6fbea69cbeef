package segment

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
	"github.com/twmb/franz-go/pkg/kerr"
)

// A random life of a segment beside a slice of batches: appends, flushes,
// index writes, stops, kills, power cuts, a roll; everything readable at every moment.
func TestSegmentAgreesWithItsModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			disk := newDisk(t)
			o, _ := options(disk)
			base := r.Int64N(1 << 40)
			s, m := create(t, o, base), &model{}
			ok(t, disk.SyncDir(dir))
			for range 200 {
				s, disk = step(t, r, s, m, disk)
				m.checkOffset(t, s, base+r.Int64N(m.next(base)-base+2))
				checkRead(t, r, m, s)
			}
			m.check(t, s)
			ok(t, s.Seal())
			m.check(t, s)
			ok(t, s.Close())
			s = must[*Segment](t)(Open(s.opts, base))
			m.check(t, s)
			for range 100 {
				checkRead(t, r, m, s)
			}
			ok(t, s.Close())
		})
	}
}

func step(t *testing.T, r *rand.Rand, s *Segment, m *model, disk *crashfs.FS) (*Segment, *crashfs.FS) {
	t.Helper()
	base := s.Base()
	reopen := func(clean bool) *Segment {
		o, _ := options(disk)
		s, rec, err := Recover(o, base, clean, m.next(base), nil)
		ok(t, err)
		if rec.Next != m.next(base) || rec.Cut != 0 {
			t.Fatalf("recovered %+v, want next %d", rec, m.next(base))
		}
		return s
	}
	switch r.IntN(40) {
	case 0: // a clean stop
		ok(t, s.Flush())
		ok(t, s.WriteIndexes(true))
		ok(t, s.Close())
		return reopen(true), disk
	case 1: // a kill
		disk = disk.KillClone()
		return reopen(false), disk
	case 2: // a power cut after a flush
		ok(t, s.Flush())
		disk = disk.CrashClone(crashfs.Random(r.Uint64()))
		return reopen(false), disk
	case 3:
		ok(t, s.WriteIndexes(r.IntN(2) == 0))
	default:
		size := 61 + r.IntN(300)
		if r.IntN(8) == 0 {
			size = r.IntN(20_000) + 61
		}
		b := batch(m.next(base)+r.Int64N(3)/2, 1+r.Int32N(20), size, r.Int64N(1_000)-1)
		ok(t, s.Append(b, 1+r.IntN(2)*4095))
		m.add(b)
	}
	return s, disk
}

// checkRead makes one random Read and compares it byte for byte.
func checkRead(t *testing.T, r *rand.Rand, m *model, s *Segment) {
	t.Helper()
	offset := s.Base() - 1 + r.Int64N(m.next(s.Base())-s.Base()+3)
	maxBytes, whole := r.IntN(2_000), r.IntN(2) == 0
	limit, end := int64(-1), m.size
	if r.IntN(2) == 0 {
		limit = m.position(r.IntN(len(m.batches) + 1))
		end = limit
	}
	var want []byte
	if i := m.find(offset); i < len(m.batches) && m.pos[i] < end {
		n := maxBytes
		if first := len(m.batches[i]); first > n {
			n = 0
			if whole {
				n = first
			}
		}
		want = m.data[m.pos[i]:min(m.pos[i]+int64(n), end)]
	}
	region, err := s.Read(offset, maxBytes, whole, limit)
	ok(t, err)
	if got := read(t, region); !bytes.Equal(got, want) {
		t.Fatalf("read(%d, %d, %v, %d): %d bytes, want %d", offset, maxBytes, whole, limit, len(got), len(want))
	}
}

// ST-7: a fetch finds its position by a lookup: how much is read does not grow with the segment.
func TestLookupReadsLittle(t *testing.T) {
	for _, n := range []int{400, 40_000} {
		disk := faultfs.New(newDisk(t))
		o, _ := options(disk)
		m := sealed(t, o, 0, n, 200)
		s := must[*Segment](t)(Open(o, 0))
		bytesRead, reads := int64(0), 0
		disk.OnOp(func(op vfs.Op) {
			if op.Kind == vfs.OpRead {
				bytesRead += op.Length
				reads++
			}
		})
		for _, i := range []int{0, 1, n / 3, n / 2, n - 1} {
			bytesRead, reads = 0, 0
			m.checkOffset(t, s, m.batches[i].BaseOffset())
			if bytesRead > 20_000 || reads > 8 {
				t.Errorf("%d batches: batch %d took %d reads of %d bytes", n, i, reads, bytesRead)
			}
		}
		ok(t, s.Close())
	}
}

// The tail of the active segment is found without reading at all.
func TestTailIsReadWithoutASearch(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	s, m := create(t, o, 0), &model{}
	fill(t, s, m, 1_000, 700)
	before := disk.Count(vfs.OpRead)
	for _, b := range m.batches[len(m.batches)-recentBatches+1:] {
		region := must[Region](t)(s.Read(b.LastOffset(), 1<<20, true, -1))
		region.Release()
	}
	region := must[Region](t)(s.Read(m.next(0), 1<<20, true, -1))
	if region.Length != 0 {
		t.Fatal("there is something behind the end")
	}
	if n := disk.Count(vfs.OpRead) - before; n != 0 {
		t.Fatalf("%d reads", n)
	}
	ok(t, s.Close())
}

// ST-20: a read allocates nothing, wherever it is.
func TestReadDoesNotAllocate(t *testing.T) {
	s, m := create(t, osOptions(t), 0), &model{}
	fill(t, s, m, 20_000, 300)
	ok(t, s.WriteIndexes(false))
	allocs := func(what string, offset int64) {
		n := testing.AllocsPerRun(200, func() {
			region, err := s.Read(offset, 1<<20, true, -1)
			if err != nil || region.Length == 0 {
				t.Fatal(region, err)
			}
			region.Release()
		})
		if n != 0 && !raceEnabled {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	allocs("tail", m.next(0)-1)
	allocs("middle", m.next(0)/2)
	ok(t, s.Seal())
	allocs("sealed", m.next(0)/2)
	ok(t, s.Close())
}

// A region outlives the segment.
func TestRegionStaysReadableAfterCloseAndRemove(t *testing.T) {
	for what, end := range map[string]func(*Segment) error{"close": (*Segment).Close, "remove": (*Segment).Remove} {
		for _, seal := range []bool{false, true} {
			o := osOptions(t)
			s, m := create(t, o, 0), &model{}
			fill(t, s, m, 10, 500)
			if seal {
				ok(t, s.Seal())
			}
			region := must[Region](t)(s.Read(0, 1<<20, true, -1))
			ok(t, end(s))
			if _, err := s.Read(0, 1<<20, true, -1); err == nil {
				t.Errorf("%s: a closed segment can be read", what)
			}
			if !bytes.Equal(read(t, region), m.bytes()) {
				t.Errorf("%s: the region changed", what)
			}
			if left := names(t, o); what == "remove" && len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		}
	}
}

// ST-63: headers that can't be walked are CORRUPT_MESSAGE for who reads behind them; what lies before is served.
func TestUnwalkableHeaderIsCorruptMessage(t *testing.T) {
	o, _ := options(newDisk(t))
	m := sealed(t, o, 0, 200, 700)
	log := m.bytes()
	bad := 100
	put32(log[m.pos[bad]+8:], 3)
	overwrite(t, o, 0, LogSuffix, log)
	s := must[*Segment](t)(Open(o, 0))
	for i, b := range m.batches[:190] {
		region, err := s.Read(b.BaseOffset(), 100, true, -1)
		switch {
		case err == nil:
			region.Release()
			if i == bad || region.Offset != m.pos[i] {
				t.Fatalf("batch %d is at %d", i, region.Offset)
			}
		case !errors.Is(err, kerr.CorruptMessage) || i < bad:
			t.Fatalf("batch %d: %v", i, err)
		}
	}
	if _, err := s.ReadBatch(m.pos[bad]); !errors.Is(err, kerr.CorruptMessage) {
		t.Fatal(err)
	}
	ok(t, s.Close())
}

func TestReadBatchReturnsTheWholeBatch(t *testing.T) {
	o, _ := options(newDisk(t))
	m := sealed(t, o, 7, 20, 3_000)
	s := must[*Segment](t)(Open(o, 7))
	for i, b := range m.batches {
		if got := must[record.Batch](t)(s.ReadBatch(m.pos[i])); !bytes.Equal(got, b) {
			t.Fatalf("batch %d", i)
		}
	}
	if _, err := s.ReadBatch(m.size); err == nil {
		t.Fatal("there is a batch behind the end")
	}
	ok(t, s.Close())
}

// Readers beside a writer see whole batches and nothing else.
func TestReadersBesideAWriter(t *testing.T) {
	o := osOptions(t)
	s := create(t, o, 0)
	const total = 3_000
	done := make(chan error)
	for range 2 {
		go func() { done <- tailAll(s, total) }()
	}
	go func() {
		for s.Size() < total*200/2 {
			if err := s.Flush(); err != nil {
				break
			}
		}
		done <- s.WriteIndexes(true)
	}()
	for i := range int64(total) {
		ok(t, s.Append(batch(i, 1, 200, i), 500))
	}
	ok(t, s.Seal())
	for range 3 {
		ok(t, <-done)
	}
	ok(t, s.Close())
}

func tailAll(s *Segment, total int64) error {
	buf := make([]byte, 1<<20)
	for next := int64(0); next < total; {
		region, err := s.Read(next, len(buf), true, -1)
		if err != nil {
			return err
		}
		if region.Length == 0 {
			continue
		}
		n, err := region.File.ReadAt(buf[:region.Length], region.Offset)
		region.Release()
		if err != nil {
			return err
		}
		for b := record.Batch(buf[:n]); len(b) > 0; b = b[200:] {
			if b.BaseOffset() != next || b.CRC() != b[:200].ComputeCRC() {
				return fmt.Errorf("offset %d at %d", b.BaseOffset(), next)
			}
			next++
		}
	}
	return nil
}

func benchmarkRead(b *testing.B, size int, offset func(next int64) int64, seal bool) {
	o := osOptions(b)
	s, next := create(b, o, 0), int64(0)
	for s.Size() < 64<<20 {
		ok(b, s.Append(batch(next, 4, size, next), 4096))
		next += 4
	}
	if seal {
		ok(b, s.Seal())
	}
	at := offset(next)
	b.ReportAllocs()
	for b.Loop() {
		region, err := s.Read(at, 1<<20, true, -1)
		if err != nil {
			b.Fatal(err)
		}
		region.Release()
	}
	ok(b, s.Remove())
}

func last(next int64) int64   { return next - 1 }
func middle(next int64) int64 { return next/2 + 1 }

func BenchmarkReadTail4KiB(b *testing.B)    { benchmarkRead(b, 4<<10, last, false) }
func BenchmarkReadMiddle4KiB(b *testing.B)  { benchmarkRead(b, 4<<10, middle, false) }
func BenchmarkReadSealed200B(b *testing.B)  { benchmarkRead(b, 200, middle, true) }
func BenchmarkReadSealed64KiB(b *testing.B) { benchmarkRead(b, 64<<10, middle, true) }
func BenchmarkReadTail64KiB(b *testing.B)   { benchmarkRead(b, 64<<10, last, false) }
