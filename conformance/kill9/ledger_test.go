package kill9

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
)

// ledger is one run's account: per partition, records are numbered from 0 in the order the producer was given them.
type ledger struct {
	sent         [partitions]uint64
	acked        [partitions][]bool // written by the client's callbacks, which never run at the same time; read after the last
	acknowledged atomic.Int64
	failed       atomic.Int64 // records that the producer gave up

	seen       [partitions][]bool
	highest    [partitions]uint64 // number of the highest record found, plus 1
	found      int                // distinct records
	duplicates int
	disorder   int
}

// send gives the next record of a partition its number.
func (l *ledger) send(partition int32) uint64 {
	l.sent[partition]++
	return l.sent[partition] - 1
}

// acknowledge notes that the producer was told record n is stored.
func (l *ledger) acknowledge(partition int32, n uint64) {
	a := &l.acked[partition]
	if missing := int(n) + 1 - len(*a); missing > 0 {
		*a = append(*a, make([]bool, missing)...)
	}
	(*a)[n] = true
	l.acknowledged.Add(1)
}

// find notes a record that was read back, in the order of its partition. An error says that nobody sent it.
func (l *ledger) find(partition int32, n uint64) error {
	if n >= l.sent[partition] {
		return fmt.Errorf("partition %d: record %d was never sent", partition, n)
	}
	seen := &l.seen[partition]
	if missing := int(n) + 1 - len(*seen); missing > 0 {
		*seen = append(*seen, make([]bool, missing)...)
	}
	switch {
	case (*seen)[n]:
		l.duplicates++
		return nil
	case n < l.highest[partition]:
		l.disorder++
	}
	(*seen)[n] = true
	l.highest[partition] = max(l.highest[partition], n+1)
	l.found++
	return nil
}

// lost counts what was acknowledged and not found.
func (l *ledger) lost() int {
	lost := 0
	for p, acked := range l.acked {
		for n, yes := range acked {
			if yes && (n >= len(l.seen[p]) || !l.seen[p][n]) {
				lost++
			}
		}
	}
	return lost
}

func TestLedgerFindsLossDoublesAndDisorder(t *testing.T) {
	cases := []struct {
		name                       string
		acked, found               []uint64
		lost, duplicates, disorder int
	}{
		{"perfect", []uint64{0, 1, 2}, []uint64{0, 1, 2}, 0, 0, 0},
		{"found without acknowledgement", []uint64{0}, []uint64{0, 1, 2}, 0, 0, 0},
		{"lost at the end", []uint64{0, 1, 2}, []uint64{0, 1}, 1, 0, 0},
		{"lost in the middle", []uint64{0, 1, 2}, []uint64{0, 2}, 1, 0, 0},
		{"twice", []uint64{0, 1, 2}, []uint64{0, 1, 0, 1, 2}, 0, 2, 0},
		{"out of order", []uint64{0, 1, 2}, []uint64{1, 0, 2}, 0, 0, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := &ledger{}
			for range 3 {
				l.send(1)
			}
			for _, n := range slices.Backward(c.acked) {
				l.acknowledge(1, n)
			}
			for _, n := range c.found {
				if err := l.find(1, n); err != nil {
					t.Fatal(err)
				}
			}
			if l.lost() != c.lost || l.duplicates != c.duplicates || l.disorder != c.disorder {
				t.Errorf("lost %d, duplicates %d, disorder %d; want %d, %d, %d", l.lost(), l.duplicates, l.disorder, c.lost, c.duplicates, c.disorder)
			}
			if l.find(1, 3) == nil {
				t.Error("a record that was never sent: not found")
			}
		})
	}
}
