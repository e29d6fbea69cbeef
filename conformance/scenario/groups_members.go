package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.RegisterOwn("groups-sync", groupsBroker, groupsSync)
	_ = judge.RegisterOwn("groups-heartbeat", groupsBroker, groupsHeartbeat)
	_ = judge.RegisterOwn("groups-leave", togetherBroker, groupsLeave)
)

// groupsSync asks each version of SyncGroup in each state of a group.
func groupsSync(e *judge.Env) {
	c := e.Conn()
	for v := range int16(6) {
		g := func(label string) string { return named(e, fmt.Sprintf("v%d-%s", v, label)) }
		step := func(s string) string { return fmt.Sprintf("v%d: %s", v, s) }
		c.Do(step("no group id"), v, syncGroup("", "somebody", 1))
		missing := g("missing")
		c.Do(step("no group"), v, syncGroup(missing, "somebody", 1, "somebody", "x"))
		c.Do(step("no group, no member id"), v, syncGroup(missing, "", -1))
		empty := g("empty")
		member, generation := emptied(e, empty)
		c.Do(step("empty"), v, syncGroup(empty, member, generation))
		c.Do(step("empty, no member id"), v, syncGroup(empty, "", -1))
		simple := g("simple")
		e.Quiet(9, commit(simple, "no-topic", 0, 1))
		c.Do(step("simple"), v, syncGroup(simple, "", -1))

		group := g("states")
		member, generation = completing(e, group)
		states := func(when string) {
			c.Do(step("unknown member "+when), v, syncGroup(group, "somebody", generation))
			c.Do(step("no member id "+when), v, syncGroup(group, "", generation))
			for _, d := range []int32{-1, 1} {
				c.Do(step(fmt.Sprintf("generation %+d %s", d, when)), v, syncGroup(group, member, generation+d, member, "wrong"))
			}
			c.Do(step("without a generation "+when), v, syncGroup(group, member, -1, member, "wrong"))
			if v >= 3 {
				instance := syncGroup(group, member, generation, member, "wrong")
				instance.InstanceID = kmsg.StringPtr("one")
				c.Do(step("an unknown instance "+when), v, instance)
			}
			if v >= 5 {
				wrong := syncGroup(group, member, generation, member, "wrong")
				wrong.ProtocolType = kmsg.StringPtr("connect")
				c.Do(step("another protocol type "+when), v, wrong)
				wrong = syncGroup(group, member, generation, member, "wrong")
				wrong.Protocol = kmsg.StringPtr("sticky")
				c.Do(step("another protocol "+when), v, wrong)
				wrong.Protocol = nil
				c.Do(step("no protocol "+when), v, wrong)
				wrong.Protocol, wrong.ProtocolType = kmsg.StringPtr("range"), nil
				c.Do(step("no protocol type "+when), v, wrong)
				wrong.Group = ""
				c.Do(step("no protocol type, no group id "+when), v, wrong)
			}
		}
		states("while completing")
		c.Do(step("completing"), v, syncGroup(group, member, generation, member, "mine", "somebody", "theirs"))
		states("while stable")
		c.Do(step("stable"), v, syncGroup(group, member, generation))
		c.Do(step("stable, with another assignment"), v, syncGroup(group, member, generation, member, "other"))
		other := e.ConnAs("second").Park(step("another member joins"), 3, join(group, ""))
		awaitState(e, group, "PreparingRebalance")
		states("while preparing")
		c.Do(step("preparing"), v, syncGroup(group, member, generation))
		c.Do(step("leaves"), min(v, 5), leave(group, leaver{member: member}))
		other.Done(sortedMembers)

		// The leader assigns nothing to anybody; and nothing to itself.
		unassigned := g("unassigned")
		member, generation = completing(e, unassigned)
		c.Do(step("no assignments"), v, syncGroup(unassigned, member, generation))
		c.Do(step("described without assignments"), 6, describeGroups(unassigned))
		c.Do(step("assignments come too late"), v, syncGroup(unassigned, member, generation, member, "late"))
	}
}

// groupsHeartbeat asks each version of Heartbeat in each state of a group.
func groupsHeartbeat(e *judge.Env) {
	c := e.Conn()
	for v := range int16(5) {
		g := func(label string) string { return named(e, fmt.Sprintf("v%d-%s", v, label)) }
		step := func(s string) string { return fmt.Sprintf("v%d: %s", v, s) }
		c.Do(step("no group id"), v, heartbeat("", "somebody", 1))
		c.Do(step("no group"), v, heartbeat(g("missing"), "somebody", 1))
		empty := g("empty")
		member, generation := emptied(e, empty)
		c.Do(step("empty"), v, heartbeat(empty, member, generation))
		c.Do(step("empty, no member id"), v, heartbeat(empty, "", -1))
		group := g("states")
		member, generation = completing(e, group)
		states := func(when string) {
			c.Do(step("member "+when), v, heartbeat(group, member, generation))
			c.Do(step("unknown member "+when), v, heartbeat(group, "somebody", generation))
			c.Do(step("no member id "+when), v, heartbeat(group, "", generation))
			for _, d := range []int32{-1, 1} {
				c.Do(step(fmt.Sprintf("generation %+d %s", d, when)), v, heartbeat(group, member, generation+d))
			}
			c.Do(step("without a generation "+when), v, heartbeat(group, member, -1))
			if v >= 3 {
				instance := heartbeat(group, member, generation)
				instance.InstanceID = kmsg.StringPtr("one")
				c.Do(step("an unknown instance "+when), v, instance)
			}
		}
		states("while completing")
		e.Quiet(2, syncGroup(group, member, generation, member, "all"))
		states("while stable")
		other := e.ConnAs("second").Park(step("another member joins"), 3, join(group, ""))
		awaitState(e, group, "PreparingRebalance")
		states("while preparing")
		e.Quiet(2, leave(group, leaver{member: member}))
		other.Done(sortedMembers)
		if v >= 3 {
			heartbeatStatic(e, c, v, g("static"), step)
		}
	}
}

func heartbeatStatic(e *judge.Env, c *judge.Conn, v int16, group string, step func(string) string) {
	r := joined(e, e.Quiet(5, joinStatic(group, "one", "")))
	e.Quiet(2, syncGroup(group, r.MemberID, r.Generation, r.MemberID, "all"))
	with := func(instance, member string, generation int32) *kmsg.HeartbeatRequest {
		req := heartbeat(group, member, generation)
		req.InstanceID = &instance
		return req
	}
	c.Do(step("static"), v, with("one", r.MemberID, r.Generation))
	c.Do(step("static, without its instance id"), v, heartbeat(group, r.MemberID, r.Generation))
	c.Do(step("static, unknown member"), v, with("one", "somebody", r.Generation))
	c.Do(step("static, no member id"), v, with("one", "", r.Generation))
	c.Do(step("static, another instance"), v, with("two", r.MemberID, r.Generation))
	c.Do(step("static, another generation"), v, with("one", r.MemberID, r.Generation+1))
	c.Do(step("static, unknown member and generation"), v, with("one", "somebody", r.Generation+1))
}

// groupsLeave asks each version of LeaveGroup in each state of a group.
func groupsLeave(e *judge.Env) {
	c := e.Conn()
	for v := range int16(6) {
		g := func(label string) string { return named(e, fmt.Sprintf("v%d-%s", v, label)) }
		step := func(s string) string { return fmt.Sprintf("v%d: %s", v, s) }
		c.Do(step("no group id"), v, leave("", leaver{member: "somebody"}))
		missing := g("missing")
		c.Do(step("no group"), v, leave(missing, leaver{member: "somebody"}, leaver{member: "other", instance: "one"}))
		c.Do(step("no group, no member id"), v, leave(missing, leaver{}))
		c.Do(step("no group, nobody"), v, leave(missing))
		c.Do(step("described"), 6, describeGroups(missing))

		empty := g("empty")
		member, _ := emptied(e, empty)
		c.Do(step("empty"), v, leave(empty, leaver{member: member}))
		for _, state := range []string{"completing", "stable"} {
			group := g(state)
			begin := completing
			if state == "stable" {
				begin = stable
			}
			member, _ := begin(e, group)
			pending := joined(e, e.Quiet(4, join(group, "")))
			c.Do(step("unknown member while "+state), v, leave(group, leaver{member: "somebody"}))
			c.Do(step("no member id while "+state), v, leave(group, leaver{}))
			c.Do(step("a pending member while "+state), v, leave(group, leaver{member: pending.MemberID}))
			if v >= 3 {
				c.Do(step("with an instance id that it has not while "+state), v, leave(group, leaver{member, "one"}))
			}
			c.Do(step("member while "+state), v, leave(group, leaver{member: member}))
			c.Do(step("member again after "+state), v, leave(group, leaver{member: member}))
			c.Do(step("described after "+state), 6, describeGroups(group))
		}
		group := g("preparing")
		member, _, other := preparing(e, step("preparing"), group)
		c.Do(step("member while preparing"), v, leave(group, leaver{member: member}))
		r := joined(e, other.Done(sortedMembers))
		// One that is parked leaves, by another connection.
		other = e.ConnAs("third").Park(step("a third member joins"), 3, join(group, ""))
		awaitMembers(e, group, 2)
		c.Do(step("heartbeat of the second"), 4, heartbeat(group, r.MemberID, r.Generation))
		third := thirdOf(e, group, r.MemberID)
		c.Do(step("one parked in its JoinGroup leaves"), v, leave(group, leaver{member: third}))
		other.Done(sortedMembers)
		c.Do(step("described when it has left"), 6, describeGroups(group), sortedMembers)
		e.Quiet(2, leave(group, leaver{member: r.MemberID}))
		if v >= 3 {
			leaveMany(e, c, v, g("many"), step)
		}
	}
}

// thirdOf is the member of the group that is not other.
func thirdOf(e *judge.Env, group, other string) string {
	for _, m := range e.Quiet(4, describeGroups(group)).(*kmsg.DescribeGroupsResponse).Groups[0].Members {
		if m.MemberID != other {
			return m.MemberID
		}
	}
	e.Fatalf("group %s has no member but %s", group, other)
	return ""
}

// leaveMany leaves in batches, and for static members.
func leaveMany(e *judge.Env, c *judge.Conn, v int16, group string, step func(string) string) {
	one := joined(e, e.Quiet(5, joinStatic(group, "one", "")))
	e.Quiet(2, syncGroup(group, one.MemberID, one.Generation, one.MemberID, "all"))
	c.Do(step("many: nobody"), v, leave(group))
	c.Do(step("many: unknown ones"), v, leave(group, leaver{member: "somebody"}, leaver{"", "two"}, leaver{"somebody", "two"}, leaver{"somebody", "one"}))
	c.Do(step("many: still there"), 6, describeGroups(group))
	c.Do(step("many: by instance id, twice, and an unknown one"), v, leave(group, leaver{"", "one"}, leaver{"", "one"}, leaver{member: "somebody"}))
	c.Do(step("many: gone"), 6, describeGroups(group))
	a, b := e.ConnAs("a"), e.ConnAs("b")
	pa := a.Park(step("many: a joins"), 5, joinStatic(group, "a", ""))
	awaitMembers(e, group, 1)
	pb := b.Park(step("many: b joins"), 5, joinStatic(group, "b", ""))
	awaitMembers(e, group, 2)
	ra, rb := joined(e, pa.Done(sortedMembers)), joined(e, pb.Done(sortedMembers))
	c.Do(step("many: both at once"), v, leave(group, leaver{ra.MemberID, "a"}, leaver{"", "b"}, leaver{member: rb.MemberID}))
	c.Do(step("many: both gone"), 6, describeGroups(group))
}
