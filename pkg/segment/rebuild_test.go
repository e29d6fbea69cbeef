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
