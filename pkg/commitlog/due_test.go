package commitlog

import (
	"math"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// aged is a log that is compacted, with segments of one record each, at these times (ms), and an empty active one.
func aged(t testing.TB, change func(*Config), times ...int64) *Log {
	t.Helper()
	o := testOptions(crashfs.New(), 1)
	cfg := *o.Config
	cfg.Compact, cfg.MaxCompactionLagMs, cfg.TimestampAfterMs = true, math.MaxInt64, math.MaxInt64
	change(&cfg)
	o.Config = &cfg
	l := openNew(t, o)
	for _, ts := range times {
		putAt(t, l, ts, "k", "v")
		if err := l.Roll(); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// putAt appends one record; its time may be 0.
func putAt(t testing.TB, l *Log, ts int64, key, value string) {
	t.Helper()
	b := record.NewBuilder(record.Options{})
	if err := b.Append(ts, field(key), field(value)); err != nil {
		t.Fatal(err)
	}
	batch, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(batch); err != nil {
		t.Fatal(err)
	}
}

// ST-40, ST-41, ST-47: when a log is due, and up to where, as LogCleanerManager decides.
func TestWhenALogIsDue(t *testing.T) {
	ratio := func(r float64) func(*Config) { return func(c *Config) { c.MinDirtyRatio = r } }
	minLag := func(ms int64) func(*Config) { return func(c *Config) { c.MinCompactionLagMs = ms } }
	maxLag := func(ms int64) func(*Config) {
		return func(c *Config) { c.MinDirtyRatio, c.MaxCompactionLagMs = 1, ms }
	}
	both := func(least, most int64) func(*Config) {
		return func(c *Config) { maxLag(most)(c); c.MinCompactionLagMs = least }
	}
	for _, c := range []struct {
		what   string
		change func(*Config)
		times  []int64
		from   int64
		now    int64
		due    bool
		to     int64
	}{
		{"a ratio of 0", ratio(0), []int64{1000, 1000}, 1, 5000, true, 2},
		{"a ratio of 0, and nothing dirty", ratio(0), []int64{1000, 1000}, 2, 5000, false, 2},
		{"as dirty as the ratio", ratio(0.5), []int64{1000, 1000}, 1, 5000, false, 2},
		{"dirtier than the ratio", ratio(0.5), []int64{1000, 1000, 1000}, 1, 5000, true, 3},
		{"a ratio of 1", ratio(1), []int64{1000, 1000}, 0, 5000, false, 2},
		{"a segment as old as the least lag", minLag(1000), []int64{1000, 1001, 1000}, 0, 2000, true, 1},
		{"a millisecond later", minLag(1000), []int64{1000, 1001, 1000}, 0, 2001, true, 3},
		{"younger than the least lag", minLag(1000), []int64{1001, 1000}, 0, 2000, false, 0},
		{"younger, but clean already", minLag(1000), []int64{5000, 1000}, 1, 2000, true, 2},
		{"of the future", minLag(1), []int64{9000, 1000}, 0, 2000, false, 0},
		{"of the future, without a least lag", minLag(0), []int64{9000, 1000}, 0, 2000, true, 2},
		{"the clock was set back", minLag(1000), []int64{5000, 5001}, 0, 100, false, 0},
		{"as old as the most lag", maxLag(1000), []int64{1000, 1500}, 0, 2000, false, 2},
		{"older than the most lag", maxLag(1000), []int64{1000, 1500}, 0, 2001, true, 2},
		{"a later segment is older than the most lag", maxLag(1000), []int64{1900, 1000}, 0, 2001, true, 2},
		{"older, but clean already", maxLag(1000), []int64{1000, 1500}, 1, 2001, false, 2},
		{"a timestamp of 0 is none", maxLag(1000), []int64{0, 1500}, 0, 2001, false, 2},
		{"a timestamp of 0 hides no other", maxLag(1000), []int64{0, 1000}, 0, 2001, true, 2},
		{"no timestamps", maxLag(1000), []int64{-1, -1}, 0, math.MaxInt64, false, 2},
		{"of the future, most lag", maxLag(1000), []int64{9000}, 0, 2001, false, 1},
		{"the clock was set back, most lag", maxLag(1000), []int64{1000}, 0, 100, false, 1},
		{"older than the most lag, and not as old as the least", both(3000, 1000), []int64{1000}, 0, 2001, false, 0},
		{"a first dirty offset beyond the log", ratio(0), []int64{1000, 1000}, 50, 5000, true, 2},
	} {
		l := aged(t, c.change, c.times...)
		due, err := l.Due(c.from, c.now)
		d, dirtyErr := l.Dirty(c.from, c.now)
		if err != nil || dirtyErr != nil || due != c.due || d.To != max(c.to, d.From) {
			t.Errorf("%s: due %v, %v; dirty %+v, %v; want %v, up to %d", c.what, due, err, d, dirtyErr, c.due, c.to)
		}
	}
}

// A log that is not compacted, or has nothing sealed, is never due; an empty one neither.
func TestALogWithNothingToCompactIsNotDue(t *testing.T) {
	plain := aged(t, func(c *Config) { c.Compact = false }, 1000, 1000)
	if due, err := plain.Due(0, 5000); due || err != nil {
		t.Error("not compacted:", due, err)
	}
	for _, records := range []int{0, 3} {
		l := aged(t, func(*Config) {})
		for range records {
			putAt(t, l, 1000, "k", "v")
		}
		due, err := l.Due(0, 5000)
		d, dirtyErr := l.Dirty(0, 5000)
		if due || err != nil || d != (Dirt{}) || dirtyErr != nil {
			t.Errorf("%d records in the active segment: %v, %v; %+v, %v", records, due, err, d, dirtyErr)
		}
	}
}

// ST-41: from the first segment with a record of an open transaction on nothing is compacted.
func TestALogIsNotDueBeyondItsLastStableOffset(t *testing.T) {
	l := aged(t, func(*Config) {}, 1000)
	if _, err := l.AppendVerified(batch(t, spec{id: 7, txn: true, timestamp: 1000}), producer.VerifiedInTxn); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Roll(); err != nil {
			t.Fatal(err)
		}
		putAt(t, l, 1000, "k", "v")
	}
	if d, err := l.Dirty(0, 5000); err != nil || d.To != 1 || d.Ratio != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	if due, err := l.Due(1, 5000); due || err != nil {
		t.Error(due, err)
	}
	if _, err := l.AppendMarker(Marker{ProducerID: 7, Commit: true}); err != nil {
		t.Fatal(err)
	}
	if d, err := l.Dirty(1, 5000); err != nil || d.To != l.Offsets().End-1 { // the marker has rolled, as it is of now
		t.Errorf("after the end: %+v, %v", d, err)
	}
}
