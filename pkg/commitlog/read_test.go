package commitlog

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// smallSegments is a log of n batches of 2 records, 4 batches a segment.
func smallSegments(t testing.TB, n int) *Log {
	o := testOptions(crashfs.New(), 1)
	size := int64(len(batch(t, spec{n: 2, size: 100, timestamp: 1000, id: 1})))
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes = 4*size, 300
	l := openNew(t, o)
	for i := range int32(n) {
		mustAppend(t, l, spec{n: 2, size: 100, timestamp: 1000 + 10*int64(i), id: 1, sequence: 2 * i})
	}
	return l
}

// The outcomes of a fetch at every kind of offset (reference 3.2).
func TestReadAtEveryKindOfOffset(t *testing.T) {
	l := smallSegments(t, 10) // offsets 0 to 19, segments at 0, 8, 16
	for _, offset := range []int64{-1, 21} {
		if _, err := l.Read(offset, 1000, true, kafka.ReadUncommitted); !errors.Is(err, kerr.OffsetOutOfRange) {
			t.Error(offset, err)
		}
	}
	s, err := l.Read(20, 1000, true, kafka.ReadUncommitted)
	if err != nil || s.Region.Length != 0 || s.Aborted != nil || s.HighWatermark != 20 {
		t.Error("at the end:", s, err)
	}
	for offset := range int64(20) {
		got := readAt(t, l, offset, 1<<20)
		wantBatches := 4 - int(offset%8/2)
		if offset >= 16 {
			wantBatches = 2 - int(offset-16)/2
		}
		if len(got) != wantBatches || got[0].BaseOffset() != offset/2*2 {
			t.Errorf("at %d: %d batches from %d", offset, len(got), got[0].BaseOffset())
		}
	}
}

// KIP-74: the first batch is whole, or, for a later partition, there is nothing.
func TestReadLimits(t *testing.T) {
	l := smallSegments(t, 10)
	size := len(contents(t, l)[0])
	for _, c := range []struct {
		maxBytes   int
		wholeFirst bool
		want       int
	}{{1, true, size}, {1, false, 0}, {size, false, size}, {size + 10, true, size + 10}, {3 * size, false, 3 * size}, {100 * size, false, 4 * size}, {0, true, size}} {
		s, err := l.Read(0, c.maxBytes, c.wholeFirst, kafka.ReadUncommitted)
		if err != nil || s.Region.Length != c.want {
			t.Errorf("%+v: %d, %v", c, s.Region.Length, err)
		}
		if s.Region.Release != nil {
			s.Region.Release()
		}
	}
}

// FX and TX-8's ground: a read-committed consumer stops at the last stable
// offset, and gets a list of aborted transactions even if it is empty.
func TestReadCommittedStopsAtTheLastStableOffset(t *testing.T) {
	l := smallSegments(t, 3)
	l.mu.Lock()
	open := batch(t, spec{n: 2, size: 100, timestamp: 2000, id: 2, txn: true})
	open.SetBaseOffset(2)
	if _, err := l.producers.Update(open); err != nil { // as if the batch at 2 had begun a transaction
		t.Fatal(err)
	}
	l.mu.Unlock()
	mustAppend(t, l, spec{n: 2, size: 100, timestamp: 1000})
	if at := l.Offsets(); at.LastStable != 2 || at.HighWatermark != 8 {
		t.Fatal(at)
	}
	s, err := l.Read(0, 1<<20, true, kafka.ReadCommitted)
	if err != nil || s.Aborted == nil {
		t.Fatal(s, err)
	}
	if got := batches(t, s.Region); len(got) != 1 {
		t.Error(len(got))
	}
	if s, err := l.Read(2, 1<<20, true, kafka.ReadCommitted); err != nil || s.Region.Length != 0 || s.Aborted == nil {
		t.Error(s, err)
	}
	committed, _ := l.Available(0, kafka.ReadCommitted)
	all, _ := l.Available(0, kafka.ReadUncommitted)
	if size := int64(len(open)); committed != size || all != 4*size {
		t.Error(committed, all)
	}
	if got, err := l.OffsetForTimestamp(1010, kafka.ReadCommitted); err != nil || got != noOffset {
		t.Error(got, err)
	}
}

func TestAvailable(t *testing.T) {
	l := smallSegments(t, 10)
	size := int64(len(contents(t, l)[0]))
	for _, c := range []struct {
		offset int64
		bytes  int64
		rolled bool
	}{{0, 4 * size, true}, {5, 2 * size, true}, {15, size, true}, {16, 2 * size, false}, {18, size, false}, {20, 0, false}, {30, 0, false}, {-5, 0, false}} {
		if bytes, rolled := l.Available(c.offset, kafka.ReadUncommitted); bytes != c.bytes || rolled != c.rolled {
			t.Error(c, bytes, rolled)
		}
	}
}

// A failed append must not be seen, not even its bytes on the disk.
func TestReadStopsAtThePublishedEnd(t *testing.T) {
	l := smallSegments(t, 3)
	b := batch(t, spec{n: 2, size: 100, timestamp: 2000})
	b.SetBaseOffset(6)
	if err := l.active.opened.Load().Append(b, 300); err != nil {
		t.Fatal(err) // written, and not yet published
	}
	if got := readAt(t, l, 0, 1<<20); len(got) != 3 {
		t.Error(len(got))
	}
	if bytes, _ := l.Available(4, kafka.ReadUncommitted); bytes != int64(len(b)) && len(contents(t, l)) != 3 {
		t.Error(bytes)
	}
}

func BenchmarkRead(b *testing.B) {
	o := osDisk(b, testOptions(nil, 1))
	o.Config.SegmentBytes = 64 << 20
	l := openNew(b, o)
	for range 500 {
		mustAppend(b, l, spec{n: 64, size: 1000})
	}
	b.ReportAllocs()
	offset := int64(0)
	for b.Loop() {
		s, err := l.Read(offset, 1<<20, true, kafka.ReadUncommitted)
		if err != nil {
			b.Fatal(err)
		}
		s.Region.Release()
		offset = (offset + 640) % s.End
	}
}
