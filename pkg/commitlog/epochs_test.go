package commitlog

import (
	"math/rand/v2"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
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
