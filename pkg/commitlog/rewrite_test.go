package commitlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// ST-48: readers that scan without pause, of all records or of committed ones, and lookups by timestamp, see no error and no
// offset out of order during 100 compactions and their swaps.
func TestReadersGoOnDuringCompactions(t *testing.T) {
	compactions := 100
	if short() {
		compactions = 30
	}
	o := keyedOptions(testOptions(crashfs.New(), 1))
	m := newKeyed(t, openNew(t, o), 5)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for _, iso := range []kafka.Isolation{kafka.ReadUncommitted, kafka.ReadCommitted, kafka.ReadCommitted} {
		readers.Go(func() {
			for ctx.Err() == nil {
				if err := scan(m.l, iso); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	readers.Go(func() {
		for ts := int64(0); ctx.Err() == nil; ts++ {
			at, err := m.l.OffsetForTimestamp(11_000+ts%2000, kafka.ReadUncommitted)
			if err == nil {
				_, err = m.l.OffsetForMaxTimestamp(kafka.ReadCommitted)
			}
			if err == nil {
				_, _, err = m.l.EndOffsetForEpoch(0)
			}
			if err != nil {
				t.Error(at, err)
				return
			}
		}
	})
	for range compactions {
		for range 12 {
			if err := m.step(); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(m.l.Roll(), m.compact()); err != nil {
			t.Fatal(err)
		}
		m.now += deleteRetention / 2
	}
	stop()
	readers.Wait()
	m.check()
	if n := o.Stats.Rewritten.Load(); n < int64(compactions) {
		t.Error("only", n, "segments were rewritten")
	}
}

// scan reads from the log start to the end. A consumer that is told too little of what was aborted would see a value of it.
func scan(l *Log, iso kafka.Isolation) error {
	at := l.Offsets()
	for offset := at.LogStart; offset < at.HighWatermark; {
		if bytes, _ := l.Available(offset, iso); bytes < 0 {
			return fmt.Errorf("%d bytes at %d", bytes, offset)
		}
		s, err := l.Read(offset, 1000, true, iso)
		if err != nil {
			return err
		}
		if s.Region.Length == 0 {
			return nil
		}
		buf := make([]byte, s.Region.Length)
		_, err = s.Region.File.ReadAt(buf, s.Region.Offset)
		s.Region.Release()
		if err != nil {
			return err
		}
		for len(buf) > 0 {
			b, rest, err := record.Parse(buf)
			if err != nil {
				break // the region ends within a batch
			}
			if b.LastOffset() < offset {
				return fmt.Errorf("offsets %d to %d where %d is next", b.BaseOffset(), b.LastOffset(), offset)
			}
			if err := b.CheckCRC(); err != nil {
				return err
			}
			offset, buf = b.LastOffset()+1, rest
		}
	}
	return nil
}

// ST-47: a rewritten batch is uncompressed, or in the topic's codec; it keeps its own where it would get larger than it was, or the
// segment too large; one that loses nothing is the same byte for byte.
func TestTheCodecOfRewrittenBatches(t *testing.T) {
	for _, c := range []struct {
		name    string
		size    int
		change  func(*Config)
		rebuilt record.Codec
	}{
		{"producer", 0, func(*Config) {}, record.None},
		{"larger than it was", 100_000, func(*Config) {}, record.LZ4},
		{"zstd", 500, func(c *Config) { c.Compression = Compression{Codec: record.Zstd} }, record.Zstd},
		{"too large", 0, func(c *Config) { c.SegmentBytes = 150 }, record.LZ4},
	} {
		o := testOptions(crashfs.New(), 1)
		l := openNew(t, o)
		whole := mustAppend(t, l, spec{n: 1, size: 100, codec: record.LZ4, tag: "before"}) // its key is k0
		mustAppend(t, l, spec{n: 3, size: c.size, codec: record.LZ4})                      // k0 to k2
		mustAppend(t, l, spec{n: 1, size: 100, codec: record.Gzip})                        // k0
		before := contents(t, l)
		if err := l.Roll(); err != nil {
			t.Fatal(err)
		}
		cfg := *o.Config
		c.change(&cfg)
		l.SetConfig(&cfg)
		got, err := l.Compact(t.Context(), Compaction{Keys: NewKeyMap(10)})
		if err != nil || got.Rewritten != 1 || got.Next != 5 || got.More {
			t.Fatal(c.name, got, err)
		}
		after := readAt(t, l, whole.BaseOffset, 1<<20)
		if len(after) != 2 || after[0].Codec() != c.rebuilt || after[0].Count() != 2 || !slices.Equal(after[1], before[2]) {
			t.Errorf("%s: %d batches, codec %v", c.name, len(after), after[0].Codec())
		}
	}
}

// ST-48: a rewrite does not postpone retention, of records without timestamps neither.
func TestARewrittenSegmentKeepsItsAge(t *testing.T) {
	disk := crashfs.New()
	l := openNew(t, testOptions(disk, 1))
	for range 2 {
		mustAppend(t, l, spec{timestamp: record.NoTimestamp})
	}
	if err := l.Roll(); err != nil {
		t.Fatal(err)
	}
	name := testDir + "/00000000000000000000.log"
	old := time.UnixMilli(1_000_000)
	if err := disk.SetModTime(name, old); err != nil {
		t.Fatal(err)
	}
	before := l.Size()
	got, err := l.Compact(t.Context(), Compaction{Keys: NewKeyMap(10)})
	if err != nil || got.Rewritten != 1 {
		t.Fatal(got, err)
	}
	stats := l.o.Stats
	if got.Removed != 1 || got.Reclaimed != before-l.Size() || got.Written != l.Size() || got.Read != 2*before || stats.Compacted.Load() != got.Read ||
		stats.Written.Load() != got.Written || stats.Reclaimed.Load() != got.Reclaimed || stats.Superseded.Load() != got.Removed {
		t.Error("the figures of a pass:", got, before, l.Size())
	}
	if info, err := disk.Stat(name); err != nil || !info.ModTime().Equal(old) {
		t.Error(info.ModTime(), err)
	}
}

// ST-47: with compression.type=gzip small uncompressed batches would get larger; they do not where the segment would pass segment.bytes.
func TestBatchesStayUncompressedWhereTheSegmentWouldBeTooLarge(t *testing.T) {
	for _, c := range []struct {
		room int64 // in the segment, beside what it has
		want []record.Codec
	}{
		{1000, []record.Codec{record.Gzip, record.Gzip, record.Gzip, record.None}},
		{0, []record.Codec{record.None, record.None, record.None, record.None}},
	} {
		l := aged(t, func(c *Config) { c.Compression = Compression{Producer: true} })
		for _, key := range []string{"a", "b", "c"} {
			putAt(t, l, 1000, key, "-") // loses nothing, and gets a delete horizon
		}
		if err := l.Roll(); err != nil {
			t.Fatal(err)
		}
		putAt(t, l, 1000, "active", "v")
		cfg := *l.config.Load()
		cfg.Compression, cfg.SegmentBytes = Compression{Codec: record.Gzip, Level: -1}, (*l.parts.Load())[0].bytes()+c.room
		l.SetConfig(&cfg)
		if got, err := l.Compact(t.Context(), Compaction{Keys: NewKeyMap(10), NowMs: 1000}); err != nil || got.Rewritten != 1 {
			t.Fatal(got, err)
		}
		var got []record.Codec
		for _, offset := range []int64{0, 3} {
			for _, b := range readAt(t, l, offset, 1<<20) {
				got = append(got, b.Codec())
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("room %d: codecs %v, want %v", c.room, got, c.want)
		}
		mustClose(t, l)
	}
}
