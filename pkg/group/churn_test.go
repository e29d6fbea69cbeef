package group

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

var churning = flag.Int("churning", 150, "how many groups churn")

// GR-1: many groups (-churning 1000) of five members that come, go, and die where they
// like: between JoinGroup and SyncGroup, leading or not. Each request is answered,
// and each group is one stable generation in the end, or empty. Under -race this looks for races, too.
func TestManyGroupsChurn(t *testing.T) {
	const steps = 12
	groups := *churning
	k := newKit(t)
	k.settings.GroupInitialRebalanceDelayMs, k.settings.GroupMinSessionTimeoutMs = 0, 1
	k.restart()
	var wg sync.WaitGroup
	for g := range groups {
		for n := range 5 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), uint64(n)))
				m := k.member(fmt.Sprint("group-", g))
				m.session = 100 * time.Millisecond
				for range steps {
					m.live(t, rng)
				}
			})
		}
	}
	wg.Wait()
	for g := range groups {
		m := k.member(fmt.Sprint("group-", g))
		if err := m.join(); err != nil { // waits for the sessions of the others to end
			t.Fatal(err)
		}
		for len(m.last.Members) != 1 { // with one that did not wait for its answer
			_, _ = m.sync()
			if err := m.join(); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := m.sync(); err != nil || string(got) != m.id || len(m.last.Members) != 1 {
			t.Errorf("assigned %q of %d, %v", got, len(m.last.Members), err)
		}
	}
}

// live is one step of a member.
func (m *member) live(t *testing.T, rng *rand.Rand) {
	if rng.IntN(4) == 0 {
		m.id = "" // it died, and another comes
	}
	answer := m.start()
	if rng.IntN(10) == 0 {
		return // it does not wait for the answer
	}
	m.last = <-answer
	m.id = m.last.MemberID
	if m.last.Err != nil || rng.IntN(6) == 0 { // it never syncs
		return
	}
	switch r := <-m.startSync(); {
	case r.Err == nil && string(r.Assignment) != m.id && len(r.Assignment) > 0:
		t.Errorf("%s is assigned %q", m.id, r.Assignment)
	case r.Err == nil:
		m.ignore(m.heartbeat())
		m.ignore(m.commitAs())
	}
	if rng.IntN(3) == 0 {
		m.ignore(m.leave())
	}
}

// ignore takes any answer that a member may get whose group goes on without it.
func (m *member) ignore(err error) {
	for _, e := range []error{nil, kerr.RebalanceInProgress, kerr.IllegalGeneration, kerr.UnknownMemberID} {
		if errors.Is(err, e) {
			return
		}
	}
	m.k.Errorf("%s: %v", m.id, err)
}

// commitAs commits an offset as the member.
func (m *member) commitAs() error {
	return m.k.CommitOffsets(m.k.Context(), &CommitRequest{Group: m.group, MemberID: m.id, Generation: m.last.Generation, Version: 9, Retention: -1,
		Offsets: []OffsetToCommit{{Topic: "t", TopicID: m.k.topics["t"], Offset: 1}}})[0]
}

// ST-80: a commit of ten thousand partitions is one transaction, and is soon there.
func TestACommitOfManyPartitions(t *testing.T) {
	k := newKit(t)
	req := &CommitRequest{Group: "g", Generation: -1, Version: 9, Retention: -1}
	for p := range int32(10_000) {
		req.Offsets = append(req.Offsets, OffsetToCommit{Topic: "t", TopicID: k.topics["t"], Partition: p, Offset: int64(p), Metadata: "m"})
	}
	before, began := k.store.Commits(), time.Now()
	for _, err := range k.CommitOffsets(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := k.store.Commits() - before; n != 1 {
		t.Errorf("%d transactions", n)
	}
	t.Logf("took %v", time.Since(began))
	if k = k.cut(); k.committed("g", 9_999) != 9_999 {
		t.Error("the last one is not there")
	}
}

// A leader whose assignments are huge: the row is written, and read again.
func TestHugeAssignmentsAreKept(t *testing.T) {
	k := newKit(t)
	m := k.member("g")
	k.want(m.join(), nil)
	r := <-k.Sync(&SyncRequest{Group: "g", MemberID: m.id, Generation: m.last.Generation,
		Assignments: []Assignment{{MemberID: m.id, Data: make([]byte, 50<<20)}}})
	k.want(r.Err, nil)
	k.restart()
	if d, err := k.Describe("g"); err != nil || len(d.Members) != 1 || len(d.Members[0].Assignment) != 50<<20 {
		t.Errorf("%d members, %v", len(d.Members), err)
	}
}
