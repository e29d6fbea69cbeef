package commitlog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// ST-40 to ST-46, ST-9: random keyed, unkeyed, transactional and deleted records, rolls, passes, clean stops and kills, with
// and without the snapshots; the log has exactly what the rules leave, at its offsets, and consumers anywhere go on.
func TestCompactionAgreesWithAModel(t *testing.T) {
	seeds, steps := uint64(40), 200
	if short() {
		seeds = 8
	}
	rewritten := int64(0)
	for seed := range seeds {
		disk := crashfs.New()
		o := keyedOptions(testOptions(disk, 1))
		m := newKeyed(t, mustOpen(t, o), seed)
		m.maxKeys = []int{1000, 5, 1}[seed%3]
		if seed%4 == 3 {
			m.mostDead = 0
		}
		for step := range steps {
			m.what = fmt.Sprintf("seed %d step %d", seed, step)
			if err := m.step(); err != nil {
				t.Fatal(m.what, err)
			}
			if step%10 == 9 {
				if err := m.compact(); err != nil {
					t.Fatal(m.what, err)
				}
				m.check()
			}
			if step%30 == 29 {
				m.reopen(disk)
				m.check()
				m.checkProducers()
			}
		}
		m.l.Abandon()
		rewritten += o.Stats.Rewritten.Load()
	}
	if rewritten == 0 {
		t.Error("nothing was rewritten")
	}
	t.Logf("%d segments rewritten", rewritten)
}

// ST-40 to ST-46, ST-35: as above with maps and sets of offsets that are too small in every way, at offsets beyond 32 bits and over the edge of
// a page of the set, while records are written, segments rolled, transactions ended and records deleted beside the passes.
func TestCompactionInRoundsAgreesWithAModel(t *testing.T) {
	seeds, steps := uint64(60), 250
	if short() {
		seeds = 12
	}
	ways := map[string]int{}
	for seed := range seeds {
		disk := crashfs.New()
		o := keyedOptions(testOptions(disk, 1))
		o.LogStart = 1<<33 - 1<<8 // a page ends in the log
		m := newKeyed(t, mustOpen(t, o), seed)
		m.ways, m.distinct = ways, 40
		m.maxKeys, m.mostDead = []int{1, 2, 4, 8}[seed%4], []int{mostDead, pageBytes, 0}[seed/4%3]
		m.beside = m.besidePass
		for step := range steps {
			m.what = fmt.Sprintf("seed %d step %d", seed, step)
			if err := m.step(); err != nil {
				t.Fatal(m.what, err)
			}
			if step%25 == 24 {
				if err := m.compact(); err != nil {
					t.Fatal(m.what, err)
				}
				m.checkFromStart()
			}
			if step%60 == 59 {
				o.LogStart = m.l.Offsets().LogStart
				m.l.Abandon()
				m.l = mustOpen(t, o)
				m.checkFromStart()
			}
		}
		m.l.Abandon()
	}
	for _, way := range []string{"rounds", "all keys at once", "too sparse for rounds", "another pass", "records were deleted beside a pass"} {
		if ways[way] < int(seeds)/2 {
			t.Errorf("%q happened %d times", way, ways[way])
		}
	}
	t.Log(ways)
}

// besidePass does something that a pass must not mind.
func (m *keyed) besidePass() error {
	switch m.rng.IntN(8) {
	case 0:
		return m.l.Roll()
	case 1:
		at := m.l.Offsets()
		if start := at.LogStart + m.rng.Int64N(40); start <= at.LastStable {
			m.ways["records were deleted beside a pass"]++
			return m.l.MoveStart(start)
		}
	case 2:
		return m.endOne()
	default:
		id := m.rng.Int64N(4)
		return m.put(id, id > 0 && (m.producers[id].open || id > 1), record.Codec(m.rng.IntN(5)), m.records()...)
	}
	return nil
}

// checkFromStart is check without what lies below the log start, of which a batch may still have some.
func (m *keyed) checkFromStart() {
	m.t.Helper()
	start := m.l.Offsets().LogStart
	gone := func(r keyedRecord) bool { return r.offset < start }
	got, want := slices.DeleteFunc(m.found(start), gone), slices.DeleteFunc(m.want(), gone)
	if !slices.Equal(got, want) {
		m.t.Fatalf("%s: the log has\n%v, and should have\n%v", m.what, got, want)
	}
}

// reopen stops the log, in order or not, and perhaps takes its snapshots.
func (m *keyed) reopen(disk *crashfs.FS) {
	m.t.Helper()
	o := m.l.o
	o.Clean = m.rng.IntN(2) == 0
	if o.Clean {
		mustClose(m.t, m.l)
	} else {
		m.l.Abandon()
	}
	if !o.Clean && m.rng.IntN(2) == 0 {
		m.forget()
		entries, err := disk.ReadDir(testDir)
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), snapshotSuffix) {
				err = errors.Join(err, disk.Remove(testDir+"/"+e.Name()))
			}
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	m.l = mustOpen(m.t, o)
}

// ST-44: the last batch before an empty active segment stays, at least its header, also where no producer snapshot is bound to
// it: a consumer gets to the end of the log.
func TestAConsumerGetsToTheEndOfACompactedLog(t *testing.T) {
	disk := crashfs.New()
	m := newKeyed(t, mustOpen(t, keyedOptions(testOptions(disk, 1))), 1)
	err := errors.Join(m.put(0, false, record.None, keyedRecord{key: "x", value: "1"}),
		m.put(0, false, record.None, keyedRecord{key: "a", value: "-"}), m.l.Roll())
	if err != nil {
		t.Fatal(err)
	}
	m.l.Abandon()
	for name := range namesSeq(t, disk) {
		if strings.HasSuffix(name, snapshotSuffix) {
			if err := disk.Remove(testDir + "/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.l = mustOpen(t, keyedOptions(testOptions(disk, 2)))
	for range 3 {
		if err := m.compact(); err != nil {
			t.Fatal(err)
		}
		m.now += 2 * deleteRetention
	}
	if got := m.found(0); len(got) != 1 {
		t.Error("the tombstone is still there:", got)
	}
	for offset, end := int64(0), m.l.Offsets().End; offset < end; {
		got := readAt(t, m.l, offset, 500)
		if len(got) == 0 {
			t.Fatalf("nothing at %d, and the log ends at %d", offset, end)
		}
		offset = got[len(got)-1].LastOffset() + 1
	}
}
