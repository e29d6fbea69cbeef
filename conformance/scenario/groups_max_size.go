package scenario

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var _ = judge.RegisterOwn("groups-max-size", target.Options{
	Flags:      []string{"--group-initial-rebalance-delay-ms", "1500", "--group-max-size", "2", "--group-min-session-timeout-ms", "6000", "--group-max-session-timeout-ms", "70000"},
	Properties: map[string]string{"group.initial.rebalance.delay.ms": "1500", "group.max.size": "2", "group.max.session.timeout.ms": "70000"},
}, groupsMaxSize)

// groupsMaxSize has a third member come to groups of two, in each of their states.
func groupsMaxSize(e *judge.Env) {
	a, b, c := e.ConnAs("a"), e.ConnAs("b"), e.ConnAs("c")
	for _, ms := range []int32{5999, 6000, 70000, 70001} {
		c.Do(fmt.Sprintf("session timeout %d", ms), 5, timeouts(join(named(e, "timeouts"), ""), ms, 1000))
	}
	for _, v := range []int16{3, 9} {
		step := func(s string) string { return fmt.Sprintf("v%d: %s", v, s) }
		g := named(e, fmt.Sprintf("v%d", v))
		// The one that is refused leaves the others waiting for the rebalance timeout.
		soon := func(member string) *kmsg.JoinGroupRequest { return timeouts(join(g, member), 60000, 1500) }
		third := func(when string) {
			c.Do(step("another comes "+when), v, join(g, ""))
			c.Do(step("an unknown one comes "+when), v, join(g, "somebody"))
			if v >= 5 {
				c.Do(step("a static one comes "+when), v, joinStatic(g, "three", ""))
			}

		}
		pa := a.Park(step("a joins"), 3, soon(""))
		awaitMembers(e, g, 1)
		pb := b.Park(step("b joins"), 3, soon(""))
		awaitMembers(e, g, 2)
		third("in the initial delay")
		ra, rb := joined(e, pa.Done(sortedMembers)), joined(e, pb.Done(sortedMembers))
		third("while completing")
		e.Quiet(2, syncGroup(g, ra.MemberID, ra.Generation))
		third("while stable")
		pa = a.Park(step("a joins again"), 3, soon(ra.MemberID))
		awaitState(e, g, "PreparingRebalance")
		pc := c.Park(step("another comes while preparing"), v, soon(""))
		if v >= 4 {
			r := joined(e, pc.Done())
			pc = c.Park(step("another joins by its id"), v, soon(r.MemberID))
			awaitMembers(e, g, 3)
		}
		b.Do(step("b is the third"), 3, soon(rb.MemberID))
		pa.Done(eitherLeads)
		pc.Done(eitherLeads)
		c.Do(step("described at last"), 6, describeGroups(g), judge.Sorted("Members"))
	}
}
