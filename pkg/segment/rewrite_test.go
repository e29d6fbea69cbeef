package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// sealedWith makes a sealed segment of batches of these sizes.
func sealedWith(t testing.TB, o *Options, base int64, sizes ...int) (*Segment, *model) {
	t.Helper()
	m := &model{}
	s := create(t, o, base)
	for i, size := range sizes {
		b := batch(m.next(base)+int64(i%2), int32(1+i%3), size, 1_000+int64(i*7%5)) // with gaps
		ok(t, s.Append(b, 4096))
		m.add(b)
	}
	ok(t, s.Seal())
	ok(t, o.FS.SyncDir(o.Dir))
	ok(t, s.Close())
	return must[*Segment](t)(Open(o, base)), m
}

// wholes are all batches that WholeBatches shows, copied.
func wholes(t testing.TB, s *Segment) (m model, err error) {
	t.Helper()
	err = s.WholeBatches(func(pos int64, b record.Batch) bool {
		if pos != m.size {
			t.Fatalf("batch at %d, after %d bytes", pos, m.size)
		}
		m.add(bytes.Clone(b))
		return true
	})
	return m, err
}

// ST-42: whole batches come back as they were written, however they lie across the pieces that are read; in few reads.
func TestWholeBatchesAreTheLog(t *testing.T) {
	small := slices.Repeat([]int{100}, 6000)
	for _, sizes := range [][]int{
		nil, {61}, {chunk}, {chunk, chunk}, {chunk - 1, 61, chunk + 1}, {chunk - 30, 200}, {200, 3 * chunk, 200}, small,
		slices.Concat(small, []int{2*chunk + 5}, small, []int{5 * chunk}, small),
	} {
		disk := faultfs.New(newDisk(t))
		o, _ := options(disk)
		s, m := sealedWith(t, o, 40, sizes...)
		reads := int64(0)
		disk.OnOp(func(op vfs.Op) {
			if op.Kind == vfs.OpRead {
				reads++
			}
		})
		got, err := wholes(t, s)
		if err != nil || len(got.batches) != len(m.batches) || !bytes.Equal(got.data, m.data) {
			t.Errorf("%d batches of %d, %v", len(got.batches), len(m.batches), err)
		}
		if most := m.size/chunk + 3; reads > most {
			t.Errorf("%d reads of %d bytes, want at most %d", reads, m.size, most)
		}
		seen := 0
		ok(t, s.WholeBatches(func(int64, record.Batch) bool { seen++; return seen < 2 }))
		if seen != min(2, len(sizes)) {
			t.Error("told to stop, it went on:", seen)
		}
		ok(t, s.Close())
	}
}

// ST-63: a log that can't be walked shows what is before, and says where; one that is closed says that.
func TestWholeBatchesOfADamagedLog(t *testing.T) {
	for _, c := range []struct {
		what   string
		damage func(data []byte, at int64) []byte
		why    string
	}{
		{"a byte of the header alone", func(data []byte, at int64) []byte { return data[:at+1] }, "ends within its header"},
		{"a batch cut short", func(data []byte, at int64) []byte { return data[:at+100] }, "ends beyond the file"},
		{"another magic", func(data []byte, at int64) []byte { data[at+16] = 1; return data }, "magic"},
		{"a length of 0", func(data []byte, at int64) []byte { put32(data[at+8:], 0); return data }, "less than a header's"},
		{"a negative length", func(data []byte, at int64) []byte { put32(data[at+8:], 1<<31); return data }, "less than a header's"},
		{"an offset again", func(data []byte, at int64) []byte {
			record.Batch(data[at:]).SetBaseOffset(record.Batch(data[200:]).LastOffset())
			return data
		}, "not after the one before"},
		{"a negative span", func(data []byte, at int64) []byte { put32(data[at+23:], 1<<31); return data }, "no offset"},
	} {
		o, _ := options(newDisk(t))
		s, m := sealedWith(t, o, 40, 200, 300, 200, 200)
		ok(t, s.Close())
		data := c.damage(m.bytes(), m.pos[2])
		overwrite(t, o, 40, LogSuffix, data)
		s = newSegment(o, 40, readOnly)
		s.size.Store(int64(len(data)))
		got, err := wholes(t, s)
		if len(got.batches) != 2 || !errors.Is(err, kerr.CorruptMessage) || !strings.Contains(fmt.Sprint(err), c.why) || !strings.Contains(fmt.Sprint(err), "position 500") {
			t.Errorf("%s: %d batches, %v", c.what, len(got.batches), err)
		}
		ok(t, s.Close())
		if _, err := wholes(t, s); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s, closed: %v", c.what, err)
		}
	}
}

// Whatever a log's bytes are, WholeBatches and Batches see the same, to the same place, and fail with CORRUPT_MESSAGE alone.
func FuzzWholeBatches(f *testing.F) {
	one, two := batch(5, 2, 100, 3), batch(9, 1, 70, 4)
	f.Add(slices.Concat[[]byte](one, two))
	f.Add(slices.Concat[[]byte](one, two)[:130])
	f.Add(slices.Concat[[]byte](two, one))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		o, _ := options(newDisk(t))
		overwrite(t, o, 5, LogSuffix, data)
		s := newSegment(o, 5, readOnly)
		s.size.Store(int64(len(data)))
		got, err := wholes(t, s)
		if err != nil && !errors.Is(err, kerr.CorruptMessage) {
			t.Fatal(err)
		}
		if !bytes.Equal(got.data, data[:got.size]) || err == nil && got.size != int64(len(data)) {
			t.Fatalf("%d bytes of %d", got.size, len(data))
		}
		headers := 0
		headersErr := s.Batches(0, func(pos int64, h record.Batch) bool {
			if headers == len(got.batches) || pos != got.pos[headers] || !bytes.Equal(h, got.batches[headers][:record.HeaderSize]) {
				t.Fatalf("header %d at %d", headers, pos)
			}
			headers++
			return true
		})
		if headers != len(got.batches) || fmt.Sprint(headersErr) != fmt.Sprint(err) {
			t.Fatalf("%d headers, %v; %d batches, %v", headers, headersErr, len(got.batches), err)
		}
		ok(t, s.Close())
	})
}

const cleaned = ".cleaned"

// rewritten goes through a segment as compaction does: each batch stays, goes, or is made a shorter one.
func rewritten(t testing.TB, s *Segment, change func(i int, b record.Batch) record.Batch) (*Rewrite, *model) {
	t.Helper()
	r, m, i := s.Rewrite(cleaned), &model{}, 0
	ok(t, s.WholeBatches(func(_ int64, b record.Batch) bool {
		now := change(i, b)
		i++
		if !bytes.Equal(now, b) {
			ok(t, r.Change(atOnce))
		}
		if now != nil {
			ok(t, r.Append(now))
			m.add(bytes.Clone(now))
		}
		if r.Size() != m.size {
			t.Fatalf("%d bytes, want %d", r.Size(), m.size)
		}
		return true
	}))
	return r, m
}

// ST-44, ST-47: what was written is the segment from the swap on, in this process and after it, with fitting indexes, whichever
// batches went or changed; until then it is the old one.
func TestARewrittenSegmentTakesThePlaceOfTheOldOne(t *testing.T) {
	sizes := slices.Concat(slices.Repeat([]int{150}, 300), []int{chunk + 100}, slices.Repeat([]int{3000}, 200), []int{2 * chunk})
	shorter := func(b record.Batch) record.Batch {
		return batch(b.BaseOffset(), b.LastOffsetDelta()+1, 100, b.MaxTimestamp())
	}
	modified := time.UnixMilli(1_234_567_000)
	for what, change := range map[string]func(i int, b record.Batch) record.Batch{
		"none stays":          func(int, record.Batch) record.Batch { return nil },
		"the first goes":      func(i int, b record.Batch) record.Batch { return only(i > 0, b) },
		"the last goes":       func(i int, b record.Batch) record.Batch { return only(i < len(sizes)-1, b) },
		"the last is shorter": func(i int, b record.Batch) record.Batch { return choose(i < len(sizes)-1, b, shorter(b)) },
		"all are shorter":     func(_ int, b record.Batch) record.Batch { return shorter(b) },
		"every third":         func(i int, b record.Batch) record.Batch { return only(i%3 == 0, b) },
		"a mix": func(i int, b record.Batch) record.Batch {
			r := rand.New(rand.NewPCG(uint64(i), 3))
			return choose(r.IntN(3) > 0, only(r.IntN(4) > 0, b), shorter(b))
		},
	} {
		t.Run(what, func(t *testing.T) {
			for _, o := range []*Options{first(options(newDisk(t))), osOptions(t)} {
				s, old := sealedWith(t, o, 40, sizes...)
				region := must[Region](t)(s.Read(40, 1<<30, true, -1))
				r, m := rewritten(t, s, change)
				old.check(t, s)
				var aborted []AbortedTxn
				if m.size > 0 {
					last := m.batches[0].LastOffset()
					aborted = []AbortedTxn{{ProducerID: 7, First: 3, Last: last, LastStable: last + 1}}
				}
				ok(t, r.Sync(modified, aborted))
				if !r.Changed() || m.size > 0 != (r.Last() != nil) || m.size > 0 && !bytes.Equal(r.Last(), m.batches[len(m.batches)-1][:record.HeaderSize]) {
					t.Error("changed", r.Changed(), "last", r.Last())
				}
				made := must[*Segment](t)(r.Swap())
				if _, err := s.Position(40); !errors.Is(err, fs.ErrClosed) {
					t.Errorf("the old one is not closed: %v", err)
				}
				if all := strings.Join(names(t, o), " "); strings.Contains(all, "index") {
					t.Error("indexes of the old log beside the new one:", all)
				}
				m.check(t, made)
				checkAborted(t, made, aborted)
				if got := read(t, region); !bytes.Equal(got, old.data) { // of who began before
					t.Error("a region of the old log has changed")
				}
				r.Settle()
				m.check(t, made)
				if n := len(content(t, o, 40, TxnIndexSuffix)); n != txnEntry*len(aborted) {
					t.Errorf("%d bytes of aborted transactions", n)
				}
				if info := must[fs.FileInfo](t)(o.FS.Stat(o.path(40, LogSuffix))); !info.ModTime().Equal(modified) {
					t.Error("its age is", info.ModTime())
				}
				ok(t, made.Close())
				if all := strings.Join(names(t, o), " "); strings.Contains(all, cleaned) {
					t.Error(all)
				}
				again := must[*Segment](t)(Open(o, 40))
				if again.repaired {
					t.Error("the indexes did not fit")
				}
				m.check(t, again)
				ok(t, again.Close())
			}
		})
	}
}

func first[T, U any](v T, _ U) T { return v }

func only(stays bool, b record.Batch) record.Batch { return choose(stays, b, nil) }

func choose(is bool, a, b record.Batch) record.Batch {
	if is {
		return a
	}
	return b
}

// ST-47: where nothing changes nothing is written.
func TestARewriteOfNothingWritesNothing(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	s, m := sealedWith(t, o, 40, 100, 300_000, 200)
	disk.OnOp(func(op vfs.Op) {
		if op.Kind != vfs.OpRead && op.Kind != vfs.OpOpen {
			t.Error(op)
		}
	})
	r, got := rewritten(t, s, func(_ int, b record.Batch) record.Batch { return b })
	if r.Changed() || got.size != m.size {
		t.Error("changed", r.Changed(), got.size)
	}
	ok(t, r.Discard())
	m.check(t, s)
	disk.OnOp(nil)
	if all := names(t, o); slices.ContainsFunc(all, func(name string) bool { return strings.HasSuffix(name, cleaned) }) {
		t.Error(all)
	}
	ok(t, s.Close())
}

// ST-48: one that is given up leaves no file, and the old segment as it was, wherever it stopped.
func TestARewriteThatIsGivenUp(t *testing.T) {
	for stop := range 4 {
		disk := faultfs.New(newDisk(t))
		o, _ := options(disk)
		s, m := sealedWith(t, o, 40, 100, 300_000, 300_000, 200)
		before := names(t, o)
		r := s.Rewrite(cleaned)
		if stop > 0 {
			ok(t, r.Append(m.batches[0]))
			ok(t, r.Change(atOnce))
			ok(t, r.Change(atOnce)) // again is nothing
		}
		if stop > 1 {
			ok(t, r.Append(m.batches[2]))
			ok(t, r.Append(m.batches[3]))
		}
		if stop > 2 {
			ok(t, r.Sync(time.Now(), nil))
		}
		ok(t, r.Discard())
		if after := names(t, o); !slices.Equal(after, before) {
			t.Errorf("stopped at %d: %v", stop, after)
		}
		m.check(t, s)
		ok(t, s.Close())
		if opened, closed := disk.Count(vfs.OpOpen|vfs.OpCreate), disk.Count(vfs.OpClose); opened != closed {
			t.Errorf("stopped at %d: %d files opened, %d closed", stop, opened, closed)
		}
	}
}

// ST-48: a disk that fails at any operation of a rewrite leaves a segment that opens, the old one or the new.
func TestARewriteThatFailsLeavesASegment(t *testing.T) {
	for n := 1; ; n++ {
		disk := faultfs.New(newDisk(t))
		o, _ := options(disk)
		s, old := sealedWith(t, o, 40, 100, 300_000, 200, 300)
		fault := disk.Fail(faultfs.Rule{Nth: n})
		var made *Segment
		m := &model{}
		err := func() error {
			r := s.Rewrite(cleaned)
			defer func() { _ = r.Discard() }() // a failed one, or of no file any more
			for i, b := range old.batches {
				if i == 1 {
					if err := r.Change(atOnce); err != nil {
						return err
					}
					continue
				}
				if err := r.Append(b); err != nil {
					return err
				}
				m.add(b)
			}
			err := r.Sync(time.Now(), nil)
			if err == nil {
				made, err = r.Swap()
			}
			return err
		}()
		fault.Remove()
		if made == nil {
			_ = s.Close() // it may be already
		} else {
			m.check(t, made)
			ok(t, made.Close())
		}
		again := must[*Segment](t)(Open(o, 40))
		switch again.Size() {
		case m.size:
			m.check(t, again)
		default:
			old.check(t, again)
			if err == nil {
				t.Fatalf("operation %d: no error, and the old log is there", n)
			}
		}
		ok(t, again.Close())
		if fault.Hits() == 0 {
			if err != nil || n < 12 {
				t.Error(n, "operations,", err)
			}
			return
		}
	}
}

// A large log reaches the disk piece by piece, so that nobody who waits for the disk waits for all of it.
func TestARewriteIsSyncedAsItGrows(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	s, m := sealedWith(t, o, 0, slices.Repeat([]int{100_000}, 300)...)
	r := s.Rewrite(".cleaned")
	ok(t, r.Change(atOnce))
	ok(t, s.WholeBatches(func(_ int64, b record.Batch) bool { return r.Append(b) == nil }))
	if want := m.size / syncEvery; r.Syncs() != want {
		t.Errorf("%d fsyncs for %d bytes, not %d", r.Syncs(), m.size, want)
	}
	ok(t, r.Sync(time.UnixMilli(1), nil))
	ok(t, r.Discard())
}

// atOnce is the pace of who does not wait.
func atOnce(int) error { return nil }

// ST-48: what comes before the first change is copied at the pace that is wanted, each piece of it, and no further than that says.
func TestTheCopyBeforeAChangeKeepsThePace(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	s, m := sealedWith(t, o, 0, slices.Repeat([]int{100_000}, 20)...)
	for ends := range int(m.size/chunk) + 1 {
		r := s.Rewrite(cleaned)
		for _, b := range m.batches {
			ok(t, r.Append(b))
		}
		stop, calls, bytes := errors.New("stop"), 0, 0
		err := r.Change(func(n int) error {
			if calls++; calls == ends {
				return stop
			}
			bytes += n
			return nil
		})
		switch {
		case ends == 0 && (err != nil || int64(bytes) != m.size):
			t.Errorf("%v; the pace was told of %d bytes of %d", err, bytes, m.size)
		case ends > 0 && (!errors.Is(err, stop) || calls != ends || bytes != (ends-1)*chunk):
			t.Errorf("%v; %d bytes, %d calls; the end was at call %d", err, bytes, calls, ends)
		}
		ok(t, r.Discard())
	}
	ok(t, s.Close())
	if opened, closed := disk.Count(vfs.OpOpen|vfs.OpCreate), disk.Count(vfs.OpClose); opened != closed {
		t.Errorf("%d files opened, %d closed", opened, closed)
	}
}
