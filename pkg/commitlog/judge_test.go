package commitlog

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// ST-46: the pass that removes the last batch of a transaction leaves its marker, the next one sets its horizon, and one after the horizon
// removes it, as CleanedTransactionMetadata has it and conformance/recordings/compaction-transactions.json shows.
func TestAMarkerGetsItsHorizonFromAPassThatFindsNoBatchOfItsTransaction(t *testing.T) {
	for _, commit := range []bool{true, false} {
		o := keyedOptions(testOptions(crashfs.New(), 1))
		o.Config.SegmentMs = math.MaxInt64 // else the marker, which is of now, rolls
		m := newKeyed(t, mustOpen(t, o), 1)
		key := func(k, v string) keyedRecord { return keyedRecord{key: k, value: v} }
		if err := errors.Join(m.put(1, true, record.None, key("a", "1")), m.end(1, commit), // the marker is at offset 1
			m.put(1, false, record.None, key("b", "1")), m.put(0, false, record.None, key("a", "2")), m.l.Roll(),
			m.put(0, false, record.None, key("c", "1"))); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"a batch and a marker", "a marker", "a marker with a horizon", "a marker with a horizon", "neither"} {
			if i > 0 {
				if i == 4 {
					m.now += deleteRetention
				}
				if err := m.compact(); err != nil {
					t.Fatal(err)
				}
			}
			if got := m.firstTransaction(); got != want {
				t.Errorf("commit %t, after %d passes there is %s, want %s", commit, i, got, want)
			}
		}
		m.l.Abandon()
	}
}

// firstTransaction says what is left of a transaction at offsets 0 and 1.
func (m *keyed) firstTransaction() string {
	var left []string
	for offset := int64(0); offset < 2; {
		b := readAt(m.t, m.l, offset, 1)[0]
		switch offset = b.LastOffset() + 1; {
		case offset > 2:
		case !b.Control():
			left = append(left, "a batch")
		default:
			left = append(left, "a marker")
			if _, set := b.DeleteHorizon(); set {
				left[len(left)-1] += " with a horizon"
			}
		}
	}
	if len(left) == 0 {
		return "neither"
	}
	return strings.Join(left, " and ")
}
