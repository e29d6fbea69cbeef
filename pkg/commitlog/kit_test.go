package commitlog

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

var testTopicID = kafka.TopicID{1, 2, 3}

const testDir = "demo-0"

// testConfig is Kafka's defaults, with small segments.
func testConfig() *Config {
	return &Config{
		SegmentBytes: 1 << 20, SegmentMs: 7 * 24 * 3600 * 1000, IndexIntervalBytes: 4096, MaxMessageBytes: 1 << 20,
		TimestampBeforeMs: math.MaxInt64, TimestampAfterMs: 3600 * 1000,
		FlushMessages: math.MaxInt64, FlushMs: math.MaxInt64, Compression: Compression{Producer: true},
	}
}

func testOptions(fsys vfs.FS, epoch int32) Options {
	return Options{
		Shared: &Shared{
			FS: fsys, Clock: clock.System, Files: segment.NewFiles(8), Epoch: epoch,
			AcksAllSync: true, ProducerExpiration: 24 * time.Hour, Stats: new(Stats),
		},
		Dir: testDir, Partition: kafka.TopicPartition{Topic: "demo"}, TopicID: testTopicID, Config: testConfig(), Clean: false,
	}
}

func mustOpen(t testing.TB, o Options) *Log {
	t.Helper()
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// openNew opens a log that is closed with the test.
func openNew(t testing.TB, o Options) *Log {
	t.Helper()
	l := mustOpen(t, o)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// a spec makes a client's batch.
type spec struct {
	n         int // records; 0 is 1
	size      int // bytes of each value
	timestamp int64
	codec     record.Codec
	id        int64 // producer; 0: none
	epoch     int16
	sequence  int32
	tag       string // in the values
	txn       bool
}

func batch(t testing.TB, s spec) record.Batch {
	t.Helper()
	o := record.Options{Codec: s.codec, Transactional: s.txn}
	if s.id != 0 {
		o.Producer = &record.Producer{ID: s.id, Epoch: s.epoch, BaseSequence: s.sequence}
	}
	if s.timestamp == 0 {
		s.timestamp = time.Now().UnixMilli()
	}
	b := record.NewBuilder(o)
	for i := range max(s.n, 1) {
		value := append(fmt.Appendf(nil, "%s/%d", s.tag, i), make([]byte, s.size)...)
		if err := b.Append(s.timestamp+int64(i), fmt.Appendf(nil, "k%d", i), value); err != nil {
			t.Fatal(err)
		}
	}
	out, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustAppend(t testing.TB, l *Log, s spec) Appended {
	t.Helper()
	a, err := l.Append(batch(t, s))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func mustFlush(t testing.TB, l *Log) {
	t.Helper()
	if err := l.AwaitFlushed(t.Context(), l.Offsets().End); err != nil {
		t.Fatal(err)
	}
}

func mustClose(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// contents reads the whole log as a consumer does: batch by batch, checking
// every checksum and that offsets follow one another.
func contents(t testing.TB, l *Log) []record.Batch {
	t.Helper()
	at := l.Offsets()
	var all []record.Batch
	for offset := at.LogStart; offset < at.HighWatermark; {
		got := readAt(t, l, offset, 1<<20)
		if len(got) == 0 {
			t.Fatalf("nothing at offset %d of %d", offset, at.HighWatermark)
		}
		for _, b := range got {
			if b.BaseOffset() > offset || b.LastOffset() < offset {
				t.Fatalf("offsets %d to %d follow %d", b.BaseOffset(), b.LastOffset(), offset)
			}
			if err := b.CheckCRC(); err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
			offset = b.LastOffset() + 1
		}
	}
	return all
}

// readAt reads once, and returns the whole batches of the region.
func readAt(t testing.TB, l *Log, offset int64, maxBytes int) []record.Batch {
	t.Helper()
	s, err := l.Read(offset, maxBytes, true, kafka.ReadUncommitted)
	if err != nil {
		t.Fatal(err)
	}
	return batches(t, s.Region)
}

func batches(t testing.TB, r segment.Region) []record.Batch {
	t.Helper()
	if r.Length == 0 {
		return nil
	}
	defer r.Release()
	buf := make([]byte, r.Length)
	if _, err := r.File.ReadAt(buf, r.Offset); err != nil {
		t.Fatal(err)
	}
	var all []record.Batch
	for len(buf) > 0 {
		b, rest, err := record.Parse(buf)
		if err != nil {
			break // a region may end within a batch
		}
		all, buf = append(all, b), rest
	}
	return all
}

// osDisk is a real directory as the data directory.
func osDisk(t testing.TB, o Options) Options {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv("COMMITLOG_TEST_DIR"), "commitlog")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	o.FS = vfs.OS
	o.Dir = dir + "/" + testDir
	return o
}
