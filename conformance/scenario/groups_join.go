package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.RegisterOwn("groups-join", togetherBroker, groupsJoin)
	_ = judge.RegisterOwn("groups-join-states", groupsBroker, groupsJoinStates)
	_ = judge.RegisterOwn("groups-join-many", togetherBroker, groupsJoinMany)
)

// groupsJoin asks each version of JoinGroup what can be asked by one member.
func groupsJoin(e *judge.Env) {
	c := e.Conn()
	for v := range int16(10) {
		g := named(e, fmt.Sprintf("v%d", v))
		step := func(s string) string { return fmt.Sprintf("v%d: %s", v, s) }
		c.Do(step("no group id"), v, join("", ""))
		for _, ms := range []int32{-1, 0, 199, 1800001} {
			c.Do(step(fmt.Sprintf("session timeout %d", ms)), v, timeouts(join(g, ""), ms, 1000))
		}
		c.Do(step("member id, no group"), v, join(g, "somebody"))
		c.Do(step("described"), 6, describeGroups(g))
		noType, noProtocols := join(g, ""), join(g, "")
		noType.ProtocolType, noProtocols.Protocols = "", nil
		c.Do(step("no protocol type"), v, noType)
		c.Do(step("no protocols"), v, noProtocols)
		c.Do(step("described after it was refused"), 6, describeGroups(g))
		first := c.Park(step("first member"), v, join(g, "", protocol{"range", "r"}, protocol{"sticky", "s"}))
		r := joined(e, first.Done(sortedMembers))
		if r.ErrorCode != 0 { // MEMBER_ID_REQUIRED
			awaitState(e, g, "Empty")
			c.Do(step("described while it is pending"), 6, describeGroups(g))
			c.Do(step("heartbeat of a pending member"), 4, heartbeat(g, r.MemberID, -1))
			again := c.Park(step("first member by its id"), v, join(g, r.MemberID, protocol{"range", "r"}, protocol{"sticky", "s"}))
			r = joined(e, again.Done(sortedMembers))
		}
		joinedOnce(e, c, v, g, r, step)
	}
}

// joinedOnce goes on with a group of one member, which is in CompletingRebalance.
func joinedOnce(e *judge.Env, c *judge.Conn, v int16, g string, r *kmsg.JoinGroupResponse, step func(string) string) {
	id := r.MemberID
	both := []protocol{{"range", "r"}, {"sticky", "s"}}
	refused := func(when string) {
		c.Do(step("unknown member "+when), v, join(g, "somebody", both...))
		other := join(g, id, both...)
		other.ProtocolType = "connect"
		c.Do(step("another protocol type "+when), v, other)
		c.Do(step("another protocol "+when), v, join(g, "", protocol{"roundrobin", "x"}))
		c.Do(step("the member with another protocol "+when), v, join(g, id, protocol{"roundrobin", "x"}))
		noProtocols := join(g, id)
		noProtocols.Protocols = nil
		c.Do(step("no protocols "+when), v, noProtocols)
		c.Do(step("session timeout "+when), v, timeouts(join(g, id), 1, 1))
	}
	refused("while completing")
	c.Do(step("joins again while completing"), v, join(g, id, both...), sortedMembers)
	r = joined(e, c.Do(step("with other metadata while completing"), v, join(g, id, protocol{"range", "r2"}, protocol{"sticky", "s"}), sortedMembers))
	c.Do(step("sync"), min(v, 5), syncGroup(g, id, r.Generation, id, "all"))
	refused("while stable")
	r = joined(e, c.Do(step("the leader joins again while stable"), v, join(g, id, protocol{"range", "r2"}, protocol{"sticky", "s"}), sortedMembers))
	c.Do(step("sync again"), min(v, 5), syncGroup(g, id, r.Generation, id, "all"))
	c.Do(step("described at last"), 6, describeGroups(g))
	c.Do(step("leaves"), min(v, 5), leave(g, leaver{member: id}))
	c.Do(step("described when empty"), 6, describeGroups(g))
	c.Do(step("joins by its id when empty"), v, join(g, id, both...))
	if v >= 5 {
		p := c.Park(step("static member when empty"), v, joinStatic(g, "one", "", both...))
		r = joined(e, p.Done(sortedMembers))
		c.Do(step("instance with another member id"), v, joinStatic(g, "one", "somebody", both...))
		c.Do(step("unknown instance with a member id"), v, joinStatic(g, "two", r.MemberID, both...))
		c.Do(step("static member without its instance id"), v, join(g, r.MemberID, both...), sortedMembers)
		e.ConnAs("nobody").Park(step("instance id of no characters"), v, joinStatic(g, "", "", both...))
	}
}

// groupsJoinStates asks for what each state does with the JoinGroups of members it knows and of others.
func groupsJoinStates(e *judge.Env) {
	a, b, c := e.ConnAs("a"), e.ConnAs("b"), e.ConnAs("c")
	for _, v := range []int16{3, 9} {
		step := func(s string) string { return fmt.Sprintf("v%d: %s", v, s) }
		g := named(e, fmt.Sprintf("pending-%d", v))
		id, _ := stable(e, g)
		// A member that was given an id, and does not use it.
		pending := joined(e, b.Do(step("b is given an id"), 4, join(g, "")))
		b.Do(step("stable with a pending member"), 6, describeGroups(g))
		rejoins := a.Park(step("the leader joins again, b is pending"), v, join(g, id))
		awaitState(e, g, "PreparingRebalance")
		b.Do(step("preparing with a pending member"), 6, describeGroups(g))
		b.Do(step("heartbeat of b"), 4, heartbeat(g, pending.MemberID, 1))
		b.Do(step("sync of b"), 5, syncGroup(g, pending.MemberID, 1))
		b.Do(step("commit of b"), 9, commitAs(g, pending.MemberID, 1, "no-topic", 0, 1))
		b.Do(step("b gives its id back"), 5, leave(g, leaver{member: pending.MemberID}))
		r := joined(e, rejoins.Done(sortedMembers))
		// A follower joins again.
		a.Do(step("sync of the leader alone"), 5, syncGroup(g, id, r.Generation, id, "all"))
		joinsB := b.Park(step("b joins"), v, join(g, pending.MemberID))
		if v >= 4 {
			joinsB.Done()
			pending = joined(e, b.Do(step("b is given another id"), v, join(g, "")))
			joinsB = b.Park(step("b joins by it"), v, join(g, pending.MemberID))
			awaitState(e, g, "PreparingRebalance")
		} else {
			joinsB.Done()
			joinsB = b.Park(step("b joins without an id"), v, join(g, ""))
			awaitState(e, g, "PreparingRebalance")
		}
		a.Do(step("heartbeat while preparing"), 4, heartbeat(g, id, r.Generation))
		a.Do(step("sync while preparing"), 5, syncGroup(g, id, r.Generation))
		a.Do(step("heartbeat of another generation while preparing"), 4, heartbeat(g, id, r.Generation+1))
		a.Do(step("described while preparing"), 6, describeGroups(g), sortedMembers)
		rejoins = a.Send(step("the leader joins again"), v, join(g, id))
		leader := joined(e, rejoins.Done(sortedMembers))
		follower := joined(e, joinsB.Done(sortedMembers))
		b.Do(step("the follower joins again while completing"), v, join(g, follower.MemberID), sortedMembers)
		parked := b.Park(step("the follower syncs"), 5, syncGroup(g, follower.MemberID, follower.Generation))
		a.Do(step("the leader syncs"), 5, syncGroup(g, id, leader.Generation, id, "left", follower.MemberID, "right"))
		parked.Done()
		b.Do(step("the follower joins again while stable"), v, join(g, follower.MemberID), sortedMembers)
		a.Do(step("still stable"), 6, describeGroups(g), sortedMembers)
		changed := b.Park(step("the follower joins with other metadata"), v, join(g, follower.MemberID, protocol{"range", "m2"}))
		awaitState(e, g, "PreparingRebalance")
		// A JoinGroup that takes the place of a parked one.
		second := c.Park(step("the follower joins once more, on another connection"), v, join(g, follower.MemberID, protocol{"range", "m3"}))
		a.Do(step("the leader joins last"), v, join(g, id), sortedMembers)
		second.Done(sortedMembers)
		changed.Parked()
		b.Close()
		c.Close()
		// A SyncGroup is parked when the next rebalance comes.
		parked = b.Park(step("the follower is parked in its sync"), 5, syncGroup(g, follower.MemberID, leader.Generation+1))
		joins := c.Park(step("a static member joins"), 5, joinStatic(g, "c", ""))
		awaitState(e, g, "PreparingRebalance")
		parked.Done()
		a.Do(step("commit while preparing"), 9, commitAs(g, id, leader.Generation+1, "no-topic", 0, 1))
		a.Do(step("the leader leaves"), 5, leave(g, leaver{member: id}))
		b.Do(step("described without the leader"), 6, describeGroups(g), sortedMembers)
		b.Do(step("the follower joins for the leader that left"), v, join(g, follower.MemberID), eitherLeads)
		joins.Done(eitherLeads)
	}
}

// groupsJoinMany has three members vote for protocols, and be assigned something or nothing.
func groupsJoinMany(e *judge.Env) {
	a, b, c := e.ConnAs("a"), e.ConnAs("b"), e.ConnAs("c")
	for _, v := range []int16{0, 2, 3} {
		step := func(s string) string { return fmt.Sprintf("v%d: %s", v, s) }
		g := named(e, fmt.Sprintf("three-%d", v))
		pa := a.Park(step("a joins"), v, join(g, "", protocol{"range", "a1"}, protocol{"sticky", "a2"}))
		awaitMembers(e, g, 1)
		pb := b.Park(step("b joins"), v, join(g, "", protocol{"roundrobin", "b0"}, protocol{"sticky", "b1"}, protocol{"range", "b2"}))
		awaitMembers(e, g, 2)
		pc := c.Park(step("c joins"), v, join(g, "", protocol{"sticky", "c1"}, protocol{"range", "c2"}))
		awaitMembers(e, g, 3)
		ra, rb, rc := joined(e, pa.Done(sortedMembers)), joined(e, pb.Done(sortedMembers)), joined(e, pc.Done(sortedMembers))
		for _, x := range []int16{0, 6} {
			a.Do(step(fmt.Sprintf("described v%d while completing", x)), x, describeGroups(g), sortedMembers)
		}
		sb := b.Park(step("b syncs"), 2, syncGroup(g, rb.MemberID, rb.Generation))
		b2 := e.ConnAs("b2")
		b2.Do(step("heartbeat while completing"), 2, heartbeat(g, rb.MemberID, rb.Generation))
		a.Do(step("a syncs for itself, b and a stranger"), 2,
			syncGroup(g, ra.MemberID, ra.Generation, ra.MemberID, "for a", rb.MemberID, "for b", "somebody", "for nobody"))
		sb.Done()
		c.Do(step("c syncs"), 2, syncGroup(g, rc.MemberID, rc.Generation))
		a.Do(step("a syncs again with another assignment"), 2, syncGroup(g, ra.MemberID, ra.Generation, ra.MemberID, "other"))
		for _, x := range []int16{0, 4, 6} {
			a.Do(step(fmt.Sprintf("described v%d while stable", x)), x, describeGroups(g), sortedMembers)
		}
		// The leader goes while the others are stable: either is the next.
		b.Do(step("the leader leaves"), 2, leave(g, leaver{member: ra.MemberID}))
		c.Do(step("heartbeat after it left"), 2, heartbeat(g, rc.MemberID, rc.Generation))
		pc = c.Park(step("c joins again"), v, join(g, rc.MemberID, protocol{"sticky", "c1"}, protocol{"range", "c2"}))
		b.Do(step("b joins again"), v, join(g, rb.MemberID, protocol{"roundrobin", "b0"}, protocol{"sticky", "b1"}, protocol{"range", "b2"}), eitherLeads)
		pc.Done(eitherLeads)
		b.Do(step("b leaves while completing"), 2, leave(g, leaver{member: rb.MemberID}))
		rc = joined(e, c.Do(step("c joins again, the only one"), v, join(g, rc.MemberID, protocol{"sticky", "l"}, protocol{"range", "l"}), sortedMembers))
		a.Do(step("and leaves"), 2, leave(g, leaver{member: rc.MemberID}))
		a.Do(step("none is left"), 6, describeGroups(g))
	}
}

// eitherLeads is for a group whose leader has gone: Kafka takes the first of a hash map.
var eitherLeads = judge.Hidden("LeaderID", "Members")
