package segment

import (
	"bytes"
	"sync"
	"testing"
)

// A wrong index that a lookup meets is rebuilt once, whoever looks; all get right answers meanwhile.
func TestRepairBesideReaders(t *testing.T) {
	o, _ := options(newDisk(t))
	m := sealed(t, o, 0, 800, 700)
	good := content(t, o, 0, IndexSuffix)
	bad := bytes.Clone(good)
	clear(bad[240 : len(bad)-240])
	overwrite(t, o, 0, IndexSuffix, bad)
	o.Logger = nil
	s := must[*Segment](t)(Open(o, 0))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := g; i < len(m.batches); i += 97 {
				pos, err := s.Position(m.batches[i].BaseOffset())
				if err != nil || pos != m.pos[i] {
					t.Errorf("batch %d at %d, %v", i, pos, err)
				}
			}
		})
	}
	wg.Wait()
	if !bytes.Equal(content(t, o, 0, IndexSuffix), good) {
		t.Error("the index was not rebuilt")
	}
	m.check(t, s)
	ok(t, s.Close())
}

// An entry that leads behind its batch would hide batches: the header that it points to gives it away.
func TestEntryThatPointsTooFarGivesNoWrongAnswer(t *testing.T) {
	for _, seal := range []bool{true, false} {
		o, log := options(newDisk(t))
		s, m := create(t, o, 0), &model{}
		fill(t, s, m, 400, 700)
		ok(t, s.WriteIndexes(false))
		if seal {
			ok(t, s.Seal())
		}
		good := content(t, o, 0, IndexSuffix)
		bad := bytes.Clone(good)
		for i := 16; i+16 < len(bad); i += 8 {
			copy(bad[i+4:i+8], good[i+12:i+16]) // the position of the next entry
		}
		overwrite(t, o, 0, IndexSuffix, bad)
		for i := range m.batches[:300] {
			m.checkOffset(t, s, m.batches[i].BaseOffset())
		}
		if log.Len() == 0 {
			t.Error("nothing was logged")
		}
		// The active segment's index is mended by the first lookup after its roll.
		ok(t, s.Seal())
		m.check(t, s)
		if !bytes.Equal(content(t, o, 0, IndexSuffix), good) {
			t.Error("the index was not rebuilt")
		}
		ok(t, s.Close())
	}
}
