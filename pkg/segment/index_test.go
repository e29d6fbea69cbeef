package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"syscall"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// kafkaIndexes is what Kafka's LogSegment.append writes for these batches,
// with the last time entry of onBecomeInactiveSegment.
func kafkaIndexes(base int64, interval int, batches []record.Batch) (offsets, times []byte) {
	since, pos := 0, 0
	maxTs, maxOffset, lastTs := int64(-1), int64(0), int64(-1)
	addTime := func() {
		if maxTs > lastTs {
			times = binary.BigEndian.AppendUint64(times, uint64(maxTs))
			times = binary.BigEndian.AppendUint32(times, uint32(maxOffset-base))
			lastTs = maxTs
		}
	}
	for _, b := range batches {
		if b.MaxTimestamp() > maxTs {
			maxTs, maxOffset = b.MaxTimestamp(), b.LastOffset()
		}
		if since > interval {
			offsets = binary.BigEndian.AppendUint32(offsets, uint32(b.LastOffset()-base))
			offsets = binary.BigEndian.AppendUint32(offsets, uint32(pos))
			addTime()
			since = 0
		}
		since += len(b)
		pos += len(b)
	}
	addTime()
	return offsets, times
}

// ST-5, ST-7: both indexes are those that Kafka writes, at any interval.
func TestIndexesAreKafkas(t *testing.T) {
	for _, interval := range []int{0, 500, 4096, 1 << 20} {
		o, _ := options(newDisk(t))
		s := create(t, o, 1_000)
		m := &model{}
		for i := range 3_000 {
			ts := int64(5_000 + i*7%1_000 + i/10)
			if i%50 == 0 {
				ts = record.NoTimestamp
			}
			b := batch(m.next(1_000)+int64(i%2), int32(1+i%5), 61+i*31%900, ts)
			ok(t, s.Append(b, interval))
			m.add(b)
			if i == 1_500 {
				ok(t, s.WriteIndexes(false))
			}
		}
		ok(t, s.Seal())
		offsets, times := kafkaIndexes(1_000, interval, m.batches)
		if got := content(t, o, 1_000, IndexSuffix); !bytes.Equal(got, offsets) {
			t.Errorf("interval %d: .index has %d bytes, want %d", interval, len(got), len(offsets))
		}
		if got := content(t, o, 1_000, TimeIndexSuffix); !bytes.Equal(got, times) {
			t.Errorf("interval %d: .timeindex has %d bytes, want %d", interval, len(got), len(times))
		}
		ok(t, s.Close())
	}
}

// Index entries are written many at a time, not by every append.
func TestIndexEntriesAreWrittenInBatches(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, _ := options(disk)
	s := create(t, o, 0)
	m := &model{}
	fill(t, s, m, 2_000, 4_200)
	if writes := disk.Count(vfs.OpWrite) - 2_000; writes != 2*3 {
		t.Fatalf("%d index writes for 2000 entries", writes)
	}
	if s.offsets.written != 3*gather || len(s.offsets.tail) >= gather*offsetEntry {
		t.Fatalf("%d entries written, %d bytes in memory", s.offsets.written, len(s.offsets.tail))
	}
	for _, i := range []int{0, 1, 500, 512, 513, 1_535, 1_536, 1_537, 1_900, 1_999} {
		m.checkOffset(t, s, m.batches[i].BaseOffset())
	}
	ok(t, s.Close())
}

// ST-60: while the index can't be written the appends go on, and lookups too.
func TestUnwritableIndexStaysInMemory(t *testing.T) {
	disk := faultfs.New(newDisk(t))
	o, log := options(disk)
	s := create(t, o, 0)
	m := &model{}
	fault := disk.Fail(faultfs.Rule{Kinds: vfs.OpWrite, Name: "*index", Times: -1, Err: syscall.ENOSPC, Short: 100})
	fill(t, s, m, 700, 4_200)
	if fault.Hits() == 0 || log.Len() == 0 {
		t.Fatal("nothing failed")
	}
	if err := s.WriteIndexes(true); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	m.check(t, s)
	fault.Remove()
	ok(t, s.Seal())
	m.check(t, s)
	offsets, times := kafkaIndexes(0, 4096, m.batches)
	if !bytes.Equal(content(t, o, 0, IndexSuffix), offsets) || !bytes.Equal(content(t, o, 0, TimeIndexSuffix), times) {
		t.Fatal("the indexes are not whole after the disk had room again")
	}
	ok(t, s.Close())
}

func FuzzIndexFloor(f *testing.F) {
	f.Add([]byte{0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 1, 0}, int64(6), false)
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 9}, int64(6), true)
	f.Fuzz(func(t *testing.T, data []byte, key int64, times bool) {
		x := index{size: offsetEntry}
		if times {
			x.size = timeEntry
		}
		data = data[:len(data)-len(data)%x.size]
		e, found := x.floorIn(data, key)
		if found && e.key > key {
			t.Fatalf("floor of %d is %d", key, e.key)
		}
	})
}
