package segment

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// aborts is a log in which every third batch is the abort marker of a transaction: of producer 5,
// and its first batch is the one before. Their index entries are returned.
func aborts(t testing.TB, s *Segment, n int) []AbortedTxn {
	t.Helper()
	var all []AbortedTxn
	for i := range n {
		base := s.base + int64(len(all))*3
		if i > 0 {
			base = all[i-1].Last + 1
		}
		for j := range int64(3) {
			b := batch(base+j, 1, 200, 1)
			if j == 1 {
				b[50] = 5 // the last byte of its producer id
				copy(b[43:50], make([]byte, 7))
				b.SetCRC()
			}
			if j == 2 {
				b = abortMarker(t, base+j)
			}
			ok(t, s.Append(b, 400))
		}
		a := AbortedTxn{ProducerID: 5, First: base + 1, Last: base + 2, LastStable: base + 3}
		s.AddAborted(a)
		all = append(all, a)
	}
	return all
}

func abortMarker(t testing.TB, offset int64) record.Batch {
	t.Helper()
	b, err := record.NewMarker(record.Marker{Type: record.Abort}, 5, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	b.SetBaseOffset(offset)
	return b
}

// checkAborted compares every kind of range with a walk over all entries.
func checkAborted(t testing.TB, s *Segment, all []AbortedTxn) {
	t.Helper()
	if n, known := s.AbortedKnown(); n != len(all) || !known {
		t.Fatalf("%d entries, known %v; want %d", n, known, len(all))
	}
	r := rand.New(rand.NewPCG(uint64(len(all)), 3))
	end := s.base + 10
	if len(all) > 0 {
		end = all[len(all)-1].Last + 10
	}
	for range 50 {
		from := s.base + r.Int64N(end-s.base)
		upTo := from + 1 + r.Int64N(end-from)
		var want []AbortedTxn
		wantDone := false
		for _, a := range all {
			if a.Last >= from && a.First < upTo {
				want = append(want, a)
			}
			if wantDone = a.LastStable >= upTo; wantDone {
				break
			}
		}
		got, done, err := s.Aborted(nil, from, upTo)
		if err != nil || !slices.Equal(got, want) || done != wantDone {
			t.Fatalf("%d to %d: %v %v %v, want %v %v", from, upTo, got, done, err, want, wantDone)
		}
	}
}

// ST-8: entries are found in memory, in the file while the segment is active, once it is
// sealed, and once it is opened again; a lookup reads by pread, not the whole file.
func TestAbortedTransactionsAreFound(t *testing.T) {
	for _, n := range []int{0, 1, 7, 130, 700, 1300} {
		disk := faultfs.New(newDisk(t))
		o, log := options(disk)
		s := create(t, o, 1000)
		all := aborts(t, s, n)
		checkAborted(t, s, all)
		ok(t, s.WriteIndexes(false))
		checkAborted(t, s, all)
		ok(t, s.Seal())
		checkAborted(t, s, all)
		ok(t, s.Close())
		s = must[*Segment](t)(Open(o, 1000))
		checkAborted(t, s, all)
		before := disk.Count(vfs.OpRead)
		if _, _, err := s.Aborted(nil, 1000+int64(n)*3-1, 1000+int64(n)*3); err != nil {
			t.Fatal(err)
		}
		if reads := disk.Count(vfs.OpRead) - before; reads > 6 {
			t.Errorf("%d entries: a lookup took %d reads", n, reads)
		}
		ok(t, s.Close())
		if log.Len() > 0 {
			t.Errorf("logged: %s", log)
		}
	}
}

// The layout is Kafka's (AbortedTxn).
func TestTransactionIndexLayout(t *testing.T) {
	disk := newDisk(t)
	o, _ := options(disk)
	s := create(t, o, 0)
	aborts(t, s, 1)
	ok(t, s.Seal())
	ok(t, s.Close())
	got, err := vfs.ReadFile(disk, o.path(0, TxnIndexSuffix))
	if err != nil {
		t.Fatal(err)
	}
	if want := "0000" + "0000000000000005" + "0000000000000001" + "0000000000000002" + "0000000000000003"; fmt.Sprintf("%x", got) != want {
		t.Errorf("%x, want %s", got, want)
	}
}

// ST-8: an index that is missing or no index of its log says so, and is replaced by what the log holds.
func TestUnknownAbortedTransactions(t *testing.T) {
	for what, spoil := range map[string]func(content []byte) []byte{
		"missing":          nil,
		"cut":              func(c []byte) []byte { return c[:len(c)-1] },
		"a version":        func(c []byte) []byte { c[len(c)-33] = 1; return c },
		"another producer": func(c []byte) []byte { c[len(c)-25]++; return c },
		"no marker":        func(c []byte) []byte { c[len(c)-17]--; c[len(c)-9]--; c[len(c)-1]--; return c },
		"zeros":            func(c []byte) []byte { clear(c); return c },
		"beyond the log":   func(c []byte) []byte { return append(c, appendTxn(nil, AbortedTxn{5, 1070, 1090, 1091})...) },
	} {
		disk := newDisk(t)
		o, _ := options(disk)
		s := create(t, o, 1000)
		all := aborts(t, s, 20)
		ok(t, s.Seal())
		ok(t, s.Close())
		rewrite(t, disk, o.path(1000, TxnIndexSuffix), spoil)
		s = must[*Segment](t)(Open(o, 1000))
		if _, known := s.AbortedKnown(); known {
			t.Errorf("%s: it passes", what)
		}
		if _, _, err := s.Aborted(nil, 1000, 2000); !errors.Is(err, ErrAborted) {
			t.Errorf("%s: %v", what, err)
		}
		s.SetAborted(all)
		checkAborted(t, s, all)
		ok(t, s.Close())
		s = must[*Segment](t)(Open(o, 1000))
		checkAborted(t, s, all)
		ok(t, s.Close())
	}
}

func rewrite(t testing.TB, disk vfs.FS, name string, change func([]byte) []byte) {
	t.Helper()
	content, err := vfs.ReadFile(disk, name)
	ok(t, err)
	ok(t, disk.Remove(name))
	if change == nil {
		return
	}
	f, err := disk.OpenFile(name, os.O_RDWR|os.O_CREATE, filePerm)
	ok(t, err)
	_, err = f.WriteAt(change(content), 0)
	ok(t, err)
	ok(t, f.Close())
}

// ST-8: an entry in the middle that does not follow the one before is noticed by the lookup that meets it.
func TestWrongEntryIsNoticedByTheLookup(t *testing.T) {
	disk := newDisk(t)
	o, _ := options(disk)
	s := create(t, o, 0)
	all := aborts(t, s, 20)
	ok(t, s.Seal())
	ok(t, s.Close())
	rewrite(t, disk, o.path(0, TxnIndexSuffix), func(c []byte) []byte {
		copy(c[5*txnEntry:], c[9*txnEntry:10*txnEntry])
		return c
	})
	s = must[*Segment](t)(Open(o, 0))
	if _, _, err := s.Aborted(nil, 0, 1000); !errors.Is(err, ErrAborted) {
		t.Fatal(err)
	}
	s.SetAborted(all)
	checkAborted(t, s, all)
	ok(t, s.Close())
}

// ST-8: entries that a process left in the index of a newest segment before it was killed do not
// follow those that recovery finds, also if there are fewer now.
func TestRecoveredTransactionIndexHasNothingOfBefore(t *testing.T) {
	disk := newDisk(t)
	o, _ := options(disk)
	s := create(t, o, 0)
	all := aborts(t, s, 20)
	ok(t, s.WriteIndexes(true))
	cut := must[int64](t)(s.Position(30)) // the power takes the second half of the log
	ok(t, s.Close())
	f, err := disk.OpenFile(o.path(0, LogSuffix), os.O_RDWR, 0)
	ok(t, err)
	ok(t, f.Truncate(cut))
	ok(t, f.Close())

	s, _, err = Recover(o, 0, false, 0, nil)
	ok(t, err)
	for _, a := range all[:10] {
		s.AddAborted(a)
	}
	checkAborted(t, s, all[:10])
	ok(t, s.Seal())
	ok(t, s.Close())
	s = must[*Segment](t)(Open(o, 0))
	checkAborted(t, s, all[:10])
	ok(t, s.Close())
}

// After a clean stop the index of the newest segment is taken as it is; of a log that is not as it was left, all is looked for anew.
func TestTransactionIndexAfterACleanStop(t *testing.T) {
	disk := newDisk(t)
	o, _ := options(disk)
	s := create(t, o, 0)
	all := aborts(t, s, 20)
	ok(t, s.WriteIndexes(true))
	ok(t, s.Close())
	s, _, err := Recover(o, 0, true, 1<<62, nil)
	ok(t, err)
	checkAborted(t, s, all)
	more := AbortedTxn{ProducerID: 6, First: 60, Last: 61, LastStable: 62}
	s.AddAborted(more)
	checkAborted(t, s, append(all, more))
	ok(t, s.Close())

	ok(t, disk.Remove(o.path(0, IndexSuffix)))
	s, r, err := Recover(o, 0, true, 1<<62, nil)
	ok(t, err)
	if _, known := s.AbortedKnown(); known || r.Scanned == 0 {
		t.Error("known, though nobody has seen the batches:", r)
	}
	ok(t, s.Close())
}

// A full disk keeps entries in memory; they are written once there is room, and found all the while.
func TestTransactionIndexOnAFullDisk(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	s := create(t, o, 0)
	all := aborts(t, s, 3)
	disk.Fail(faultfs.Rule{Kinds: vfs.OpCreate | vfs.OpWrite, Name: "*.txnindex", Times: 2})
	for range 2 {
		if err := s.Seal(); err == nil || errors.Is(err, ErrSync) {
			t.Fatal(err)
		}
		checkAborted(t, s, all)
	}
	ok(t, s.Seal())
	checkAborted(t, s, all)
	ok(t, s.Close())
	s = must[*Segment](t)(Open(o, 0))
	checkAborted(t, s, all)
	ok(t, s.Remove())
	if got := strings.Join(names(t, o), " "); got != "" {
		t.Error(got)
	}
}

// The upper bound of a read is that of the first index entry behind it, wherever that is.
func TestUpperBound(t *testing.T) {
	o, _ := options(newDisk(t))
	s := create(t, o, 100)
	m := &model{}
	fill(t, s, m, 8000, 700)
	check := func() {
		t.Helper()
		for i := 0; i < len(m.batches); i += 5 {
			got, found := s.UpperBound(m.pos[i])
			if !found {
				if len(m.batches)-i > 12 {
					t.Fatalf("batch %d of %d has no bound", i, len(m.batches))
				}
				continue
			}
			at := must[int64](t)(s.Position(got))
			if at < m.pos[i] || at-m.pos[i] > 4096+2*700 {
				t.Fatalf("the bound of position %d is at %d", m.pos[i], at)
			}
			if again, found := s.UpperBound(at); !found || again != got {
				t.Fatalf("the bound of position %d, where there is an entry, is %d, want %d", at, again, got)
			}
		}
		if _, found := s.UpperBound(m.size); found {
			t.Fatal("something is behind the end")
		}
	}
	check()
	ok(t, s.Seal())
	check()
	ok(t, s.Close())
	s = must[*Segment](t)(Open(o, 100))
	check()
	ok(t, s.Close())
}

// Whatever bytes an index has, a lookup answers with entries in order or says that it is none.
func FuzzTransactionIndex(f *testing.F) {
	f.Add([]byte{}, int64(1000), int64(1010))
	f.Add(appendTxn(nil, AbortedTxn{5, 1001, 1002, 1003}), int64(1000), int64(1002))
	f.Add(appendTxn(appendTxn(nil, AbortedTxn{5, 1001, 1002, 1003}), AbortedTxn{5, 1004, 1005, 1006}), int64(1003), int64(1100))
	f.Add(appendTxn(appendTxn(nil, AbortedTxn{5, 1001, 1008, 1003}), AbortedTxn{5, 1004, 1005, 1006}), int64(0), int64(1100))
	f.Fuzz(func(t *testing.T, content []byte, from, upTo int64) {
		disk := newDisk(t)
		o, _ := options(disk)
		s := create(t, o, 1000)
		all := aborts(t, s, 3)
		ok(t, s.Seal())
		ok(t, s.Close())
		rewrite(t, disk, o.path(1000, TxnIndexSuffix), func([]byte) []byte { return content })
		s = must[*Segment](t)(Open(o, 1000))
		defer s.Close()
		got, _, err := s.Aborted(nil, from, upTo)
		if err != nil {
			if !errors.Is(err, ErrAborted) {
				t.Fatal(err)
			}
			s.SetAborted(all)
			checkAborted(t, s, all)
			return
		}
		for i, a := range got {
			if a.First < 0 || a.Last <= a.First || a.Last < 1000 || a.Last < from || a.First >= upTo || i > 0 && a.Last <= got[i-1].Last {
				t.Fatalf("%d to %d: %v", from, upTo, got)
			}
		}
	})
}
