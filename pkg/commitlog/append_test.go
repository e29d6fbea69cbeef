package commitlog

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// ST-12: only what the broker owns is set.
func TestBatchIsStoredAsItCame(t *testing.T) {
	for _, codec := range []record.Codec{record.None, record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
		l := openNew(t, testOptions(crashfs.New(), 7))
		mustAppend(t, l, spec{n: 2})
		b := batch(t, spec{n: 3, codec: codec})
		want := bytes.Clone(b)
		a, err := l.Append(b)
		if err != nil || a.BaseOffset != 2 || a.End != 5 || a.LogAppendTime != -1 || a.Duplicate {
			t.Fatal(a, err)
		}
		got := contents(t, l)[1]
		record.Batch(want).SetBaseOffset(2)
		record.Batch(want).SetLeaderEpoch(7)
		if !bytes.Equal(got, want) {
			t.Errorf("%v: stored as\n%x, sent\n%x", codec, got, want)
		}
	}
}

// ST-12: a max timestamp that the client got wrong is set right, and the checksum with it.
func TestMaxTimestampIsTheRecords(t *testing.T) {
	l := openNew(t, testOptions(crashfs.New(), 7))
	b := batch(t, spec{n: 3, timestamp: 1000})
	b.SetMaxTimestamp(5000)
	b.SetCRC()
	if _, err := l.Append(b); err != nil {
		t.Fatal(err)
	}
	if got := contents(t, l)[0]; got.MaxTimestamp() != 1002 {
		t.Error(got.MaxTimestamp())
	}
}

func TestLogAppendTime(t *testing.T) {
	o := testOptions(crashfs.New(), 7)
	o.Config.LogAppendTime = true
	l := openNew(t, o)
	before := time.Now().UnixMilli()
	a := mustAppend(t, l, spec{timestamp: 5, id: 4})
	b := contents(t, l)[0]
	if a.LogAppendTime < before || b.MaxTimestamp() != a.LogAppendTime || !b.LogAppendTime() {
		t.Error(a, b.MaxTimestamp(), b.LogAppendTime())
	}
	if ts, _ := l.active.opened.Load().LargestTimestamp(); ts != a.LogAppendTime {
		t.Error("the time index has", ts)
	}
	// A duplicate is answered with the time of the original.
	if again := mustAppend(t, l, spec{timestamp: 5, id: 4}); !again.Duplicate || again.LogAppendTime != a.LogAppendTime {
		t.Error(again)
	}
}

// ST-13: the topic's codec beats the producer's; a topic that keeps it does not.
func TestCompressionTypeOfTheTopic(t *testing.T) {
	o := testOptions(crashfs.New(), 7)
	o.Config.Compression = Compression{Codec: record.Zstd, Level: 3}
	l := openNew(t, o)
	a := mustAppend(t, l, spec{n: 3, codec: record.Gzip, id: 5, sequence: 9})
	b := contents(t, l)[0]
	if b.Codec() != record.Zstd || b.Count() != 3 || b.ProducerID() != 5 || b.BaseSequence() != 9 || a.End != 3 {
		t.Error(b.Codec(), b.Count(), b.ProducerID(), a)
	}
	o.Config.Compression = Compression{Codec: record.None}
	l.SetConfig(o.Config)
	mustAppend(t, l, spec{n: 3, codec: record.Gzip})
	if b := contents(t, l)[1]; b.Codec() != record.None || b.BaseOffset() != 3 {
		t.Error(b.Codec(), b.BaseOffset())
	}
}

// ST-11: what is refused leaves no trace.
func TestRefusedBatchLeavesNothing(t *testing.T) {
	damaged := batch(t, spec{})
	damaged[len(damaged)-1] ^= 1
	keyless := record.NewBuilder(record.Options{})
	if err := keyless.Append(time.Now().UnixMilli(), nil, []byte("v")); err != nil {
		t.Fatal(err)
	}
	noKey, err := keyless.Batch()
	if err != nil {
		t.Fatal(err)
	}
	marker, err := record.NewMarker(record.Marker{Type: record.Commit}, 1, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		batch record.Batch
		want  *kerr.Error
	}{
		"checksum":         {damaged, kerr.CorruptMessage},
		"too large":        {batch(t, spec{size: 2 << 20}), kerr.MessageTooLarge},
		"larger than log":  {batch(t, spec{size: 300 << 10}), kerr.RecordListTooLarge},
		"compacted, keyed": {noKey, kerr.InvalidRecord},
		"in the future":    {batch(t, spec{timestamp: time.Now().Add(2 * time.Hour).UnixMilli()}), kerr.InvalidTimestamp},
		"control":          {marker, kerr.InvalidRecord},
		"sequence":         {batch(t, spec{id: 1, sequence: 7}), kerr.OutOfOrderSequenceNumber},
		"epoch":            {batch(t, spec{id: 1, epoch: -1, sequence: 1}), kerr.InvalidProducerEpoch},
		"transaction":      {batch(t, spec{id: 1, sequence: 1, txn: true}), kerr.InvalidTxnState},
	} {
		o := testOptions(crashfs.New(), 7)
		o.Config.Compact, o.Config.SegmentBytes = true, 256<<10
		l := openNew(t, o)
		mustAppend(t, l, spec{id: 1})
		before, size := l.Offsets(), l.Size()
		if _, err := l.Append(c.batch); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if l.Offsets() != before || l.Size() != size || l.o.Stats.Refused.Load() != 1 {
			t.Errorf("%s: the log is now %+v, %d bytes", name, l.Offsets(), l.Size())
		}
		mustAppend(t, l, spec{id: 1, sequence: 1})
	}
}

// TX-1: a repeat gets the offset of the original, and moves nothing.
func TestDuplicateGetsTheOriginalsOffset(t *testing.T) {
	l := openNew(t, testOptions(crashfs.New(), 7))
	for i := range int32(7) {
		mustAppend(t, l, spec{n: 2, id: 9, sequence: 2 * i, timestamp: 1000 + int64(i)})
	}
	end := l.Offsets().End
	for i := int32(2); i < 7; i++ {
		a := mustAppend(t, l, spec{n: 2, id: 9, sequence: 2 * i, timestamp: 1000 + int64(i)})
		if !a.Duplicate || a.BaseOffset != int64(2*i) || a.End != int64(2*i+2) || a.LogAppendTime != 1001+int64(i) {
			t.Error(i, a)
		}
	}
	if _, err := l.Append(batch(t, spec{n: 2, id: 9, sequence: 2})); !errors.Is(err, kerr.OutOfOrderSequenceNumber) {
		t.Error("the sixth last:", err)
	}
	if l.Offsets().End != end {
		t.Error("the end moved to", l.Offsets().End)
	}
}

// ST-60, ST-62: a full disk refuses the write, leaves nothing of it, and
// writes resume when there is space.
func TestFullDiskRefusesAndResumes(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	l := openNew(t, testOptions(disk, 7))
	disk.SetFull(true)
	if _, err := l.Append(batch(t, spec{id: 3})); !errors.Is(err, kerr.KafkaStorageError) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatal("first append:", err)
	}
	disk.SetFull(false)
	if a := mustAppend(t, l, spec{id: 3}); a.Duplicate || a.BaseOffset != 0 {
		t.Fatal(a)
	}
	disk.SetFull(true)
	before, size := l.Offsets(), l.Size()
	if _, err := l.Append(batch(t, spec{id: 3, sequence: 1})); !errors.Is(err, kerr.KafkaStorageError) {
		t.Fatal(err)
	}
	if l.Offsets() != before || l.Size() != size {
		t.Error("a refused write left", l.Offsets(), l.Size())
	}
	if got := contents(t, l); len(got) != 1 {
		t.Error("reads:", len(got))
	}
	disk.SetFull(false)
	if a := mustAppend(t, l, spec{id: 3, sequence: 1}); a.Duplicate || a.BaseOffset != 1 {
		t.Error(a)
	}
	mustFlush(t, l)
}

// ST-60: a disk that refuses appends is told of once, and that it takes them again, too.
func TestRefusedAppendsAreLoggedOnce(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	o := testOptions(disk, 7)
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	l := openNew(t, o)
	for range 2 {
		log.Reset()
		disk.SetFull(true)
		for range 5 {
			if _, err := l.Append(batch(t, spec{})); err == nil {
				t.Fatal("a full disk takes an append")
			}
		}
		disk.SetFull(false)
		for range 5 {
			mustAppend(t, l, spec{})
		}
		text := log.String()
		if strings.Count(text, "\n") != 2 || !strings.Contains(text, "no space left") || !strings.Contains(text, "succeed again") {
			t.Errorf("logged:\n%s", text)
		}
	}
}

// ST-62: a write that fails part-way is cut off; if that fails too, the log is
// offline for writes, and reads go on.
func TestTornWrite(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	l := openNew(t, testOptions(disk, 7))
	mustAppend(t, l, spec{id: 3})
	size := l.Size()
	disk.Fail(faultfs.Rule{Kinds: vfs.OpWrite, Name: "*.log", Short: 20})
	if _, err := l.Append(batch(t, spec{id: 3, sequence: 1})); !errors.Is(err, kerr.KafkaStorageError) {
		t.Fatal(err)
	}
	if f, err := disk.Stat(l.path("00000000000000000000.log")); err != nil || f.Size() != size {
		t.Fatal("not cut back:", f.Size(), err)
	}
	mustAppend(t, l, spec{id: 3, sequence: 1})
	disk.Fail(faultfs.Rule{Kinds: vfs.OpWrite, Name: "*.log", Short: 20})
	disk.Fail(faultfs.Rule{Kinds: vfs.OpTruncate, Name: "*.log"})
	for range 2 {
		if _, err := l.Append(batch(t, spec{id: 3, sequence: 2})); !errors.Is(err, kerr.KafkaStorageError) {
			t.Fatal(err)
		}
	}
	if got := contents(t, l); len(got) != 2 || l.Offsets().End != 2 {
		t.Error(len(got), l.Offsets())
	}
	if err := l.Close(); !errors.Is(err, kerr.KafkaStorageError) {
		t.Error("a torn log closes clean:", err)
	}
}

// TX-2: the state of an idle producer expires, by record time, and then any sequence may come.
func TestIdleProducerExpires(t *testing.T) {
	l := openNew(t, testOptions(crashfs.New(), 7))
	now := time.Now().UnixMilli()
	mustAppend(t, l, spec{id: 1, timestamp: now})
	l.mu.Lock()
	l.expireLocked(now + 23*3600*1000)
	kept := l.producers.Len()
	l.expireLocked(now + 25*3600*1000)
	left := l.producers.Len()
	l.mu.Unlock()
	if kept != 1 || left != 0 {
		t.Error(kept, left)
	}
	mustAppend(t, l, spec{id: 1, sequence: 100})
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name string
		spec spec
	}{{"1KiBx64", spec{n: 64, size: 1000}}, {"4KiB", spec{size: 4096}}} {
		b.Run(c.name, func(b *testing.B) {
			o := osDisk(b, testOptions(nil, 1))
			o.Config.SegmentBytes = 128 << 20
			l := openNew(b, o)
			in := batch(b, c.spec)
			scratch := make(record.Batch, len(in))
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				copy(scratch, in)
				if _, err := l.Append(scratch); err != nil {
					b.Fatal(err)
				}
				if l.Size() > 1<<30 {
					b.StopTimer()
					_ = l.Close()
					_ = os.RemoveAll(l.o.Dir)
					l = openNew(b, o)
					b.StartTimer()
				}
			}
		})
	}
}
