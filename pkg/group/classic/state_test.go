package classic

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// The order of Java's HashMap, which decides where votes are equal.
func TestEqualVotesAreDecidedAsByAJavaHashMap(t *testing.T) {
	for _, c := range []struct {
		name   string
		bucket int
	}{
		{"", 0}, {"a", 1}, {"range", 9}, {"roundrobin", 10}, {"sticky", 8}, {"cooperative-sticky", 15}, {"\U0001F600", 8},
	} {
		if got := bucket(c.name); got != c.bucket {
			t.Errorf("%q is in bucket %d, want %d", c.name, got, c.bucket)
		}
	}
}

// Whatever clients do and in which order: a request is answered once at most,
// the counts are right, and a group at rest has nothing parked.
func FuzzState(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 9, 5, 0, 1, 0, 2, 1, 3, 0, 3, 1, 9, 200, 4, 0, 8, 1})
	f.Add([]byte("static members and others, joining and leaving as they like to"))
	f.Fuzz(func(t *testing.T, script []byte) {
		r := &random{t: t, script: script, now: time.Unix(1e9, 0), answered: map[int]bool{}}
		n := 0
		cfg := Config{InitialDelay: 3 * time.Second, MaxSize: 4, NewMemberID: func(prefix string) string { n++; return fmt.Sprintf("%s-%d", prefix, n) }}
		r.s = New(cfg, r.now)
		for len(r.script) > 0 {
			r.step(cfg)
			r.check()
		}
		for range 400 { // with nobody there any more, all sessions end
			r.now = r.now.Add(10 * time.Second)
			r.take(r.s.Expire(r.now))
			r.check()
		}
		if r.s.Size() > 0 || r.s.Phase() != Empty || len(r.s.pending.until) > 0 {
			t.Errorf("%d members, %v, %d ids given out", r.s.Size(), r.s.Phase(), len(r.s.pending.until))
		}
	})
}

type random struct {
	t        *testing.T
	s        *State
	script   []byte
	now      time.Time
	tickets  int
	answered map[int]bool
	stored   Snapshot
}

func (r *random) next() int {
	if len(r.script) == 0 {
		return 0
	}
	b := r.script[0]
	r.script = r.script[1:]
	return int(b)
}

// id is that of some member, an id given out, or of nobody.
func (r *random) id() string {
	ids := append(slices.Sorted(maps.Keys(r.s.byID)), slices.Sorted(maps.Keys(r.s.pending.until))...)
	ids = append(ids, "nobody", "")
	return ids[r.next()%len(ids)]
}

func (r *random) instance() *string {
	if n := r.next() % 5; n < 2 {
		return &[]string{"i", "j"}[n]
	}
	return nil
}

func (r *random) step(cfg Config) {
	r.tickets++
	switch r.next() % 9 {
	case 0, 1, 2:
		req := &JoinRequest{MemberID: r.id(), ClientID: "c", ProtocolType: "consumer", SessionTimeout: time.Duration(r.next()) * time.Second,
			RebalanceTimeout: time.Duration(r.next()) * time.Second, RequireKnownMember: r.next()%2 == 0, SkipAssignment: r.next()%2 == 0}
		if m := r.s.byID[req.MemberID]; m != nil {
			req.InstanceID = m.instanceID
		} else if req.MemberID == "" {
			req.InstanceID = r.instance()
		}
		for _, name := range [][]string{{"a"}, {"a", "b"}, {"b", "a"}, {"b"}}[r.next()%4] {
			req.Protocols = append(req.Protocols, Protocol{name, subscriptionOf("t")})
		}
		r.take(r.s.Join(r.now, req, r.tickets))
	case 3, 4:
		gen := r.s.Generation() + []int32{0, 0, 0, 0, -1, 1}[r.next()%6]
		id := r.id()
		r.take(r.s.Sync(r.now, &SyncRequest{MemberID: id, Generation: gen, Assignments: map[string][]byte{id: []byte("x")}}, r.tickets))
	case 5:
		_ = r.s.Heartbeat(r.now, r.id(), r.instance(), r.s.Generation()+int32(r.next()%4/3))
		_ = r.s.CheckCommit(r.now, r.id(), r.instance(), r.s.Generation())
	case 6:
		_, e := r.s.Leave(r.now, []Leaver{{r.id(), r.instance()}, {r.id(), nil}})
		r.take(e)
	case 7:
		r.now = r.now.Add(time.Duration(r.next()) * 100 * time.Millisecond)
		r.take(r.s.Expire(r.now))
	case 8:
		if r.next() < 16 { // a crash: what is parked is gone
			s, e := Restore(cfg, r.now, r.stored, r.next()%2 == 0)
			r.s = s
			r.take(e)
			return
		}
		r.take(r.s.Evict(r.now, r.id(), "evicted"))
	}
}

func (r *random) take(e Effects) {
	answer := func(ticket Ticket) {
		if r.answered[ticket.(int)] {
			r.t.Errorf("request %v is answered twice", ticket)
		}
		r.answered[ticket.(int)] = true
	}
	for _, j := range e.Joins {
		answer(j.Ticket)
	}
	for _, s := range e.Syncs {
		answer(s.Ticket)
	}
	if e.Persist {
		r.stored = r.s.Snapshot()
	}
}

func (r *random) check() {
	s, parked, synced := r.s, 0, 0
	supported := map[string]int{}
	for _, m := range s.members {
		if s.byID[m.id] != m || m.instanceID != nil && s.static[*m.instanceID] != m.id {
			r.t.Fatalf("member %s is not found", m.id)
		}
		if m.join != nil {
			parked++
		}
		if m.sync != nil {
			synced++
		}
		for _, p := range m.protocols {
			supported[p.Name]++
		}
		if m.expires.IsZero() && !m.waits() {
			r.t.Fatalf("member %s has no session", m.id)
		}
	}
	switch {
	case parked != s.parked || !maps.Equal(supported, s.supported) || len(s.byID) != len(s.members):
		r.t.Fatalf("%d parked of %d, %v offered of %v", s.parked, parked, s.supported, supported)
	case parked > 0 && s.phase != PreparingRebalance, synced > 0 && s.phase != CompletingRebalance:
		r.t.Fatalf("%d joins and %d syncs wait while %v", parked, synced, s.phase)
	case len(s.members) > 0 && (s.byID[s.leader] == nil || s.phase == Empty), len(s.members) == 0 && s.leader != "":
		r.t.Fatalf("%d members, led by %q, %v", len(s.members), s.leader, s.phase)
	case s.phase == PreparingRebalance && s.join.at.IsZero():
		r.t.Fatal("a rebalance that nothing ends")
	}
}
