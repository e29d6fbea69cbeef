package metastore

import "testing"

// ST-57, TX-2: the broker epoch goes up at each start; producer ids are never handed out twice.
func TestCountersGoOnAfterARestart(t *testing.T) {
	path := newPath(t)
	for start := range int32(3) {
		s := open(t, Options{Path: path})
		update(t, s, func(tx *Tx) error {
			epoch, err := tx.NextBrokerEpoch()
			if epoch != start {
				t.Errorf("start %d has epoch %d", start, epoch)
			}
			return err
		})
		for block := range int64(2) {
			update(t, s, func(tx *Tx) error {
				first, err := tx.ReserveProducerIDs(ProducerIDBlock)
				if want := (int64(start)*2 + block) * ProducerIDBlock; first != want {
					t.Errorf("block begins at %d, want %d", first, want)
				}
				return err
			})
		}
		_ = s.Close()
	}
}

func TestProducerIDsDoNotOverflow(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	update(t, s, func(tx *Tx) error { _, err := tx.ReserveProducerIDs(1<<63 - 1); return err })
	for _, n := range []int64{1, 0, -1} {
		if err := s.Update(t.Context(), func(tx *Tx) error { _, err := tx.ReserveProducerIDs(n); return err }); err == nil {
			t.Errorf("%d more were reserved", n)
		}
	}
}
