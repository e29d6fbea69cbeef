package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var _ = judge.RegisterOwn("groups-static", togetherBroker, groupsStatic)

// groupsStatic has members with instance ids (KIP-345) come again under another member id, in each state of their group.
func groupsStatic(e *judge.Env) {
	for _, v := range []int16{5, 8, 9} {
		s := &static{e: e, v: v, group: named(e, fmt.Sprintf("v%d", v)), a: e.ConnAs("a"), b: e.ConnAs("b"), c: e.ConnAs("c")}
		s.start()
		s.rejoinStable()
		s.fenced()
		s.changedProtocol()
		s.rejoinPreparing()
		s.rejoinCompleting()
		s.pendingID()
		s.lateSync()
	}
}

// static is a group of two static members, a and b, and what they were told last.
type static struct {
	e       *judge.Env
	v       int16
	group   string
	a, b, c *judge.Conn
	ra, rb  *kmsg.JoinGroupResponse
}

func (s *static) step(text string) string { return fmt.Sprintf("v%d: %s", s.v, text) }

func (s *static) join(instance, member string, protocols ...protocol) *kmsg.JoinGroupRequest {
	if len(protocols) == 0 {
		protocols = []protocol{{"range", "r"}, {"sticky", "s"}}
	}
	return joinStatic(s.group, instance, member, protocols...)
}

func (s *static) sync(instance string, r *kmsg.JoinGroupResponse, assignments ...string) *kmsg.SyncGroupRequest {
	req := syncGroup(s.group, r.MemberID, r.Generation, assignments...)
	req.InstanceID = &instance
	if r.Protocol != nil {
		req.Protocol = r.Protocol
	}
	return req
}

func (s *static) described(when string) {
	s.c.Do(s.step("described "+when), 6, describeGroups(s.group), sortedMembers)
}

// settle syncs both, a being the leader or not.
func (s *static) settle(when string) {
	leader, other, lc, oc, li, oi := s.ra, s.rb, s.a, s.b, "one", "two"
	if s.rb.LeaderID == s.rb.MemberID {
		leader, other, lc, oc, li, oi = s.rb, s.ra, s.b, s.a, "two", "one"
	}
	parked := oc.Park(s.step("the follower syncs "+when), 5, s.sync(oi, other))
	lc.Do(s.step("the leader syncs "+when), 5, s.sync(li, leader, s.ra.MemberID, "for a", s.rb.MemberID, "for b"))
	parked.Done()
}

func (s *static) start() {
	pa := s.a.Park(s.step("a joins"), s.v, s.join("one", ""))
	awaitMembers(s.e, s.group, 1)
	pb := s.b.Park(s.step("b joins"), s.v, s.join("two", ""))
	awaitMembers(s.e, s.group, 2)
	s.ra, s.rb = joined(s.e, pa.Done(sortedMembers)), joined(s.e, pb.Done(sortedMembers))
	s.settle("at first")
	s.described("at first")
}

// rejoinStable: both come again as if restarted; the group stays as it is.
func (s *static) rejoinStable() {
	old := s.rb
	s.rb = joined(s.e, s.b.Do(s.step("the follower comes again"), s.v, s.join("two", ""), sortedMembers))
	s.b.Do(s.step("the follower syncs after it came again"), 5, s.sync("two", s.rb))
	s.b.Do(s.step("heartbeat of the follower that came again"), 4, s.heartbeat("two", s.rb.MemberID))
	s.b.Do(s.step("heartbeat of its older self"), 4, s.heartbeat("two", old.MemberID))
	leader := s.ra
	s.ra = joined(s.e, s.a.Do(s.step("the leader comes again"), s.v, s.join("one", ""), sortedMembers))
	s.described("after both came again")
	s.a.Do(s.step("the leader syncs after it came again"), 5, s.sync("one", s.ra, s.ra.MemberID, "new for a", s.rb.MemberID, "new for b"))
	s.described("after the leader's sync")
	s.a.Do(s.step("heartbeat of the leader's older self"), 4, s.heartbeat("one", leader.MemberID))
	// Known ids: a leader rebalances, a follower does not.
	s.b.Do(s.step("the follower joins by its id"), s.v, s.join("two", s.rb.MemberID), sortedMembers)
	p := s.a.Park(s.step("the leader joins by its id"), s.v, s.join("one", s.ra.MemberID))
	awaitState(s.e, s.group, "PreparingRebalance")
	s.rb = joined(s.e, s.b.Do(s.step("and the follower after it"), s.v, s.join("two", s.rb.MemberID), sortedMembers))
	s.ra = joined(s.e, p.Done(sortedMembers))
	s.settle("after the leader joined by its id")
}

func (s *static) heartbeat(instance, member string) *kmsg.HeartbeatRequest {
	req := heartbeat(s.group, member, s.ra.Generation)
	req.InstanceID = &instance
	return req
}

// fenced: everything is asked by a member id that its instance no longer has.
func (s *static) fenced() {
	old := *s.rb
	s.rb = joined(s.e, s.b.Do(s.step("the follower comes once more"), s.v, s.join("two", ""), sortedMembers))
	s.b.Do(s.step("fenced: join"), s.v, s.join("two", old.MemberID))
	s.b.Do(s.step("fenced: join without its instance id"), s.v, join(s.group, old.MemberID))
	s.b.Do(s.step("fenced: join under the other's instance id"), s.v, s.join("one", old.MemberID))
	s.b.Do(s.step("fenced: sync"), 5, s.sync("two", &old))
	s.b.Do(s.step("fenced: commit"), 9, s.commit("two", old.MemberID))
	s.b.Do(s.step("fenced: leave"), 5, leave(s.group, leaver{old.MemberID, "two"}, leaver{member: old.MemberID}))
	s.b.Do(s.step("commit of the member"), 9, s.commit("two", s.rb.MemberID))
	s.b.Do(s.step("commit without its instance id"), 9, commitAs(s.group, s.rb.MemberID, s.rb.Generation, "no-topic", 0, 1))
	s.b.Do(s.step("commit of an unknown instance"), 9, s.commit("three", s.rb.MemberID))
	s.described("after the older self was fenced")
}

func (s *static) commit(instance, member string) *kmsg.OffsetCommitRequest {
	req := commitAs(s.group, member, s.ra.Generation, s.e.Name("topic"), 0, 1)
	req.InstanceID = &instance
	return req
}

// changedProtocol: what a member offers is other than before, and changes the group's protocol or does not.
func (s *static) changedProtocol() {
	s.rb = joined(s.e, s.b.Do(s.step("the follower comes with other metadata"), s.v, s.join("two", "", protocol{"range", "m2"}, protocol{"sticky", "m2"}), sortedMembers))
	s.described("after the follower came with other metadata")
	pb := s.b.Park(s.step("the follower comes with another protocol"), s.v, s.join("two", "", protocol{"sticky", "m3"}))
	awaitState(s.e, s.group, "PreparingRebalance")
	s.described("while the follower waits")
	s.ra = joined(s.e, s.a.Do(s.step("the leader joins after that"), s.v, s.join("one", s.ra.MemberID), sortedMembers))
	s.rb = joined(s.e, pb.Done(sortedMembers))
	s.described("when both have joined")
	s.settle("with another protocol")
	s.ra = joined(s.e, s.a.Do(s.step("the leader comes with the one protocol"), s.v, s.join("one", "", protocol{"sticky", "m4"}), sortedMembers))
	s.described("after the leader came with the one protocol")
}

// rejoinPreparing: a parked JoinGroup's instance comes again.
func (s *static) rejoinPreparing() {
	third := s.c.Park(s.step("a third, static, joins"), s.v, s.join("three", ""))
	awaitMembers(s.e, s.group, 3)
	d := s.e.ConnAs("d")
	again := d.Park(s.step("it comes again while it is parked"), s.v, s.join("three", ""))
	third.Done()
	pb := s.b.Park(s.step("the second comes again while preparing"), s.v, s.join("two", ""))
	s.ra = joined(s.e, s.a.Do(s.step("the first joins"), s.v, s.join("one", s.ra.MemberID), sortedMembers))
	s.rb = joined(s.e, pb.Done(sortedMembers))
	r := joined(s.e, again.Done(sortedMembers))
	s.c.Do(s.step("the third leaves by its instance id"), 5, leave(s.group, leaver{"", "three"}))
	s.c.Do(s.step("heartbeat of the third"), 4, s.heartbeat("three", r.MemberID))
	pb = s.b.Park(s.step("the second joins when the third has left"), s.v, s.join("two", s.rb.MemberID))
	s.ra = joined(s.e, s.a.Do(s.step("the first joins when the third has left"), s.v, s.join("one", s.ra.MemberID), sortedMembers))
	s.rb = joined(s.e, pb.Done(sortedMembers))
}

// rejoinCompleting: an instance comes again while others are parked in a SyncGroup.
func (s *static) rejoinCompleting() {
	parked := s.b.Park(s.step("the second syncs"), 5, s.sync("two", s.rb))
	d := s.e.ConnAs("d")
	again := d.Park(s.step("the second comes again while it is parked in its sync"), s.v, s.join("two", ""))
	parked.Done()
	s.ra = joined(s.e, s.a.Do(s.step("the first joins after that"), s.v, s.join("one", s.ra.MemberID), sortedMembers))
	s.rb = joined(s.e, again.Done(sortedMembers))
	s.described("when the second came again while completing")
	s.settle("after it came again while completing")
}

// pendingID: a dynamic id that is used with an instance id.
func (s *static) pendingID() {
	r := joined(s.e, s.c.Do(s.step("a dynamic member is given an id"), s.v, join(s.group, "")))
	s.c.Do(s.step("it joins with an instance id"), s.v, s.join("four", r.MemberID))
	s.c.Do(s.step("it leaves with an instance id"), 5, leave(s.group, leaver{r.MemberID, "four"}))
	s.c.Do(s.step("it leaves"), 5, leave(s.group, leaver{member: r.MemberID}))
	s.described("after a dynamic id with an instance id")
}

// lateSync: all leave, by instance id.
func (s *static) lateSync() {
	s.c.Do(s.step("both leave by their instance ids"), 5, leave(s.group, leaver{"", "one"}, leaver{"", "two"}))
	s.described("when both have left")
	s.a.Do(s.step("sync after that"), 5, s.sync("one", s.ra))
}
