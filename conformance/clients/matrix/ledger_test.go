package matrix

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

func assigned(p ...int) wire.Line { return wire.Line{Event: "assigned", Partitions: p, Owned: p} }
func revoked(p ...int) wire.Line  { return wire.Line{Event: "revoked", Partitions: p} }

func record(number, partition int, offset int64) wire.Line {
	r := wire.RecordOf(number, 2)
	return wire.Line{Event: "record", Partition: partition, Offset: offset, Key: r.Key, Value: r.Value, Header: r.Header}
}

// said is an event of a member.
type said struct {
	member string
	line   wire.Line
}

// run gives the events to a ledger of two partitions with records 0 to 5, committed up to 1 each.
func run(events ...said) (*ledger, error) {
	l := newLedger(2, true, false)
	l.producing(0, 6)
	if err := l.acknowledged(0, 6, [][3]int64{{0, 0, 0}, {1, 1, 0}, {2, 0, 1}, {3, 1, 1}, {4, 0, 2}, {5, 1, 2}}); err != nil {
		return l, err
	}
	l.committed = map[int]int64{0: 1, 1: 1}
	for _, e := range events {
		if err := l.event(e.member, e.line); err != nil {
			return l, err
		}
	}
	return l, nil
}

func TestLedgerTakesAGroupThatReadsOnAtTheCommits(t *testing.T) {
	l, err := run(
		said{"a", assigned(0)}, said{"b", assigned(1)}, said{"a", record(2, 0, 1)}, said{"b", record(3, 1, 1)}, said{"b", record(5, 1, 2)},
		said{"a", revoked(0)}, said{"c", assigned(0)}, said{"c", record(2, 0, 1)}, said{"c", record(4, 0, 2)},
	)
	if err != nil {
		t.Fatal(err)
	}
	if l.again != 1 || !l.allRead() || !l.shared(2) || l.shared(1) {
		t.Errorf("again %d, all read %v, shared by two %v, by one %v", l.again, l.allRead(), l.shared(2), l.shared(1))
	}
}

func TestLedgerLetsAMemberGoOnWhereItWas(t *testing.T) {
	before := []said{{"a", assigned(0)}, {"a", record(2, 0, 1)}, {"a", revoked(0)}}
	between := []said{{"b", assigned(0)}, {"b", record(2, 0, 1)}, {"b", revoked(0)}}
	goesOn, begins := []said{{"a", assigned(0)}, {"a", record(4, 0, 2)}}, []said{{"a", assigned(0)}, {"a", record(2, 0, 1)}}
	for _, then := range [][]said{goesOn, begins, slices.Concat(between, goesOn), slices.Concat(between, begins)} {
		if _, err := run(slices.Concat(before, then)...); err != nil {
			t.Error(err)
		}
	}
	if _, err := run(append(before, said{"b", assigned(0)}, said{"b", record(4, 0, 2)})...); err == nil {
		t.Error("another member begins at the commit")
	}
}

func TestLedgerFailsForWhatAGroupMustNotDo(t *testing.T) {
	wrong := record(2, 0, 1)
	wrong.Value = strings.Repeat("x", 3)
	headless := record(2, 0, 1)
	headless.Header = ""
	for want, events := range map[string][]said{
		"partition 0 is assigned to b while a has it":  {{"a", assigned(0)}, {"b", assigned(0)}},
		"gives up partition 1, which it has not":       {{"a", assigned(0)}, {"a", revoked(1)}},
		"which \"a\" has":                              {{"a", assigned(0)}, {"b", record(2, 0, 1)}},
		"reads offset 0 of partition 0, want 1":        {{"a", assigned(0)}, {"a", record(0, 0, 0)}},
		"reads offset 2 of partition 0, want 1":        {{"a", assigned(0)}, {"a", record(4, 0, 2)}},
		"reads offset 1 of partition 0, want 2":        {{"a", assigned(0)}, {"a", record(2, 0, 1)}, {"a", record(2, 0, 1)}},
		"reads at partition 0 offset 1: key \"key-4\"": {{"a", assigned(0)}, {"a", record(4, 0, 1)}},
		"value \"xxx\"":                                {{"a", assigned(0)}, {"a", wrong}},
		"header \"\"; want":                            {{"a", assigned(0)}, {"a", headless}},
		"which ends at 3":                              {{"a", assigned(0)}, {"a", record(2, 0, 1)}, {"a", record(4, 0, 2)}, {"a", record(6, 0, 3)}},
		"the consumer ended by itself":                 {{"a", wire.Line{Event: "closed"}}},
		"says that it owns [0 1], its events say [0]":  {{"a", wire.Line{Event: "assigned", Partitions: []int{0}, Owned: []int{0, 1}}}},
		"is assigned partition 2 of 2":                 {{"a", assigned(2)}},
		"reads partition 0 offset 1, which \"\" has":   {{"a", assigned(0)}, {"a", revoked(0)}, {"a", record(2, 0, 1)}},
	} {
		if _, err := run(events...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestLedgerKnowsTheBoundsOfAClientsOwnCommits(t *testing.T) {
	events := []said{{"a", assigned(0)}, {"a", record(2, 0, 1)}, {"a", revoked(0)}, {"b", assigned(0)}, {"b", record(4, 0, 2)}}
	l := newLedger(2, true, true)
	l.producing(0, 6)
	l.committed[0] = 1
	for _, e := range events {
		if err := l.event(e.member, e.line); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run(events...); err == nil {
		t.Error("a client that commits on request may not begin behind its commit")
	}
	if err := errors.Join(l.event("b", revoked(0)), l.event("c", assigned(0))); err != nil {
		t.Fatal(err)
	}
	if err := l.event("c", record(0, 0, 0)); err == nil {
		t.Error("a client may not begin before what it was told to have committed")
	}
}

func TestLedgerComparesAcknowledgedOffsets(t *testing.T) {
	for want, acked := range map[string][][3]int64{
		"records of 2 are acknowledged": {{0, 0, 0}},
		"acknowledged twice":            {{0, 0, 0}, {0, 0, 0}},
		"want partition 1 offset 0":     {{0, 0, 0}, {1, 1, 1}},
		"at partition 0":                {{0, 0, 0}, {1, 0, 0}},
	} {
		l := newLedger(2, true, false)
		l.producing(0, 2)
		if err := l.acknowledged(0, 2, acked); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
