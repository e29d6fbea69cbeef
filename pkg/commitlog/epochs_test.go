package commitlog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// ST-57: each start stamps a higher epoch, and OffsetForLeaderEpoch finds where
// each ended, as an epoch cache would (LeaderEpochFileCache), over segments,
// epochs without a batch, and every log start.
func TestEndOffsetForEpochAgreesWithACache(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	disk := crashfs.New()
	type start struct {
		epoch  int32
		offset int64
	}
	var cache []start
	end := int64(0)
	open := func(epoch int32, logStart int64) *Log {
		o := testOptions(disk, epoch)
		o.Config.SegmentBytes, o.Config.IndexIntervalBytes, o.LogStart = 1500, 200, logStart
		return mustOpen(t, o)
	}
	check := func(l *Log, current int32) {
		t.Helper()
		at := l.Offsets()
		for epoch := int32(-2); epoch <= current+1; epoch++ {
			// The cache of this start: earlier epochs with batches, then the current one.
			known := append(append([]start(nil), cache...), start{current, l.opened})
			for len(known) > 1 && known[1].offset <= at.LogStart {
				known = known[1:]
			}
			known[0].offset = max(known[0].offset, at.LogStart)
			wantEpoch, wantEnd := int32(-1), int64(-1)
			switch {
			case epoch == current:
				wantEpoch, wantEnd = epoch, at.End
			case epoch == -1 || epoch > current:
			case epoch < known[0].epoch:
				wantEpoch, wantEnd = epoch, known[0].offset
			default:
				for i, k := range known {
					if k.epoch <= epoch {
						wantEpoch, wantEnd = k.epoch, known[i+1].offset
					}
				}
			}
			gotEpoch, gotEnd, err := l.EndOffsetForEpoch(epoch)
			if err != nil || gotEpoch != wantEpoch || gotEnd != wantEnd {
				t.Fatalf("epoch %d of %d, start %d: %d, %d, %v; want %d, %d (%v)", epoch, current, at.LogStart, gotEpoch, gotEnd, err, wantEpoch, wantEnd, known)
			}
			if e, err := l.EarliestEpoch(); err != nil || e != known[0].epoch {
				t.Fatalf("earliest epoch %d, %v; want %d", e, err, known[0].epoch)
			}
		}
	}
	epoch := int32(0)
	for range 12 {
		epoch += 1 + int32(rng.IntN(3))
		l := open(epoch, 0)
		check(l, epoch)
		from := end
		for range rng.IntN(12) {
			end = mustAppend(t, l, spec{n: 1 + rng.IntN(3), size: 100}).End
		}
		check(l, epoch)
		if end > from {
			cache = append(cache, start{epoch, from})
		}
		l.Abandon()
	}
	for logStart := range end + 1 {
		l := open(epoch+1, logStart)
		check(l, epoch+1)
		l.Abandon()
	}
}

// ST-57, ST-44: after compactions, which leave gaps at the ends of epochs, and epochs without a batch, no epoch ends before the last offset
// that a consumer may have got of it: it would take that for a log that was cut.
func TestNoEpochEndsEarlierForACompaction(t *testing.T) {
	gaps := 0
	for seed := range uint64(30) {
		disk := crashfs.New()
		m := newKeyed(t, mustOpen(t, keyedOptions(testOptions(disk, 0))), seed)
		var ends []int64 // of each epoch
		for epoch := range int32(8) {
			for range 1 + m.rng.IntN(8) {
				if err := m.put(0, false, record.None, keyedRecord{key: fmt.Sprint("k", m.rng.IntN(3)), value: "v"}); err != nil {
					t.Fatal(err)
				}
				if m.rng.IntN(4) == 0 {
					if err := m.l.Roll(); err != nil {
						t.Fatal(err)
					}
				}
			}
			ends = append(ends, m.l.Offsets().End)
			if m.rng.IntN(2) == 0 {
				if err := errors.Join(m.l.Roll(), m.compact()); err != nil {
					t.Fatal(err)
				}
			}
			m.l.Abandon()
			m.l = mustOpen(t, keyedOptions(testOptions(disk, epoch+1)))
			for e, end := range ends {
				found, got, err := m.l.EndOffsetForEpoch(int32(e))
				if err != nil || got < end || got > m.l.opened || found > int32(e) {
					t.Fatalf("seed %d: epoch %d ended at %d: epoch %d, %d, %v; the log has %v", seed, e, end, found, got, err, m.found(0))
				}
				if got > end {
					gaps++
				}
			}
		}
		m.l.Abandon()
	}
	if gaps == 0 {
		t.Error("no epoch has lost its end")
	}
}

// ST-48, ST-57: a segment whose first epoch is looked up while a rewritten log takes its place is remembered with that of the new log.
func TestTheFirstEpochOfASegmentIsThatOfItsLog(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	open := func(epoch int32) *keyed { return newKeyed(t, mustOpen(t, keyedOptions(testOptions(disk, epoch))), 1) }
	key := func(k string) keyedRecord { return keyedRecord{key: k, value: "1"} }
	m := open(1)
	if err := errors.Join(m.put(0, false, record.None, key("first")), m.l.Roll(), m.put(0, false, record.None, key("a")), m.l.Close()); err != nil {
		t.Fatal(err)
	}
	m = open(2)
	if err := errors.Join(m.put(0, false, record.None, key("b")), m.put(0, false, record.None, key("a")), m.l.Roll(), m.put(0, false, record.None, key("c"))); err != nil {
		t.Fatal(err)
	}
	p := (*m.l.parts.Load())[1]
	if _, err := m.l.open(p); err != nil {
		t.Fatal(err)
	}
	swapped := false
	disk.OnOp(func(op vfs.Op) {
		if op.Kind == vfs.OpRead && !swapped {
			swapped = true
			if _, err := m.l.Compact(t.Context(), Compaction{Keys: NewKeyMap(10)}); err != nil {
				t.Error(err)
			}
		}
	})
	if _, err := m.l.firstEpoch(p); err != nil && !errors.Is(err, errGone) {
		t.Fatal(err)
	}
	disk.OnOp(nil)
	if got, err := m.l.firstEpoch(p); err != nil || got != 2 || p.swaps.Load() != 1 {
		t.Errorf("epoch %d, %v, %d swaps", got, err, p.swaps.Load())
	}
	if epoch, end, err := m.l.EndOffsetForEpoch(1); err != nil || epoch != 1 || end != 2 {
		t.Error(epoch, end, err)
	}
	mustClose(t, m.l)
}
