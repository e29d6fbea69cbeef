package group

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// state is what a group of one member was.
func state(name string, version uint64, assignment []byte) metastore.Group {
	protocol := "range"
	return metastore.Group{Name: name, Version: version, Generation: 7, ProtocolType: "consumer", Protocol: &protocol, Leader: "m", Since: time.UnixMilli(1e12),
		Members: []metastore.GroupMember{{MemberID: "m", ClientID: "c", SessionTimeout: time.Second, Assignment: assignment}}}
}

// GR-6: what is appended is read, up to the first entry that is torn, in whatever way; nothing of a torn one is taken for a group.
func TestATornEntryEndsTheJournal(t *testing.T) {
	want := []metastore.Group{state("a", 1, []byte("x")), state("", 2, nil), state("b", 3, bytes.Repeat([]byte("y"), 2000))}
	var b []byte
	var ends []int
	for _, g := range want {
		b = appendEntry(b, g)
		ends = append(ends, len(b))
	}
	if got := slices.Collect(parseJournal(append(b[:len(b):len(b)], "rest"...))); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	whole := func(n int) (whole int) {
		for _, end := range ends {
			if end <= n {
				whole++
			}
		}
		return whole
	}
	for n := range b {
		cut := slices.Collect(parseJournal(b[:n]))
		bad := slices.Clone(b)
		bad[n] ^= 1
		flipped := slices.Collect(parseJournal(bad))
		zeroed := slices.Clone(b)
		clear(zeroed[n:])
		zeros := slices.Collect(parseJournal(zeroed))
		for what, got := range map[string][]metastore.Group{"cut": cut, "damaged": flipped, "zeros from": zeros} {
			if len(got) < whole(n) || len(got) > 0 && !reflect.DeepEqual(got, want[:len(got)]) {
				t.Fatalf("%s at %d: %+v", what, n, got)
			}
		}
		if len(flipped) > whole(n) {
			t.Fatalf("a damaged entry is read, at %d", n)
		}
	}
}

func FuzzJournal(f *testing.F) {
	f.Add(appendEntry(appendEntry(nil, state("a", 1, []byte("x"))), state("b", 2, nil)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var again []byte
		read := slices.Collect(parseJournal(b))
		for _, g := range read {
			again = appendEntry(again, g)
		}
		if got := slices.Collect(parseJournal(again)); !reflect.DeepEqual(got, read) {
			t.Errorf("%+v, then %+v", read, got)
		}
	})
}
