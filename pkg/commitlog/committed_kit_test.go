package commitlog

import (
	"slices"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// A txn is a transaction as the batches of a log show it.
type txn struct {
	id          int64
	first, last int64 // of its first batch; of its marker, or -1 while it is open
	aborted     bool
}

// transactions reads the truth off the batches: every transaction that has one, by its first.
func transactions(t testing.TB, all []record.Batch) []*txn {
	t.Helper()
	var out []*txn
	open := map[int64]*txn{}
	for _, b := range all {
		switch id := b.ProducerID(); {
		case b.Control():
			m, err := b.Marker()
			if err != nil {
				t.Fatal(err)
			}
			if x := open[id]; x != nil {
				x.last, x.aborted = b.BaseOffset(), m.Type == record.Abort
				delete(open, id)
			}
		case b.Transactional() && open[id] == nil:
			open[id] = &txn{id: id, first: b.BaseOffset(), last: -1}
			out = append(out, open[id])
		}
	}
	return out
}

// stableOf is the last stable offset of transactions in a log that ends in end.
func stableOf(all []*txn, end int64) int64 {
	for _, x := range all {
		if x.last < 0 {
			return min(x.first, end)
		}
	}
	return end
}

// consumed is what a read-committed consumer makes of one read (the filter of the Java
// client's CompletedFetch): the offsets of the batches that it shows. next is where it reads on.
func consumed(t testing.TB, got []record.Batch, aborted []AbortedTransaction) (shown []int64, next int64) {
	t.Helper()
	queue := slices.Clone(aborted)
	slices.SortFunc(queue, func(a, b AbortedTransaction) int { return int(a.FirstOffset - b.FirstOffset) })
	dropping := map[int64]bool{}
	for _, b := range got {
		for len(queue) > 0 && queue[0].FirstOffset <= b.LastOffset() {
			dropping[queue[0].ProducerID] = true
			queue = queue[1:]
		}
		next = b.LastOffset() + 1
		id := b.ProducerID()
		switch {
		case b.Control():
			if m, err := b.Marker(); err != nil {
				t.Fatal(err)
			} else if m.Type == record.Abort {
				delete(dropping, id)
			}
		case b.Transactional() && dropping[id]:
		default:
			shown = append(shown, b.BaseOffset())
		}
	}
	return shown, next
}

// checkCommitted reads the whole log as read-committed consumers do, from several
// offsets and with several limits, and wants of each exactly what is committed: nothing at or above
// the last stable offset, nothing aborted, all else (TX-8).
func checkCommitted(t testing.TB, l *Log, what string) {
	t.Helper()
	at := l.Offsets()
	all := contents(t, l)
	txns := transactions(t, all)
	// Below the log start an open transaction may have begun of which no batch is left.
	if stable := stableOf(txns, at.End); at.LastStable != stable && (at.LogStart == 0 || at.LastStable != at.LogStart) {
		t.Fatalf("%s: last stable offset %d, want %d", what, at.LastStable, stable)
	}
	var want []int64
	for _, b := range all {
		if b.BaseOffset() < at.LastStable && !b.Control() && (!b.Transactional() || !isAborted(txns, b)) {
			want = append(want, b.BaseOffset())
		}
	}
	for from := 0; from <= len(all); from += 1 + len(all)/3 {
		for _, maxBytes := range []int{1, 700, 1 << 20} {
			offset := at.End
			if from < len(all) {
				offset = max(at.LogStart, all[from].BaseOffset())
			}
			checkConsumer(t, l, offset, maxBytes, want, what)
		}
	}
}

func isAborted(txns []*txn, b record.Batch) bool {
	return slices.ContainsFunc(txns, func(x *txn) bool {
		return x.id == b.ProducerID() && x.first <= b.BaseOffset() && b.BaseOffset() < x.last && x.aborted
	})
}

func checkConsumer(t testing.TB, l *Log, offset int64, maxBytes int, want []int64, what string) {
	t.Helper()
	from, stable := offset, l.Offsets().LastStable
	var shown []int64
	for offset < stable {
		s, err := l.Read(offset, maxBytes, true, kafka.ReadCommitted)
		if err != nil {
			t.Fatalf("%s: read at %d: %v", what, offset, err)
		}
		got, next := consumed(t, batches(t, s.Region), s.Aborted)
		if next <= offset || next > stable {
			t.Fatalf("%s: the read at %d goes on at %d, stable is %d", what, offset, next, stable)
		}
		shown, offset = append(shown, got...), next
	}
	for len(want) > 0 && want[0] < from && (len(shown) == 0 || shown[0] != want[0]) {
		want = want[1:]
	}
	if !slices.Equal(shown, want) {
		t.Fatalf("%s: from %d by %d bytes a read-committed consumer sees %v, want %v", what, from, maxBytes, shown, want)
	}
}

// end appends a marker.
func end(t testing.TB, l *Log, m Marker) Appended {
	t.Helper()
	a, err := l.AppendMarker(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
