package commitlog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// ST-40 to ST-46, ST-9: random keyed, unkeyed, transactional and deleted records, rolls, passes, clean stops and kills, with
// and without the snapshots; the log has exactly what the rules leave, at its offsets, and consumers anywhere go on.
func TestCompactionAgreesWithAModel(t *testing.T) {
	seeds, steps := uint64(40), 200
	if testing.Short() {
		seeds = 8
	}
	rewritten := int64(0)
	for seed := range seeds {
		disk := crashfs.New()
		o := keyedOptions(testOptions(disk, 1))
		m := newKeyed(t, mustOpen(t, o), seed)
		m.maxKeys, m.plain = []int{1000, 5, 1}[seed%3], seed%4 == 3
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
