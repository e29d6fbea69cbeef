package scenario

import (
	"fmt"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var (
	_ = judge.RegisterOwn("groups-timers", togetherBroker, groupsTimers)
	_ = judge.RegisterOwn("groups-initial-delay", target.Options{
		Flags:      []string{"--group-initial-rebalance-delay-ms", "2000", "--group-min-session-timeout-ms", "200"},
		Properties: map[string]string{"group.initial.rebalance.delay.ms": "2000", "group.min.session.timeout.ms": "200"},
	}, groupsInitialDelay)
	_ = judge.RegisterOwn("groups-no-initial-delay", target.Options{
		Flags:      []string{"--group-initial-rebalance-delay-ms", "0"},
		Properties: map[string]string{"group.initial.rebalance.delay.ms": "0"},
	}, groupsNoInitialDelay)
)

// within tells, as the name of a step, whether what a timer gives comes in its time.
func within(c *judge.Conn, step string, soonest, latest time.Duration, ask func()) {
	start := time.Now()
	ask()
	how := "within its time"
	switch d := time.Since(start); {
	case d < soonest:
		how = "too soon"
	case d > latest:
		how = "late"
	}
	c.Do(fmt.Sprintf("%s: it came %s", step, how), 4, metadataNone())
}

// groupsTimers lets the timers of groups run out: sessions, rebalances, syncs, ids that are not used.
func groupsTimers(e *judge.Env) {
	timerSession(e)
	timerPending(e)
	timerRebalance(e)
	timerLeader(e)
	timerSync(e)
	timerStatic(e)
	timerNoSync(e)
}

// timerSession: a member that is not heard of is removed.
func timerSession(e *judge.Env) {
	c := e.Conn()
	g := named(e, "session")
	r := joined(e, e.Quiet(3, timeouts(join(g, ""), 2500, 60000)))
	e.Quiet(2, syncGroup(g, r.MemberID, r.Generation, r.MemberID, "all"))
	// Heartbeats keep it, and so do commits.
	for i := range 4 {
		time.Sleep(900 * time.Millisecond)
		if i%2 == 0 {
			c.Do(fmt.Sprintf("session: heartbeat %d", i), 4, heartbeat(g, r.MemberID, r.Generation))
			continue
		}
		c.Do(fmt.Sprintf("session: commit %d", i), 9, commitAs(g, r.MemberID, r.Generation, e.CreateTopic(fmt.Sprintf("session-%d", i), 1).Name, 0, 1))
	}
	within(c, "session: the end", time.Second, 10*time.Second, func() { awaitState(e, g, "Empty") })
	c.Do("session: heartbeat after its end", 4, heartbeat(g, r.MemberID, r.Generation))
	c.Do("session: described after its end", 6, describeGroups(g))
}

// timerPending: an id that was given out and not used is forgotten after the session timeout.
func timerPending(e *judge.Env) {
	c := e.Conn()
	g := named(e, "pending")
	r := joined(e, c.Do("pending: given an id", 4, timeouts(join(g, ""), 500, 60000)))
	awaitState(e, g, "Empty") // Kafka tells of a group once its log has it, which its answer did not wait for
	c.Do("pending: described", 6, describeGroups(g))
	time.Sleep(time.Second)
	c.Do("pending: the id is too old", 4, timeouts(join(g, r.MemberID), 500, 60000))
	c.Do("pending: described after that", 6, describeGroups(g))
	// One holds up a rebalance until it is forgotten.
	member, _ := stable(e, g)
	c.Do("pending: given another id", 4, timeouts(join(g, ""), 1500, 60000))
	within(c, "pending: the rebalance that waits for it", 300*time.Millisecond, 10*time.Second, func() {
		e.ConnAs("a").Park("pending: the leader joins again", 4, join(g, member)).Done(sortedMembers)
	})
}

// timerRebalance: a member that does not join again within its rebalance timeout is removed.
func timerRebalance(e *judge.Env) {
	c := e.Conn()
	g := named(e, "rebalance")
	r := joined(e, e.Quiet(3, timeouts(join(g, ""), 60000, 1500)))
	e.Quiet(2, syncGroup(g, r.MemberID, r.Generation, r.MemberID, "all"))
	within(c, "rebalance: without the first", 500*time.Millisecond, 10*time.Second, func() {
		p := e.ConnAs("b").Park("rebalance: b joins", 3, timeouts(join(g, ""), 60000, 1000))
		awaitState(e, g, "PreparingRebalance")
		c.Do("rebalance: heartbeat of the first", 4, heartbeat(g, r.MemberID, r.Generation))
		p.Done(sortedMembers)
	})
	c.Do("rebalance: heartbeat of the first after that", 4, heartbeat(g, r.MemberID, r.Generation))
	c.Do("rebalance: the first joins", 4, join(g, r.MemberID))
	c.Do("rebalance: described", 6, describeGroups(g))
}

// timerLeader: the leader of three does not join again; a follower is the next one.
func timerLeader(e *judge.Env) {
	c, a, b := e.Conn(), e.ConnAs("a"), e.ConnAs("b")
	g := named(e, "leader")
	r := joined(e, e.Quiet(3, timeouts(join(g, ""), 60000, 1500)))
	e.Quiet(2, syncGroup(g, r.MemberID, r.Generation, r.MemberID, "all"))
	pa := a.Park("leader: a joins", 3, timeouts(join(g, ""), 60000, 1500))
	awaitMembers(e, g, 2)
	pb := b.Park("leader: b joins", 3, timeouts(join(g, ""), 60000, 500))
	awaitMembers(e, g, 3)
	ra, rb := joined(e, pa.Done(eitherLeads)), joined(e, pb.Done(eitherLeads))
	c.Do("leader: heartbeat of the old one", 4, heartbeat(g, r.MemberID, ra.Generation))
	c.Do("leader: heartbeat of b", 4, heartbeat(g, rb.MemberID, rb.Generation))
	c.Do("leader: described", 6, describeGroups(g), sortedMembers)
	// One that never syncs: the follower is parked, and then told to join again.
	g = named(e, "leader-sync")
	pa = a.Park("leader: a joins another group", 3, timeouts(join(g, ""), 60000, 1500))
	awaitMembers(e, g, 1)
	pb = b.Park("leader: b joins another group", 3, timeouts(join(g, ""), 60000, 500))
	awaitMembers(e, g, 2)
	ra, rb = joined(e, pa.Done(sortedMembers)), joined(e, pb.Done(sortedMembers))
	within(c, "leader: its sync never comes", 300*time.Millisecond, 10*time.Second, func() {
		b.Park("leader: the follower syncs", 2, syncGroup(g, rb.MemberID, rb.Generation)).Done()
	})
	c.Do("leader: described when it was removed", 6, describeGroups(g), sortedMembers)
	c.Do("leader: heartbeat of the one that did not sync", 4, heartbeat(g, ra.MemberID, ra.Generation))
	b.Do("leader: the follower is the next one", 3, join(g, rb.MemberID), sortedMembers)
}

// timerSync: a follower that never syncs is removed although the group is stable.
func timerSync(e *judge.Env) {
	c, a, b := e.Conn(), e.ConnAs("a"), e.ConnAs("b")
	g := named(e, "sync")
	pa := a.Park("sync: a joins", 3, timeouts(join(g, ""), 60000, 1500))
	awaitMembers(e, g, 1)
	pb := b.Park("sync: b joins", 3, timeouts(join(g, ""), 60000, 1500))
	awaitMembers(e, g, 2)
	ra, rb := joined(e, pa.Done(sortedMembers)), joined(e, pb.Done(sortedMembers))
	a.Do("sync: the leader syncs", 2, syncGroup(g, ra.MemberID, ra.Generation, ra.MemberID, "a", rb.MemberID, "b"))
	c.Do("sync: stable", 6, describeGroups(g), sortedMembers)
	c.Do("sync: b is alive", 4, heartbeat(g, rb.MemberID, rb.Generation))
	within(c, "sync: b never comes", 300*time.Millisecond, 10*time.Second, func() { awaitState(e, g, "PreparingRebalance") })
	c.Do("sync: described without b", 6, describeGroups(g), sortedMembers)
	c.Do("sync: heartbeat of a", 4, heartbeat(g, ra.MemberID, ra.Generation))
	c.Do("sync: heartbeat of b", 4, heartbeat(g, rb.MemberID, rb.Generation))
	a.Do("sync: a joins again", 3, timeouts(join(g, ra.MemberID), 60000, 1500), sortedMembers)
}

// timerStatic: a static member that does not join again stays until its session ends.
func timerStatic(e *judge.Env) {
	c := e.Conn()
	g := named(e, "static")
	r := joined(e, e.Quiet(5, timeouts(joinStatic(g, "one", ""), 3000, 1000)))
	e.Quiet(2, syncGroup(g, r.MemberID, r.Generation, r.MemberID, "all"))
	b := e.ConnAs("b")
	p := b.Park("static: b joins", 5, timeouts(joinStatic(g, "two", ""), 60000, 1000))
	rb := joined(e, p.Done(sortedMembers))
	c.Do("static: the first stays", 6, describeGroups(g), sortedMembers)
	b.Do("static: b syncs", 2, syncGroup(g, rb.MemberID, rb.Generation, rb.MemberID, "b", r.MemberID, "a"))
	within(c, "static: the end of its session", 100*time.Millisecond, 10*time.Second, func() { awaitMembers(e, g, 1) })
	c.Do("static: it is gone", 6, describeGroups(g), sortedMembers)
}

// timerNoSync: a lone member that never syncs.
func timerNoSync(e *judge.Env) {
	c := e.Conn()
	g := named(e, "no-sync")
	e.Quiet(3, timeouts(join(g, ""), 60000, 800))
	within(c, "no sync", 200*time.Millisecond, 10*time.Second, func() { awaitState(e, g, "Empty") })
	c.Do("no sync: described", 6, describeGroups(g))
}

// groupsInitialDelay: each member that comes within the delay makes it longer, up to the rebalance timeout.
func groupsInitialDelay(e *judge.Env) {
	c, a, b := e.Conn(), e.ConnAs("a"), e.ConnAs("b")
	g := named(e, "lone")
	within(c, "a lone member", 1800*time.Millisecond, 10*time.Second, func() { a.Park("a lone member", 3, join(g, "")).Done() })
	g = named(e, "two")
	within(c, "two members", 3300*time.Millisecond, 10*time.Second, func() {
		p := a.Park("the first of two", 3, join(g, ""))
		time.Sleep(1200 * time.Millisecond)
		q := b.Send("the second of two", 3, join(g, ""))
		p.Done(sortedMembers)
		q.Done(sortedMembers)
	})
	g = named(e, "short")
	within(c, "a rebalance timeout below the delay", 1800*time.Millisecond, 3500*time.Millisecond, func() {
		p := a.Park("the first with a short timeout", 3, timeouts(join(g, ""), 60000, 1000))
		awaitMembers(e, g, 1)
		q := b.Park("the second with a short timeout", 3, timeouts(join(g, ""), 60000, 1000))
		awaitMembers(e, g, 2)
		p.Done(sortedMembers)
		q.Done(sortedMembers)
	})
	g = named(e, "leaves")
	p := a.Park("a member that leaves within the delay", 3, join(g, ""))
	awaitMembers(e, g, 1)
	id := thirdOf(e, g, "")
	c.Do("it leaves", 5, leave(g, leaver{member: id}))
	p.Done(sortedMembers)
	c.Do("described after it left", 6, describeGroups(g))
	p = a.Park("one that joins then", 3, join(g, ""))
	p.Done(sortedMembers)
	// A session shorter than the delay does not end while its JoinGroup is parked.
	g = named(e, "session")
	a.Park("a session shorter than the delay", 3, timeouts(join(g, ""), 300, 60000)).Done()
}

// groupsNoInitialDelay: a group is complete with its first member.
func groupsNoInitialDelay(e *judge.Env) {
	c := e.Conn()
	for _, v := range []int16{0, 3, 9} {
		g := named(e, fmt.Sprintf("v%d", v))
		r := joined(e, c.Do(fmt.Sprintf("v%d: joins", v), v, join(g, "")))
		if r.ErrorCode != 0 {
			r = joined(e, c.Do(fmt.Sprintf("v%d: joins by its id", v), v, join(g, r.MemberID)))
		}
		c.Do(fmt.Sprintf("v%d: syncs", v), min(v, 5), syncGroup(g, r.MemberID, r.Generation, r.MemberID, "all"))
		p := e.ConnAs("b").Park(fmt.Sprintf("v%d: another joins", v), 3, join(g, ""))
		awaitState(e, g, "PreparingRebalance")
		c.Do(fmt.Sprintf("v%d: the first joins again", v), v, join(g, r.MemberID), sortedMembers)
		p.Done(sortedMembers)
	}
}
