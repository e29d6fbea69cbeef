package commitlog

import (
	"math/rand/v2"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// ListOffsets by timestamp agrees with a walk over all records, whatever
// their order, codec and segments, and from a log start within a batch.
func TestOffsetForTimestampAgreesWithAWalk(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	disk := crashfs.New()
	o := testOptions(disk, 3)
	o.Config.SegmentBytes, o.Config.IndexIntervalBytes, o.Config.SegmentMs = 2000, 200, 1<<40
	l := mustOpen(t, o)
	var all []TimestampOffset
	for range 60 {
		s := spec{n: 1 + rng.IntN(4), size: rng.IntN(200), timestamp: 1000 + rng.Int64N(300), codec: record.Codec(rng.IntN(5))}
		a := mustAppend(t, l, s)
		for i := range s.n {
			all = append(all, TimestampOffset{a.BaseOffset + int64(i), s.timestamp + int64(i), 3})
		}
	}
	check := func(l *Log) {
		t.Helper()
		start := l.Offsets().LogStart
		for ts := int64(990); ts < 1320; ts++ {
			want := noOffset
			for _, r := range all {
				if r.Timestamp >= ts && r.Offset >= start {
					want = r
					break
				}
			}
			if got, err := l.OffsetForTimestamp(ts, kafka.ReadUncommitted); err != nil || got != want {
				t.Fatalf("ts %d: %+v, %v; want %+v", ts, got, err, want)
			}
		}
	}
	check(l)
	largest := all[0]
	for _, r := range all {
		if r.Timestamp > largest.Timestamp {
			largest = r
		}
	}
	if got, err := l.OffsetForMaxTimestamp(kafka.ReadUncommitted); err != nil || got != largest {
		t.Errorf("max: %+v, %v; want %+v", got, err, largest)
	}
	mustClose(t, l)
	o = testOptions(disk, 4)
	o.Clean, o.LogStart = true, all[len(all)/2].Offset
	l = openNew(t, o)
	check(l)
}

func TestTimestampsOfAnEmptyLog(t *testing.T) {
	l := openNew(t, testOptions(crashfs.New(), 3))
	if got, err := l.OffsetForTimestamp(0, kafka.ReadUncommitted); err != nil || got != noOffset {
		t.Error(got, err)
	}
	if got, err := l.OffsetForMaxTimestamp(kafka.ReadUncommitted); err != nil || got != noOffset {
		t.Error(got, err)
	}
}

// All records of a LogAppendTime batch have the batch's timestamp.
func TestTimestampsOfLogAppendTime(t *testing.T) {
	o := testOptions(crashfs.New(), 3)
	o.Config.LogAppendTime = true
	l := openNew(t, o)
	a := mustAppend(t, l, spec{n: 3, timestamp: 5})
	want := TimestampOffset{0, a.LogAppendTime, 3}
	if got, err := l.OffsetForTimestamp(a.LogAppendTime, kafka.ReadUncommitted); err != nil || got != want {
		t.Error(got, err)
	}
	if got, err := l.OffsetForMaxTimestamp(kafka.ReadUncommitted); err != nil || got != want {
		t.Error(got, err)
	}
}

// ST-14: a batch whose records can't be read is found by its header.
func TestTimestampLookupInAnUnreadableBatch(t *testing.T) {
	l := openNew(t, testOptions(crashfs.New(), 3))
	bad := batch(t, spec{n: 3, timestamp: 1000, codec: record.Gzip})
	copy(bad[record.HeaderSize:], "this is not gzip")
	bad.SetCRC()
	l.mu.Lock()
	if err := l.makeDirLocked(); err != nil {
		t.Fatal(err)
	}
	if err := l.rollLocked(0, l.config.Load()); err != nil {
		t.Fatal(err)
	}
	if err := l.writeLocked(bad, l.config.Load()); err != nil {
		t.Fatal(err)
	}
	at := l.marks.load()
	at.End, at.LastStable, at.size = 3, 3, l.active.bytes()
	l.marks.store(at)
	l.mu.Unlock()
	want := TimestampOffset{0, 1002, 0}
	if got, err := l.OffsetForTimestamp(900, kafka.ReadUncommitted); err != nil || got != want {
		t.Error(got, err)
	}
	if got, err := l.OffsetForMaxTimestamp(kafka.ReadUncommitted); err != nil || got != want {
		t.Error(got, err)
	}
}
