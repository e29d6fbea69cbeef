package group

import (
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// killed is what is there after a SIGKILL now, and an hour.
func (k *kit) killed() *kit {
	k.Helper()
	disk := k.disk.KillClone()
	path := filepath.Join(k.TempDir(), "meta.db")
	k.copyTo(path)
	pass(time.Hour)
	return k.from(path, disk)
}

// offering is a JoinGroup of a member that offers protocols.
func (m *member) offering(instance *string, protocols ...string) <-chan JoinResponse {
	req := &JoinRequest{Group: m.group, MemberID: m.id, InstanceID: instance, ClientID: "client", ProtocolType: "consumer",
		SessionTimeout: m.session, RebalanceTimeout: time.Minute, SkipAssignment: true}
	for _, p := range protocols {
		req.Protocols = append(req.Protocols, Protocol{Name: p, Metadata: []byte("of " + p)})
	}
	return m.k.Join(req)
}

// GR-6: a session that ran out while the broker was away has not: it starts anew
// with the broker, and ends where the member does not come back.
func TestSessionsStartAnewWithTheBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		comes, stays := k.alone("comes"), k.alone("stays")
		synctest.Wait()
		k = k.killed()
		comes.k, stays.k = k, k
		for range 3 {
			pass(9 * time.Second)
			k.want(comes.heartbeat(), nil)
		}
		k.want(stays.heartbeat(), kerr.UnknownMemberID)
		if k.state("stays") != "Empty" {
			t.Error(k.state("stays"))
		}
	})
}

// GR-6: all protocols that a member offered are there after a restart, and not
// only the chosen one: one that joins with another takes the group over to it.
func TestOfferedProtocolsOutliveAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		a := k.member("g")
		a.last = <-a.offering(nil, "first", "second")
		a.id = a.last.MemberID
		_, err := a.sync()
		k.want(err, nil)
		synctest.Wait()
		k = k.killed()
		a.k = k
		b := k.member("g")
		answer := b.offering(nil, "second")
		k.want(a.heartbeat(), kerr.RebalanceInProgress)
		again := a.offering(nil, "first", "second")
		r := <-answer
		k.want(r.Err, nil)
		if r = <-again; *r.ProtocolName != "second" || len(r.Members) != 2 || string(r.Members[0].Metadata) != "of second" {
			t.Errorf("%s, %+v", *r.ProtocolName, r.Members)
		}
	})
}

// GR-2, GR-6: a static member is known by its instance after a kill: it comes
// with a new id and gets its assignment without a rebalance, and its former self is fenced.
func TestStaticMembersOutliveAKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		instance := "i"
		a := k.member("g")
		a.last = <-a.offering(&instance, "range")
		a.id = a.last.MemberID
		was, err := a.sync()
		k.want(err, nil)
		synctest.Wait()
		for range 2 { // the new id, too, outlives a kill
			k = k.killed()
			old := a.id
			a.k, a.id = k, ""
			a.last = <-a.offering(&instance, "range")
			if a.id = a.last.MemberID; a.last.Err != nil || a.last.Generation != 1 || a.id == old || !a.last.SkipAssignment {
				t.Fatalf("%+v", a.last)
			}
			got, err := a.sync()
			k.want(err, nil)
			if string(got) != string(was) {
				t.Errorf("assigned %q, it was %q", got, was)
			}
			k.want(k.Heartbeat(&HeartbeatRequest{Group: "g", MemberID: old, InstanceID: &instance, Generation: 1}), kerr.FencedInstanceID)
			synctest.Wait()
		}
	})
}

// GR-6: after a kill while a new member makes the others join again, they go on as before, and it joins anew.
func TestAKillWhileMembersJoinGoesBackToTheGenerationBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		a := k.alone("g")
		b := k.member("g")
		b.start()
		if got := k.state("g"); got != "PreparingRebalance" {
			t.Fatal(got)
		}
		k = k.killed()
		a.k, b.k = k, k
		if d, _ := k.Describe("g"); d.State != "Stable" || len(d.Members) != 1 || string(d.Members[0].Assignment) != a.id {
			t.Errorf("%+v", d)
		}
		k.want((<-b.request()).Err, kerr.UnknownMemberID)
		b.id = ""
		k.want(a.heartbeat(), nil) // nothing has happened to it
		answer := b.start()
		k.want(a.heartbeat(), kerr.RebalanceInProgress)
		k.want(a.join(), nil)
		b.last = <-answer
		if a.last.Generation != b.last.Generation || len(a.last.Members) != 2 {
			t.Errorf("%+v, %+v", a.last, b.last)
		}
	})
}

// GR-6: after a kill between JoinGroup and SyncGroup, members sync in the generation that they were told.
func TestAKillBeforeTheAssignmentKeepsTheGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		a := k.alone("g")
		b := k.member("g")
		joining := b.start()
		k.want(a.join(), nil)
		b.last = <-joining
		k = k.killed()
		a.k, b.k = k, k
		k.want(b.heartbeat(), nil)
		k.want((<-a.request()).Err, nil) // its answer may have been lost
		waits := b.startSync()
		got, err := a.sync()
		k.want(err, nil)
		r := <-waits
		if string(got) != a.id || string(r.Assignment) != b.id || a.last.Generation != 2 || r.Err != nil {
			t.Errorf("%q, %q, generation %d, %v", got, r.Assignment, a.last.Generation, r.Err)
		}
		k.want(errors.Join(a.heartbeat(), b.heartbeat()), nil)
	})
}

// GR-6: at every commit to meta.db and every write of the journal in a group's life the broker is killed; every
// member is as it was told it is, all come to one stable generation again, no two of
// them with one assignment, and the number of a generation is never given out twice.
func TestGroupsRecoverFromAKillAtAnyStep(t *testing.T) {
	type cut struct {
		path    string
		disk    *crashfs.FS
		members []member // as they were told until then
	}
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		var mu sync.Mutex // guards cuts
		var cuts []cut
		var members []*member
		snapshot := func() {
			disk := k.disk.KillClone()
			path := filepath.Join(t.TempDir(), "meta.db")
			k.copyTo(path)
			c := cut{path: path, disk: disk}
			for _, m := range members {
				c.members = append(c.members, *m)
			}
			mu.Lock()
			defer mu.Unlock()
			cuts = append(cuts, c)
		}
		k.failing(func() error { snapshot(); return nil })
		k.disk.OnOp(func(vfs.Op) { snapshot() })
		for round := range 4 { // one more comes, and at last the first one leaves
			m := k.member("g")
			joinAll(t, members, m)
			members = append(members, m)
			synctest.Wait()
			if round == 3 {
				k.want(members[0].leave(), nil)
				members = members[1:]
				joinAll(t, members, nil)
				synctest.Wait()
			}
		}
		k.disk.OnOp(nil)
		if len(cuts) < 12 {
			t.Fatalf("%d cuts", len(cuts))
		}
		for i, c := range cuts {
			after := k.from(c.path, c.disk)
			var all []*member
			for _, m := range c.members {
				m.k = after
				all = append(all, &m)
			}
			for n, m := range all {
				if was := c.members[n].last; was.Err == nil && m.id != "" {
					if err := m.heartbeat(); err != nil && !errors.Is(err, kerr.RebalanceInProgress) && !errors.Is(err, kerr.IllegalGeneration) {
						t.Errorf("cut %d: %s of generation %d: %v", i, m.id, was.Generation, err)
					}
					if g := after.groups["g"].state.Generation(); g < was.Generation {
						t.Errorf("cut %d: generation %d, a member was told %d", i, g, was.Generation)
					}
				}
			}
			for range 15 { // seconds: one that had left is waited for until its session ends
				settled := true
				for _, m := range all {
					err := m.heartbeat()
					if settled = settled && err == nil; errors.Is(err, kerr.UnknownMemberID) {
						m.id = ""
					}
				}
				if settled {
					break
				}
				joinAll(t, all, nil)
			}
			var got []string
			for n, m := range all {
				if was := c.members[n].last; m.last.Generation == was.Generation && len(m.last.Members) != len(was.Members) {
					t.Errorf("cut %d: generation %d once more, of others", i, m.last.Generation)
				}
				k.want(m.heartbeat(), nil)
				got = append(got, m.id)
			}
			if slices.Sort(got); len(slices.Compact(got)) != len(all) {
				t.Errorf("cut %d: %v", i, got)
			}
		}
	})
}

// joinAll has all members join, and sync.
func joinAll(t *testing.T, members []*member, more *member) {
	t.Helper()
	var answers []<-chan JoinResponse
	if more != nil {
		members = append(slices.Clone(members), more)
	}
	for _, m := range slices.Backward(members) {
		answers = append(answers, m.start())
	}
	synctest.Wait()
	pass(time.Second) // the delay of a first generation
	slices.Reverse(answers)
	var syncs []<-chan SyncResponse
	for i, m := range members {
		select {
		case r := <-answers[i]:
			if errors.Is(r.Err, kerr.UnknownMemberID) {
				m.id = ""
				return // the next time
			}
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			m.last, m.id = r, r.MemberID
		default:
			return // others are waited for: the next time
		}
	}
	for _, m := range members {
		syncs = append(syncs, m.startSync())
	}
	synctest.Wait()
	for i := range members {
		select {
		case r := <-syncs[i]:
			if r.Err == nil && string(r.Assignment) != members[i].id {
				t.Fatalf("%s is assigned %q", members[i].id, r.Assignment)
			}
		default:
		}
	}
}
