package scenario

import (
	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var _ = judge.RegisterOwn("groups-restart", groupsBroker, groupsRestart)

// groupsRestart stops the broker in order and looks at what it remembers of groups in each state.
func groupsRestart(e *judge.Env) {
	a, b, c := e.ConnAs("a"), e.ConnAs("b"), e.Conn()
	topic := e.CreateTopic("topic", 2)
	two, completes, empty, simple, pending := named(e, "two"), named(e, "completing"), named(e, "empty"), named(e, "simple"), named(e, "pending")
	prepares, again := named(e, "preparing"), named(e, "again")
	pa := a.Park("a joins", 5, joinStatic(two, "one", "", protocol{"range", subscription(topic.Name)}))
	pb := b.Park("b joins", 3, join(two, "", protocol{"range", subscription(topic.Name)}))
	ra, rb := joined(e, pa.Done(sortedMembers)), joined(e, pb.Done(sortedMembers))
	pb = b.Park("b syncs", 5, syncGroup(two, rb.MemberID, rb.Generation))
	a.Do("a syncs", 5, syncGroup(two, ra.MemberID, ra.Generation, ra.MemberID, "for a", rb.MemberID, "for b"))
	pb.Done()
	a.Do("a commits", 9, commitOf(two, ra.MemberID, ra.Generation, topic, offsetOf(0, 5, "note")))
	completing(e, completes)
	emptied(e, empty)
	e.Quiet(9, commitOf(simple, "", -1, topic, offsetOf(1, 7, "simple")))
	given := joined(e, c.Do("a pending member", 4, join(pending, "")))
	first, generation, _ := preparing(e, "preparing", prepares)
	// A group that was stable, and is completing another generation.
	lone, _ := stable(e, again)
	moved := joined(e, c.Do("a leader joins again", 3, join(again, lone)))

	e.Restart()
	groupsReady(e, two, completes, empty, simple, pending, prepares, again)
	c.Do("two members", 6, describeGroups(two), sortedMembers)
	c.Do("completing", 6, describeGroups(completes))
	c.Do("empty", 6, describeGroups(empty))
	c.Do("simple", 6, describeGroups(simple))
	c.Do("pending", 6, describeGroups(pending))
	c.Do("preparing", 6, describeGroups(prepares))
	c.Do("completing again", 6, describeGroups(again))
	c.Do("all groups", 5, listGroups(nil, nil), sortedGroups)
	a.Do("heartbeat of a", 4, heartbeat(two, ra.MemberID, ra.Generation))
	b.Do("heartbeat of b", 4, heartbeat(two, rb.MemberID, rb.Generation))
	b.Do("b syncs once more", 5, syncGroup(two, rb.MemberID, rb.Generation))
	b.Do("b joins with the same metadata", 3, join(two, rb.MemberID, protocol{"range", subscription(topic.Name)}))
	a.Do("the static member comes again", 9, joinStatic(two, "one", "", protocol{"range", subscription(topic.Name)}), sortedMembers)
	b.Do("b commits", 9, commitOf(two, rb.MemberID, rb.Generation, topic, offsetOf(1, 6, "after")))
	c.Do("offsets of two", 8, committed(two, nil), allOffsets)
	c.Do("offsets of simple", 10, committed(simple, &topic, 0, 1))
	c.Do("offset delete of a subscribed topic", 0, offsetDelete(two, topic, 0))
	c.Do("the pending member joins", 4, join(pending, given.MemberID))
	c.Do("heartbeat of the one that was preparing", 4, heartbeat(prepares, first, generation))
	c.Do("heartbeat of the leader that joined again", 4, heartbeat(again, lone, moved.Generation))
	c.Do("heartbeat in the generation before", 4, heartbeat(again, lone, moved.Generation-1))
	p := c.Park("a member joins the empty group", 3, join(empty, ""))
	p.Done(sortedMembers)
	p = c.Park("a member joins the simple group", 3, join(simple, ""))
	p.Done(sortedMembers)
}
