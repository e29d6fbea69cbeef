package metastore

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

func transactions(t *testing.T, s *Store) (got []Transaction) {
	t.Helper()
	if err := s.View(func(tx *Tx) error {
		for x, err := range tx.Transactions() {
			if err != nil {
				return err
			}
			got = append(got, x)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

// TX-6: what was decided of a transaction is there after a restart.
func TestTransactionsAreKept(t *testing.T) {
	path := newPath(t)
	s := open(t, Options{Path: path})
	p := TxnPartition{Topic: "t", TopicID: kafka.NewTopicID(), Partition: math.MaxInt32}
	full := Transaction{ID: "ä", ProducerID: math.MaxInt64, PreviousID: 4, NextID: 5, Epoch: math.MaxInt16, LastEpoch: 6, TimeoutMs: 7,
		Phase: TxnPrepareAbort, Bumps: true, Start: 8, Updated: 9, Partitions: []TxnPartition{p, {Topic: "u"}}, Groups: []string{"", "g"}, Settling: []TxnPartition{p}}
	least := Transaction{ID: "a", ProducerID: 0, PreviousID: -1, NextID: -1, Epoch: -1, LastEpoch: -1, Start: -1}
	for _, x := range []Transaction{{ID: "a"}, full, least, {ID: "gone"}} {
		update(t, s, func(tx *Tx) error { return tx.PutTransaction(&x) })
	}
	update(t, s, func(tx *Tx) error { return tx.DropTransaction("gone") })
	_ = s.Close()
	s = open(t, Options{Path: path})
	if got := transactions(t, s); !reflect.DeepEqual(got, []Transaction{least, full}) {
		t.Errorf("%+v", got)
	}
}

func TestTxnPhasesAreNamedAsInKafka(t *testing.T) {
	if got := TxnPrepareCommit.String() + TxnPhase(9).String(); got != "PrepareCommitTxnPhase(9)" {
		t.Error(got)
	}
}

func FuzzDecodeTransaction(f *testing.F) {
	x := Transaction{ID: "a", Partitions: []TxnPartition{{Topic: "t"}}, Groups: []string{"g"}, Settling: []TxnPartition{{Topic: "u"}}}
	row := encodeTransaction(&x)
	f.Add(row)
	f.Add(row[:len(row)-1])
	f.Fuzz(func(t *testing.T, row []byte) {
		x, err := decodeTransaction([]byte("a"), row)
		if err != nil {
			return
		}
		again, err := decodeTransaction([]byte("a"), encodeTransaction(&x))
		if err != nil || !reflect.DeepEqual(x, again) {
			t.Fatalf("%+v is %+v (%v)", x, again, err)
		}
	})
}

// TX-9: which of two offsets came later is not told by the clock, that may be set back between them.
func TestStagedOffsetsTakeEffectWhateverTheClockSays(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	id := kafka.NewTopicID()
	at := time.UnixMilli(1e12)
	update(t, s, func(tx *Tx) error { return tx.PutTopic(Topic{Name: "t", ID: id, Partitions: 2}) })
	offset := func(partition int32, offset int64, committed time.Time) Offset {
		return Offset{Topic: "t", TopicID: id, Partition: partition, Offset: offset, Committed: committed}
	}
	update(t, s, func(tx *Tx) error { return tx.CommitOffset("g", offset(0, 1, at)) })
	update(t, s, func(tx *Tx) error { return tx.StageOffset("g", 1, offset(0, 2, at.Add(-time.Hour))) })
	update(t, s, func(tx *Tx) error { return tx.EndStaged("g", 1, true) })
	if got := offsets(t, s, "g"); !slices.Equal(got, []string{"t-0@2"}) {
		t.Errorf("%v: the transaction's offset is lost", got)
	}
	for _, later := range []time.Duration{0, 400 * time.Microsecond, -time.Hour} {
		update(t, s, func(tx *Tx) error { return tx.DropOffset("g", "t", 1) })
		update(t, s, func(tx *Tx) error { return tx.StageOffset("g", 1, offset(1, 3, at)) })
		update(t, s, func(tx *Tx) error { return tx.CommitOffset("g", offset(1, 4, at.Add(later))) })
		update(t, s, func(tx *Tx) error { return tx.EndStaged("g", 1, true) })
		if got := offsets(t, s, "g"); !slices.Equal(got, []string{"t-0@2", "t-1@4"}) {
			t.Errorf("%v: the commit %v after the staging is lost", got, later)
		}
	}
	// Of two transactions the one that has staged last sets the offset, whichever ends first.
	for _, later := range []time.Duration{time.Second, 0, 400 * time.Microsecond, -time.Hour} {
		for _, first := range []int64{1, 2} {
			update(t, s, func(tx *Tx) error { return tx.DropOffset("g", "t", 1) })
			update(t, s, func(tx *Tx) error { return tx.StageOffset("g", 1, offset(1, 5, at)) })
			update(t, s, func(tx *Tx) error { return tx.StageOffset("g", 2, offset(1, 6, at.Add(later))) })
			update(t, s, func(tx *Tx) error { return tx.EndStaged("g", first, true) })
			update(t, s, func(tx *Tx) error { return tx.EndStaged("g", 3-first, true) })
			if got := offsets(t, s, "g"); !slices.Equal(got, []string{"t-0@2", "t-1@6"}) {
				t.Errorf("%v: staged %v later, producer %d ended first", got, later, first)
			}
		}
	}
}

// TX-9: what is staged is no committed offset until its producer's transaction is committed.
func TestStagedOffsetsTakeEffectWithTheTransaction(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	id, gone := kafka.NewTopicID(), kafka.NewTopicID()
	at := time.UnixMilli(1e12)
	stage := func(group string, producer int64, o Offset) {
		update(t, s, func(tx *Tx) error { return tx.StageOffset(group, producer, o) })
	}
	update(t, s, func(tx *Tx) error { return tx.PutTopic(Topic{Name: "t", ID: id, Partitions: 9}) })
	stage("g", 1, Offset{Topic: "t", TopicID: id, Partition: 0, Offset: 10, Committed: at})
	stage("g", 1, Offset{Topic: "t", TopicID: id, Partition: 0, Offset: 11, Committed: at})
	stage("g", 1, Offset{Topic: "t", TopicID: gone, Partition: 1, Offset: 12, Committed: at})
	stage("g", 1, Offset{Topic: "t", TopicID: id, Partition: 2, Offset: 13, Committed: at})
	stage("g", 2, Offset{Topic: "t", TopicID: id, Partition: 0, Offset: 14, Committed: at})
	stage("gg", 1, Offset{Topic: "t", TopicID: id, Partition: 0, Offset: 15, Committed: at})
	// A plain commit that comes after the staging counts (OffsetMetadataManager.replayEndTransactionMarker).
	update(t, s, func(tx *Tx) error {
		return tx.PutOffset("g", Offset{Topic: "t", TopicID: id, Partition: 2, Offset: 99, Committed: at.Add(time.Millisecond)})
	})
	staged := func() (got []string) {
		_ = s.View(func(tx *Tx) error {
			for p := range int32(3) {
				got = append(got, strconv.FormatBool(tx.Staged("g", "t", p)))
			}
			got = append(got, strconv.FormatBool(tx.HasStaged("g")), strconv.FormatBool(tx.HasStaged("x")))
			return nil
		})
		return got
	}
	if got := staged(); !slices.Equal(got, []string{"true", "true", "true", "true", "false"}) {
		t.Error(got)
	}
	if got := offsets(t, s, "g"); !slices.Equal(got, []string{"t-2@99"}) {
		t.Error(got)
	}
	update(t, s, func(tx *Tx) error { return tx.EndStaged("g", 1, true) })
	if got := offsets(t, s, "g"); !slices.Equal(got, []string{"t-0@11", "t-2@99"}) {
		t.Error(got)
	}
	if got := staged(); !slices.Equal(got, []string{"true", "false", "false", "true", "false"}) {
		t.Error(got)
	}
	update(t, s, func(tx *Tx) error { return tx.EndStaged("g", 2, false) })
	if got := offsets(t, s, "g"); !slices.Equal(got, []string{"t-0@11", "t-2@99"}) || staged()[3] != "false" {
		t.Error(got, staged())
	}
	stage("g", 3, Offset{Topic: "t", Partition: 4})
	stage("g", 4, Offset{Topic: "t", Partition: 4})
	stage("g", 4, Offset{Topic: "t", Partition: 40})
	update(t, s, func(tx *Tx) error { return tx.DropStaged("g", "t", 4) })
	_ = s.View(func(tx *Tx) error {
		if tx.Staged("g", "t", 4) || !tx.Staged("g", "t", 40) {
			t.Error("DropStaged removes what is staged for its partition, and nothing else")
		}
		return nil
	})
	update(t, s, func(tx *Tx) error { return tx.DropStaged("g", "t", 40) })
	stage("g", 3, Offset{Topic: "t", TopicID: gone, Partition: 5})
	update(t, s, func(tx *Tx) error {
		return tx.DropOffsetsIf(func(group string, o Offset) bool { return group == "g" && o.TopicID == gone })
	})
	update(t, s, func(tx *Tx) error { return tx.DropGroup("gg") })
	_ = s.View(func(tx *Tx) error {
		if tx.HasStaged("g") || tx.HasStaged("gg") {
			t.Error("what was staged for a deleted topic, or a deleted group, is there")
		}
		return nil
	})
}
