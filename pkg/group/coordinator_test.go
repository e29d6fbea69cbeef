package group

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// GR-8: 50 members that start at once are in one stable generation within 500 ms.
func TestFiftyMembersFormOneGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		begin := time.Now()
		members := make([]*member, 50)
		var wg sync.WaitGroup
		for i := range members {
			members[i] = k.member("g")
			wg.Go(func() {
				if err := members[i].join(); err != nil {
					t.Error(err)
				}
				if got, err := members[i].sync(); err != nil || string(got) != members[i].id {
					t.Errorf("assigned %q, %v", got, err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begin); took > 500*time.Millisecond || k.state("g") != "Stable" {
			t.Errorf("%s after %v", k.state("g"), took)
		}
		for _, m := range members {
			if m.last.Generation != 1 || m.heartbeat() != nil {
				t.Errorf("generation %d, %v", m.last.Generation, m.heartbeat())
			}
		}
	})
}

// GR-1: sessions end by the coordinator's clock, and the timers that are set on the way are enough.
func TestTimersFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		a := k.alone("g")
		a.session = time.Second
		b := k.member("g")
		answer := b.start()
		synctest.Wait()
		k.want(a.heartbeat(), kerr.RebalanceInProgress)
		if err := a.join(); err != nil {
			t.Fatal(err)
		}
		if b.last = <-answer; b.last.Err != nil {
			t.Fatal(b.last.Err)
		}
		waiting := b.startSync()
		if _, err := a.sync(); err != nil {
			t.Fatal(err)
		}
		if r := <-waiting; string(r.Assignment) != b.id {
			t.Errorf("%+v", r)
		}
		for range 10 {
			pass(900 * time.Millisecond)
			k.want(a.heartbeat(), nil)
			k.want(b.heartbeat(), nil)
		}
		pass(1100 * time.Millisecond)
		k.want(b.heartbeat(), kerr.RebalanceInProgress)
		k.want(a.heartbeat(), kerr.UnknownMemberID)
		if err := b.join(); err != nil || b.last.Generation != 3 || len(b.last.Members) != 1 {
			t.Errorf("%+v", b.last)
		}
	})
}

// A test of a running broker moves the clock, and sessions end.
func TestTheClockMayBeMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		moved := clock.NewOffset(clock.System)
		k.o.Clock = moved
		k.alone("g")
		moved.Advance(11 * time.Second)
		synctest.Wait()
		if got := k.state("g"); got != "Empty" {
			t.Error(got)
		}
	})
}

// What is wrong with a request before any group is asked.
func TestRequestsAreChecked(t *testing.T) {
	k := newKit(t)
	for _, group := range []string{"", strings.Repeat("g", metastore.MaxGroupName+1)} {
		m := k.member(group)
		k.want(m.join(), kerr.InvalidGroupID)
		_, err := m.sync()
		m.last.ProtocolName, m.last.ProtocolType = new(string), new(string)
		k.want(err, kerr.InconsistentGroupProtocol)
		_, err = m.sync()
		k.want(err, kerr.InvalidGroupID)
		k.want(m.heartbeat(), kerr.InvalidGroupID)
		k.want(m.leave(), kerr.InvalidGroupID)
		k.want(k.DeleteOffsets(t.Context(), &DeleteOffsetsRequest{Group: group}).Err, kerr.InvalidGroupID)
	}
	m := k.member("g")
	for _, m.session = range []time.Duration{99 * time.Millisecond, 1800001 * time.Millisecond, -time.Second} {
		k.want(m.join(), kerr.InvalidSessionTimeout)
	}
	m = k.member("nobody's")
	m.id, m.last.ProtocolName, m.last.ProtocolType = "x", new(string), new(string)
	k.want((<-m.request()).Err, kerr.UnknownMemberID)
	_, err := m.sync()
	k.want(err, kerr.UnknownMemberID)
	k.want(m.heartbeat(), kerr.UnknownMemberID)
	k.want(m.leave(), kerr.UnknownMemberID)
	if got := k.List(ListFilter{}); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// Requests alias the frames they came in, which are used again.
func TestWhatIsKeptIsCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		var frames [][]byte
		text := func(s string) string {
			b := []byte(s)
			frames = append(frames, b)
			return unsafe.String(&b[0], len(b))
		}
		blob := func(s string) []byte {
			frames = append(frames, []byte(s))
			return frames[len(frames)-1]
		}
		scribble := func() {
			for _, f := range frames {
				clear(f)
			}
		}
		instance := text("instance")
		answer := k.Join(&JoinRequest{Group: text("group"), ClientID: text("client"), ClientHost: text("/host"), InstanceID: &instance,
			ProtocolType: text("type"), Protocols: []Protocol{{Name: text("protocol"), Metadata: blob("metadata")}}, SessionTimeout: time.Second, RebalanceTimeout: time.Second})
		scribble()
		r := <-answer
		<-k.Sync(&SyncRequest{Group: text("group"), MemberID: text(r.MemberID), Generation: r.Generation,
			Assignments: []Assignment{{MemberID: text(r.MemberID), Data: blob("assignment")}}})
		scribble()
		d, err := k.Describe("group")
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s %s %s %s %s %s %s %s %s", d.Group, d.ProtocolType, d.Protocol, *d.Members[0].InstanceID, d.Members[0].MemberID,
			d.Members[0].ClientID, d.Members[0].ClientHost, d.Members[0].Metadata, d.Members[0].Assignment)
		if want := "group type protocol instance " + r.MemberID + " client /host metadata assignment"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// GR-6: a group survives a restart and a power cut. Members go on without a
// rebalance as long as their sessions hold, counted from the start.
func TestMembersGoOnAfterARestart(t *testing.T) {
	for name, restart := range map[string]func(*kit) *kit{
		"restart":   func(k *kit) *kit { k.restart(); return k },
		"power cut": func(k *kit) *kit { return k.cut() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t)
				m := k.alone("g")
				left := k.alone("left")
				k.want(left.leave(), nil)
				synctest.Wait() // written behind
				pass(9 * time.Second)
				k = restart(k)
				m.k, left.k = k, k
				pass(9 * time.Second)
				k.want(m.heartbeat(), nil)
				if got, err := m.sync(); err != nil || string(got) != m.id {
					t.Errorf("assigned %q, %v", got, err)
				}
				k.want(left.heartbeat(), kerr.UnknownMemberID)
				d, err := k.Describe("g")
				if err != nil || d.State != "Stable" || d.Protocol != "range" || len(d.Members) != 1 || d.Members[0].ClientHost != "/127.0.0.1" {
					t.Errorf("%+v, %v", d, err)
				}
				if d, err := k.Describe("left"); err != nil || d.State != "Empty" || d.ProtocolType != "consumer" {
					t.Errorf("%+v, %v", d, err)
				}
				pass(11 * time.Second)
				if got := k.state("g"); got != "Empty" {
					t.Error(got)
				}
			})
		})
	}
}

// GR-6: a reply of a group never waits for the disk.
func TestMembershipDoesNotWaitForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		before := k.store.Commits()
		hang := make(chan struct{})
		k.failing(func() error { <-hang; return nil })
		begin := time.Now()
		a := k.alone("g")
		k.want(a.leave(), nil)
		b := k.alone("g")
		if took := time.Since(begin); took > time.Second || b.last.Generation != 3 {
			t.Errorf("generation %d after %v", b.last.Generation, took)
		}
		close(hang)
		synctest.Wait()
		if after := k.cut(); after.state("g") != "Stable" {
			t.Error(after.state("g"))
		}
		if n := k.store.Commits() - before; n > 2 { // what changes during a write is one more
			t.Errorf("%d commits", n)
		}
	})
}

// GR-6, ST-60: on a full disk groups go on, and are written once there is room.
func TestGroupsGoOnOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.failing(full)
		a := k.alone("g")
		k.want(k.commit("g", 0, 1), kerr.UnknownMemberID)
		k.want(k.commit("other", 0, 1), kerr.NotCoordinator)
		if got := k.committed("other", 0); got != -1 || k.state("other") != "Dead" {
			t.Errorf("offset %d, %s", got, k.state("other"))
		}
		for range 3 {
			pass(4 * time.Second)
			k.want(a.heartbeat(), nil)
		}
		k.fail.Store(nil)
		pass(2 * time.Second)
		synctest.Wait()
		after := k.cut()
		a.k = after
		k.want(a.heartbeat(), nil)
		k.want(k.commit("other", 0, 1), nil)
	})
}

// The stop tries once more what could not be written.
func TestCloseWritesWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.failing(full)
		a := k.alone("g")
		synctest.Wait()
		k.fail.Store(nil)
		k.restart()
		k.want(a.heartbeat(), nil)
	})
}

// A session may get shorter by a heartbeat, or by a commit: that of a member
// that waits for its first generation, to which the 5 minutes of new members applied.
func TestASessionThatGetsShorterIsTimed(t *testing.T) {
	for name, use := range map[string]func(*member) error{
		"heartbeat": (*member).heartbeat,
		"commit": func(m *member) error {
			return m.k.CommitOffsets(t.Context(), &CommitRequest{Group: m.group, MemberID: m.id, Generation: 0, Retention: -1,
				Offsets: []OffsetToCommit{{Topic: "t", TopicID: m.k.topics["t"]}}})[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t)
				k.settings.GroupInitialRebalanceDelayMs = 60000
				k.restart()
				answer := k.Join(&JoinRequest{Group: "g", ProtocolType: "consumer", Protocols: []Protocol{{Name: "range"}},
					SessionTimeout: 10 * time.Second, RebalanceTimeout: time.Minute})
				d, err := k.Describe("g") // the client does not know its id yet
				if err != nil {
					t.Fatal(err)
				}
				m := k.member("g")
				m.id = d.Members[0].MemberID
				if err := use(m); err != nil && !errors.Is(err, kerr.RebalanceInProgress) {
					t.Error(err)
				}
				pass(9 * time.Second)
				if k.state("g") != "PreparingRebalance" {
					t.Error(k.state("g"))
				}
				pass(2 * time.Second)
				if k.state("g") != "Empty" {
					t.Error(k.state("g"))
				}
				k.want((<-answer).Err, kerr.UnknownMemberID)
			})
		})
	}
}

// ST-64: a commit that failed otherwise stops all further ones; groups go on in
// memory, and the stop says that they were not written.
func TestGroupsGoOnAfterAFailedCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.failing(func() error { return errors.New("fsync: input/output error") })
		k.want(k.commit("other", 0, 1), kerr.NotCoordinator)
		k.fail.Store(nil)
		a := k.alone("g")
		k.want(k.commit("other", 0, 1), kerr.NotCoordinator)
		k.want(k.Delete(t.Context(), []string{"g"})[0], kerr.NonEmptyGroup)
		k.want(a.leave(), nil)
		k.want(k.Delete(t.Context(), []string{"g"})[0], kerr.NotCoordinator)
		if k.state("g") != "Empty" {
			t.Error(k.state("g"))
		}
		if err := k.Close(); err == nil {
			t.Error("no error")
		}
	})
}

// Who waits is answered at the stop, and nobody is after it.
func TestCloseAnswersWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		a := k.alone("a")
		follower, leader := k.member("h"), k.member("h")
		answer := follower.start()
		if err := leader.join(); err != nil {
			t.Fatal(err)
		}
		follower.last = <-answer
		if len(follower.last.Members) > 0 {
			follower, leader = leader, follower
		}
		joining, syncing := k.member("g").start(), follower.startSync()
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		k.want((<-joining).Err, kerr.NotCoordinator)
		k.want((<-syncing).Err, kerr.NotCoordinator)
		k.want(a.heartbeat(), kerr.CoordinatorNotAvailable)
		k.want(a.join(), kerr.CoordinatorNotAvailable)
		_, err := leader.sync()
		k.want(err, kerr.CoordinatorNotAvailable)
		k.want(a.leave(), kerr.CoordinatorNotAvailable)
		k.want(k.commit("x", 0, 0), kerr.CoordinatorNotAvailable)
		k.want(k.FetchOffsets(&FetchOffsetsRequest{}).Err, kerr.CoordinatorNotAvailable)
		_, err = k.Describe("a")
		k.want(err, kerr.CoordinatorNotAvailable)
		k.want(k.Delete(t.Context(), []string{"a"})[0], kerr.CoordinatorNotAvailable)
		k.want(k.Close(), nil)
	})
}

// GR-2: the group's lock and tickets, with a static member that is fenced while it waits.
func TestAFencedMemberIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		instance := "i"
		join := func() <-chan JoinResponse {
			return k.Join(&JoinRequest{Group: "g", InstanceID: &instance, ProtocolType: "consumer", Protocols: []Protocol{{Name: "range"}},
				SessionTimeout: time.Second, RebalanceTimeout: time.Second})
		}
		first := join()
		second := join()
		k.want((<-first).Err, kerr.FencedInstanceID)
		if r := <-second; r.Err != nil || !slices.ContainsFunc(r.Members, func(m JoinMember) bool { return *m.InstanceID == "i" }) {
			t.Errorf("%+v", r)
		}
	})
}

func BenchmarkHeartbeat(b *testing.B) {
	k := newKit(b)
	m := k.alone("g")
	for b.Loop() {
		if err := m.heartbeat(); err != nil {
			b.Fatal(err)
		}
	}
}
