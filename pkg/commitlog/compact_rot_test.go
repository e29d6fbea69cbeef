package commitlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// A rotten is a log of which one sealed batch was damaged while it was closed.
type rotten struct {
	*keyed
	disk *crashfs.FS
	log  bytes.Buffer
}

// The log of rottenLog, by base offsets: segments at 0, 3, 5 and 9, and the active one at 10. The batch at 3 is the one that rots: it is of three
// records where the log has one below it of each of their keys; it lies at position 0 of its segment.
const rottenSegment = "00000000000000000003.log"

// rottenLog makes it; codec is that of the batch, and damage changes it.
func rottenLog(t *testing.T, codec record.Codec, damage func(b record.Batch)) *rotten {
	t.Helper()
	m := &rotten{disk: crashfs.New()}
	o := keyedOptions(testOptions(m.disk, 1))
	o.Clean, o.Logger, o.Config.Compact = true, slog.New(slog.NewTextHandler(&m.log, nil)), true
	m.keyed = newKeyed(t, mustOpen(t, o), 1)
	key := func(k, v string) keyedRecord { return keyedRecord{key: k, value: v} }
	if err := errors.Join(m.put(0, false, record.None, key("a", "1"), key("b", "1"), key("x", "1")), m.l.Roll(),
		m.put(0, false, codec, key("a", "2"), key("b", "2")), m.l.Roll(),
		m.put(0, false, record.None, key("x", "2"), key("y", "1")), m.put(0, false, record.None, key("a", "-")),
		m.put(0, false, record.None, key("y", "2")), m.l.Roll(), m.put(0, false, record.None, key("z", "1")), m.l.Roll(),
		m.put(0, false, record.None, key("active", "1"))); err != nil {
		t.Fatal(err)
	}
	mustClose(t, m.l)
	name := testDir + "/" + rottenSegment
	b, err := vfs.ReadFile(m.disk, name)
	if err != nil {
		t.Fatal(err)
	}
	damage(b)
	f, err := m.disk.OpenFile(name, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt(b, 0)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	m.l = openNew(t, o)
	return m
}

// logs is the content of the segments by name.
func (m *rotten) logs() map[string]string {
	all := map[string]string{}
	for name := range namesSeq(m.t, m.disk) {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		b, err := vfs.ReadFile(m.disk, testDir+"/"+name)
		if err != nil {
			m.t.Fatal(err)
		}
		all[name] = string(b)
	}
	return all
}

// pass compacts once, as a sweep does or on demand.
func (m *rotten) pass() (Compacted, error) {
	c, err := m.l.Compact(m.t.Context(), Compaction{From: m.dirty, Keys: NewKeyMap(100), NowMs: m.now})
	m.dirty = c.Next
	return c, err
}

// told wants one line of the log to have all of the words, and none to have them twice.
func (m *rotten) told(words ...string) {
	m.t.Helper()
	n := 0
	for line := range strings.Lines(m.log.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			n++
		}
	}
	if n != 1 {
		m.t.Errorf("%q is told %d times in\n%s", words, n, m.log.String())
	}
}

func (m *rotten) due() bool {
	m.t.Helper()
	due, err := m.l.Due(m.dirty, m.now)
	if err != nil {
		m.t.Fatal(err)
	}
	return due
}

// ST-14, ST-63: a segment that can't be walked ends the compaction of its log (as Kafka marks the partition uncleanable), with every byte where it was, and
// that is told once. On demand it is tried again; once the segment has been deleted the log is compacted as ever.
func TestASegmentThatCannotBeWalkedStopsCompaction(t *testing.T) {
	for name, damage := range map[string]func(b record.Batch){
		"its magic":                    func(b record.Batch) { b[16] = 9 },
		"a length beyond the file":     func(b record.Batch) { b[9] = 1 },
		"an offset before the segment": func(b record.Batch) { b[7] = 1 },
		"an offset that no checksum covers, of a later segment": func(b record.Batch) { b[7] = 200 },
	} {
		t.Run(name, func(t *testing.T) {
			m := rottenLog(t, record.None, damage)
			before := m.logs()
			if !m.due() {
				t.Fatal("nothing is to be done")
			}
			for range 3 {
				got, err := m.pass()
				if !errors.Is(err, kerr.CorruptMessage) || got.Next != 0 || got.Rewritten != 0 || !strings.Contains(err.Error(), rottenSegment+": batch at position 0") {
					t.Error(got, err)
				}
				if m.due() {
					t.Error("it is due still")
				}
			}
			for name, content := range m.logs() {
				if content != before[name] {
					t.Errorf("%s has changed", name)
				}
			}
			m.told("partition is compacted no more", "partition=demo-0", rottenSegment, "position 0")
			for _, offset := range []int64{0, 5, 9} {
				if got := readAt(t, m.l, offset, 500); len(got) == 0 {
					t.Error("nothing is read at", offset)
				}
			}
			if err := m.l.MoveStart(5); err != nil {
				t.Fatal(err)
			}
			if !m.due() {
				t.Error("not due without the segment")
			}
			if got, err := m.pass(); err != nil || got.Rewritten != 1 || got.Next != 10 {
				t.Error(got, err)
			}
			if m.due() {
				t.Error("due again")
			}
		})
	}
}

// sumUp makes the checksum right.
func sumUp(b record.Batch) {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
}

// ST-14: a batch that can't be read, whatever of it is wrong, stays byte for byte, and that is told once. None of its keys takes older records away,
// nor is a tombstone dropped that may be what has ended a record of it. All else is compacted.
func TestABatchThatCannotBeReadTakesNothingAway(t *testing.T) {
	for name, c := range map[string]struct {
		codec  record.Codec
		damage func(b record.Batch)
	}{
		"its checksum":        {record.None, func(b record.Batch) { b[len(b)-1] ^= 1 }},
		"that it is empty":    {record.None, func(b record.Batch) { binary.BigEndian.PutUint32(b[57:], 0) }},
		"that it is a marker": {record.None, func(b record.Batch) { b[22] |= 0x30 }},
		"more records than it says": {record.None, func(b record.Batch) {
			binary.BigEndian.PutUint32(b[57:], 1)
			sumUp(b)
		}},
		"fewer records than it says": {record.None, func(b record.Batch) {
			binary.BigEndian.PutUint32(b[57:], 3)
			sumUp(b)
		}},
		"the end of what is compressed": {record.Gzip, func(b record.Batch) {
			b[len(b)-6] ^= 1
			sumUp(b)
		}},
		"the codec": {record.None, func(b record.Batch) {
			b[22] |= 7
			sumUp(b)
		}},
		"an offset beyond the batch": {record.None, func(b record.Batch) {
			b[26] = 0
			sumUp(b)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := rottenLog(t, c.codec, c.damage)
			before := m.logs()[rottenSegment]
			for range 4 {
				if _, err := m.pass(); err != nil {
					t.Fatal(err)
				}
				m.now += 2 * deleteRetention
			}
			if m.logs()[rottenSegment] != before {
				t.Error("the batch has changed")
			}
			m.told("a batch stays as it is", "partition=demo-0", rottenSegment, "position=0", "offset=3")
			var got []string
			for _, offset := range []int64{0, 5} {
				for _, b := range readAt(t, m.l, offset, 1000) {
					for _, r := range recordsOf(t, b) {
						got = append(got, fmt.Sprint(r.offset, r.key, r.value))
					}
				}
			}
			// a of offset 0 was superseded by the tombstone at 7, which can be read; b and its like might be the latest.
			if want := []string{"1b1", "5x2", "7a-", "8y2"}; !slices.Equal(got, want) {
				t.Errorf("the log has %q, and should have %q", got, want)
			}
		})
	}
}

// ST-14, ST-46: the records of an aborted batch are not needed, to empty it neither. One that can't be read ends no compaction.
func TestAnAbortedBatchThatCannotBeReadIsEmptied(t *testing.T) {
	disk := crashfs.New()
	o := keyedOptions(testOptions(disk, 1))
	o.Clean = true
	m := newKeyed(t, mustOpen(t, o), 1)
	key := func(k, v string) keyedRecord { return keyedRecord{key: k, value: v} }
	if err := errors.Join(m.put(1, true, record.Gzip, key("a", "1"), key("b", "1")), m.end(1, false),
		m.put(0, false, record.None, key("a", "2")), m.put(0, false, record.None, key("a", "3")), m.l.Roll(), m.put(0, false, record.None, key("c", "1"))); err != nil {
		t.Fatal(err)
	}
	mustClose(t, m.l)
	name := testDir + "/00000000000000000000.log"
	log, err := vfs.ReadFile(disk, name)
	if err != nil {
		t.Fatal(err)
	}
	b, _, err := record.Parse(log)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-6] ^= 1 // of what is compressed
	sumUp(b)
	if err := vfs.WriteFileSync(disk, name, log, 0o644); err != nil {
		t.Fatal(err)
	}
	m.l = mustOpen(t, o)
	if err := m.compact(); err != nil {
		t.Fatal(err)
	}
	if got := readAt(t, m.l, 0, 1); len(got) != 1 || got[0].Count() != 0 || got[0].LastOffset() != 1 {
		t.Error("the aborted batch, which is its producer's last:", got)
	}
	m.check()
	mustClose(t, m.l)
}
