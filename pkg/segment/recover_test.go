package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// stopped makes an active segment of n batches after a clean stop.
func stopped(t testing.TB, o *Options, base int64, n, size int) *model {
	t.Helper()
	s, m := create(t, o, base), &model{}
	fill(t, s, m, n, size)
	ok(t, s.Flush())
	ok(t, s.WriteIndexes(true))
	ok(t, o.FS.SyncDir(o.Dir))
	ok(t, s.Close())
	return m
}

// ST-54: what is torn or wrong is cut off, with all behind it; what is before stays.
func TestRecoveryCutsAtTheFirstBadBatch(t *testing.T) {
	const bad = 40
	for what, harm := range map[string]func(b record.Batch) record.Batch{
		"torn in its header":  func(b record.Batch) record.Batch { return b[:30] },
		"torn in its body":    func(b record.Batch) record.Batch { return b[:len(b)-50] },
		"a bit of its body":   func(b record.Batch) record.Batch { b[400] ^= 4; return b },
		"its magic":           func(b record.Batch) record.Batch { b[16] = 1; return b },
		"zeros":               func(b record.Batch) record.Batch { clear(b); return b },
		"a length below 0":    func(b record.Batch) record.Batch { put32(b[8:], 0xfffffff0); return b },
		"a length of 2 GiB":   func(b record.Batch) record.Batch { put32(b[8:], 0x7fffffff); return b },
		"a length of nothing": func(b record.Batch) record.Batch { put32(b[8:], 0); return b },
		"an offset again":     func(b record.Batch) record.Batch { b.SetBaseOffset(b.BaseOffset() - 1); return b },
		"an offset too far":   func(b record.Batch) record.Batch { b.SetBaseOffset(1 << 40); return b },
		"the last offset":     func(b record.Batch) record.Batch { b.SetBaseOffset(1<<63 - 1); return b },
		"a negative delta":    func(b record.Batch) record.Batch { put32(b[23:], 1<<31); b.SetCRC(); return b },
	} {
		o, _ := options(newDisk(t))
		m := stopped(t, o, 100, 60, 700)
		whole := &model{}
		for _, b := range m.batches[:bad] {
			whole.add(b)
		}
		data := append(whole.bytes(), harm(bytes.Clone(m.batches[bad]))...)
		data = append(data, m.batches[bad+1]...)
		overwrite(t, o, 100, LogSuffix, data)
		visited := 0
		s, r, err := Recover(o, 100, false, m.batches[10].BaseOffset(), func(b record.Batch) {
			if !bytes.Equal(b, m.batches[10+visited]) {
				t.Errorf("%s: visited something else", what)
			}
			visited++
		})
		ok(t, err)
		want := fmt.Sprintf("batch at position %d: ", whole.size)
		if r.Next != whole.next(100) || r.Cut != int64(len(data))-whole.size || !strings.HasPrefix(r.Reason, want) || visited != bad-10 {
			t.Fatalf("%s: recovered %+v, visited %d", what, r, visited)
		}
		whole.check(t, s)
		fill(t, s, whole, 30, 700)
		ok(t, s.Seal())
		offsets, times := kafkaIndexes(100, 4096, whole.batches)
		if !bytes.Equal(content(t, o, 100, IndexSuffix), offsets) || !bytes.Equal(content(t, o, 100, TimeIndexSuffix), times) {
			t.Errorf("%s: the indexes are not those of the log", what)
		}
		ok(t, s.Close())
	}
}

// ST-54: what recovery has cut off does not come back behind a batch that was
// appended in its place, if the power goes before the next flush: it would be of an
// older epoch than the batch before it, and a producer's sequences would have a gap.
func TestWhatWasCutOffDoesNotComeBack(t *testing.T) {
	const sector = 512 // of the disk: each survives on its own
	o, _ := options(newDisk(t))
	var log []byte
	for i := range int64(3) {
		log = append(log, batch(i, 1, sector, 1)...)
	}
	clear(log[sector+100 : sector+200]) // the second batch is torn, the third is not
	overwrite(t, o, 0, LogSuffix, log)
	disk := o.FS.(*crashfs.FS).CrashClone(crashfs.KeepUnsynced)
	o.FS = disk
	s, r, err := Recover(o, 0, false, 0, nil)
	ok(t, err)
	if r.Next != 1 || r.Cut != 2*sector {
		t.Fatalf("recovered %+v", r)
	}
	b := batch(1, 1, sector, 2)
	b.SetLeaderEpoch(1)
	ok(t, s.Append(b, 4096))
	for seed := range uint64(200) {
		again, _ := options(disk.CrashClone(crashfs.Random(seed)))
		s, r, err := Recover(again, 0, false, 0, nil)
		ok(t, err)
		if r.Next > 2 {
			t.Fatalf("%v: the log goes on to %d", crashfs.Random(seed), r.Next)
		}
		ok(t, s.Close())
	}
	ok(t, s.Close())
}

// A batch larger than the buffer is checked in pieces, and its header shown.
func TestRecoveryChecksLargeBatches(t *testing.T) {
	for _, harm := range []int{-1, 70, scanBuffer + 5, 3*scanBuffer + 16} {
		o, _ := options(newDisk(t))
		b := batch(0, 3, 3*scanBuffer+17, 9)
		put := bytes.Clone(b)
		if harm >= 0 {
			put[harm] ^= 1
		}
		overwrite(t, o, 0, LogSuffix, put)
		s, r, err := Recover(o, 0, false, 0, func(h record.Batch) {
			if !bytes.Equal(h, b[:record.HeaderSize]) {
				t.Error("not its header")
			}
		})
		ok(t, err)
		if good := r.Next == 3; good != (harm < 0) || good != (s.Size() > 0) {
			t.Fatalf("harm at %d: %+v", harm, r)
		}
		ok(t, s.Close())
	}
}

// ST-54: after a clean stop the newest segment is not read but for its end.
func TestCleanRecoveryReadsLittle(t *testing.T) {
	for _, n := range []int{0, 1, 5, 300, 20_000} {
		disk := faultfs.New(newDisk(t))
		o, log := options(disk)
		m := stopped(t, o, 10, n, 200)
		reads, bytesRead := 0, int64(0)
		disk.OnOp(func(op vfs.Op) {
			if op.Kind == vfs.OpRead {
				reads++
				bytesRead += op.Length
			}
		})
		s, r, err := Recover(o, 10, true, m.next(10), func(record.Batch) { t.Error("visited") })
		ok(t, err)
		if r != (Recovered{Next: m.next(10)}) || reads > 20 || bytesRead > 32<<10 || log.Len() > 0 {
			t.Errorf("%d batches: %+v, %d reads of %d bytes, logged %q", n, r, reads, bytesRead, log)
		}
		if n < 1_000 {
			m.check(t, s)
		}
		fill(t, s, m, 30, 700)
		ok(t, s.Seal())
		// The time index has one entry more, of the stop, as Kafka's has.
		if offsets, _ := kafkaIndexes(10, 4096, m.batches); !bytes.Equal(content(t, o, 10, IndexSuffix), offsets) {
			t.Errorf("%d batches: the index does not go on as if nothing had happened", n)
		}
		ok(t, s.Close())
	}
}

// Batches at or after replay are shown after a clean stop too: headers, and whole markers.
func TestCleanRecoveryReplays(t *testing.T) {
	o, _ := options(newDisk(t))
	s, m := create(t, o, 0), &model{}
	fill(t, s, m, 300, 700)
	marker := must[record.Batch](t)(record.NewMarker(record.Marker{Type: record.Commit}, 5, 1, 77))
	marker.SetBaseOffset(m.next(0))
	ok(t, s.Append(marker, 4096))
	m.add(marker)
	ok(t, s.WriteIndexes(true))
	ok(t, s.Close())
	visited := 0
	s, _, err := Recover(o, 0, true, m.batches[200].BaseOffset(), func(h record.Batch) {
		want := m.batches[200+visited]
		if !want.Control() {
			want = want[:record.HeaderSize]
		}
		if !bytes.Equal(h, want) {
			t.Errorf("batch %d is not shown right", visited)
		}
		visited++
	})
	ok(t, err)
	if visited != 101 {
		t.Errorf("%d visited", visited)
	}
	ok(t, s.Close())
}

// A clean mark that is not true is noticed where the indexes tell, and everything is checked.
func TestCleanRecoveryFallsBackToTheCheck(t *testing.T) {
	for what, harm := range map[string]func(o *Options, m *model){
		"no index":      func(o *Options, _ *model) { ok(t, o.FS.Remove(o.path(0, IndexSuffix))) },
		"no time index": func(o *Options, _ *model) { ok(t, o.FS.Remove(o.path(0, TimeIndexSuffix))) },
		"a torn tail":   func(o *Options, m *model) { overwrite(t, o, 0, LogSuffix, append(m.bytes(), m.data[:300]...)) },
	} {
		o, log := options(newDisk(t))
		m := stopped(t, o, 0, 100, 700)
		harm(o, m)
		s, r, err := Recover(o, 0, true, m.next(0), nil)
		ok(t, err)
		if r.Scanned == 0 || r.Next != m.next(0) || (r.Cut > 0) != (what == "a torn tail") || log.Len() == 0 {
			t.Fatalf("%s: %+v, logged %q", what, r, log)
		}
		m.check(t, s)
		ok(t, s.Seal())
		// Nothing of the old indexes is left in the new ones.
		offsets, times := kafkaIndexes(0, 4096, m.batches)
		if !bytes.Equal(content(t, o, 0, IndexSuffix), offsets) || !bytes.Equal(content(t, o, 0, TimeIndexSuffix), times) {
			t.Errorf("%s: the indexes are not made anew", what)
		}
		ok(t, s.Close())
	}
}

// A disk that can't be read is no torn tail: nothing is cut.
func TestRecoveryCutsNothingForAFailingDisk(t *testing.T) {
	for _, clean := range []bool{true, false} {
		disk := faultfs.New(newDisk(t))
		o, _ := options(disk)
		m := stopped(t, o, 0, 100, 700)
		fault := disk.Fail(faultfs.Rule{Kinds: vfs.OpRead, Name: "*.log", Times: -1})
		if _, _, err := Recover(o, 0, clean, 0, nil); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		fault.Remove()
		if !bytes.Equal(content(t, o, 0, LogSuffix), m.data) {
			t.Fatal("the log has changed")
		}
	}
	o, _ := options(newDisk(t))
	if _, _, err := Recover(o, 0, false, 0, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// life is a segment's: appends, flushes, index writes, and a seal with its
// successor. flushed is told what must survive from now on.
func life(o *Options, flushed func(batches int, sealed bool)) (*model, error) {
	m := &model{}
	s, err := Create(o, 0)
	if err != nil {
		return m, err
	}
	defer func() { _ = s.Close() }() // the power may be gone
	if err := o.FS.SyncDir(o.Dir); err != nil {
		return m, err
	}
	for i := range 24 {
		b := batch(m.next(0), 2, 300+i*113%1_500, int64(i%7))
		m.add(b) // also if it fails: it may be there then
		if err := s.Append(b, 1_000); err != nil {
			return m, err
		}
		if i%5 == 3 {
			if err := s.Flush(); err != nil {
				return m, err
			}
			flushed(len(m.batches), false)
		}
		if i%6 == 2 {
			if err := s.WriteIndexes(i%4 == 0); err != nil {
				return m, err
			}
		}
	}
	if err := s.Seal(); err != nil {
		return m, err
	}
	flushed(len(m.batches), false)
	next, err := Create(o, m.next(0))
	if err != nil {
		return m, err
	}
	defer func() { _ = next.Close() }()
	if err := o.FS.SyncDir(o.Dir); err != nil {
		return m, err
	}
	flushed(len(m.batches), true)
	return m, nil
}

// ST-53, ST-54: the power goes after every operation. What was flushed is
// there, and nothing that was not appended; a sealed segment opens whole.
func TestPowerCutAfterEveryOperation(t *testing.T) {
	cuts := 0
	for n := 0; ; n++ {
		disk := newDisk(t)
		disk.StopAfter(n)
		o, _ := options(disk)
		promised, sealed := 0, false
		m, _ := life(o, func(batches int, done bool) { promised, sealed = batches, done })
		for _, survival := range crashfs.Survivals(uint64(n), 12) {
			cuts++
			after := disk.CrashClone(survival)
			if msg := afterCut(t, after, m, promised, sealed); msg != "" {
				op, _ := disk.Cut()
				t.Fatalf("cut at %d (%s), %s: %s", n, op, survival, msg)
			}
		}
		if _, cut := disk.Cut(); !cut {
			t.Logf("%d operations, %d power cuts", n, cuts)
			return
		}
	}
}

func afterCut(t *testing.T, disk *crashfs.FS, m *model, promised int, sealed bool) string {
	o, _ := options(disk)
	var s *Segment
	var err error
	if sealed {
		s, err = Open(o, 0)
	} else {
		s, _, err = Recover(o, 0, false, 0, nil)
	}
	if errors.Is(err, fs.ErrNotExist) && promised == 0 {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	got := 0
	for got < len(m.batches) && m.position(got) < s.Size() {
		got++
	}
	if got < promised {
		return fmt.Sprintf("%d batches, promised %d", got, promised)
	}
	have := &model{}
	for _, b := range m.batches[:got] {
		have.add(b)
	}
	if !bytes.Equal(content(t, o, 0, LogSuffix), have.data) {
		return "the content is no prefix of what was appended"
	}
	have.check(t, s)
	if err := s.Close(); err != nil {
		return err.Error()
	}
	return ""
}

// Every operation of a life fails once: the error comes out, and what was flushed stays.
func TestEveryOperationFailsOnce(t *testing.T) {
	for n := 1; ; n++ {
		inner := newDisk(t)
		disk := faultfs.New(inner)
		fault := disk.Fail(faultfs.Rule{Kinds: vfs.OpChanges, Nth: n})
		o, _ := options(disk)
		promised := 0
		m, err := life(o, func(batches int, _ bool) { promised = batches })
		if fault.Hits() == 0 {
			t.Logf("%d operations", n-1)
			return
		}
		if err == nil {
			t.Fatalf("failed %s, and nobody was told", fault.Last())
		}
		if msg := afterCut(t, inner.KillClone(), m, promised, false); msg != "" {
			t.Fatalf("failed %s: %s", fault.Last(), msg)
		}
	}
}

// Whatever a log file holds, recovery ends, and keeps exactly the good batches at its start.
func FuzzRecover(f *testing.F) {
	a, b := batch(5, 2, 100, 3), batch(7, 1, 61, 4)
	f.Add([]byte(a), false)
	f.Add(append(bytes.Clone(a), b...), true)
	f.Add(append(bytes.Clone(a), b[:30]...), true)
	f.Add(append(bytes.Clone(b), a...), false)
	f.Add(make([]byte, 200), true)
	f.Fuzz(func(t *testing.T, data []byte, clean bool) {
		o, _ := options(newDisk(t))
		overwrite(t, o, 5, LogSuffix, data)
		want, rest := &model{}, data
		for next := int64(5); len(rest) >= record.HeaderSize; {
			h := record.Batch(rest)
			if fault(h, int64(len(rest)), next) != "" || h[:h.Size()].ComputeCRC() != h.CRC() || !fits(h.LastOffset()-5) {
				break
			}
			want.add(h[:h.Size()])
			next, rest = h.LastOffset()+1, rest[h.Size():]
		}
		s, r, err := Recover(o, 5, clean, 5, func(record.Batch) {})
		ok(t, err)
		if r.Next != want.next(5) || r.Cut != int64(len(rest)) || (r.Reason != "") != (len(rest) > 0) {
			t.Fatalf("recovered %+v, want %d", r, want.next(5))
		}
		if len(want.batches) == 0 || want.next(5) < 10_000 {
			want.check(t, s)
		}
		ok(t, s.Close())
	})
}

func BenchmarkRecover64MiB(b *testing.B) {
	o := osOptions(b)
	s := create(b, o, 0)
	for i := range int64(4_096) {
		ok(b, s.Append(batch(i, 1, 16<<10, i), 4096))
	}
	ok(b, s.Close())
	b.SetBytes(64 << 20)
	b.ReportAllocs()
	for b.Loop() {
		s, _, err := Recover(o, 0, false, 0, nil)
		ok(b, err)
		ok(b, s.Close())
	}
}
