package scenario

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// groupsBroker has a short initial delay, so that a scenario can have many groups, and allows sessions shorter than a scenario.
var groupsBroker = delayedBroker(400)

// togetherBroker is for scenarios that look at a group in its initial delay, or in which several members join it then. That is long enough for
// requests of several connections, and for a look that nothing was answered yet, also on a machine that is slow for a moment: a member that
// comes later waits until the others join again, which they do not.
var togetherBroker = delayedBroker(1500)

func delayedBroker(millis int) target.Options {
	delay := strconv.Itoa(millis)
	return target.Options{
		Flags:      []string{"--group-initial-rebalance-delay-ms", delay, "--group-min-session-timeout-ms", "200"},
		Properties: map[string]string{"group.initial.rebalance.delay.ms": delay, "group.min.session.timeout.ms": "200"},
	}
}

// protocol is one that a member offers.
type protocol struct{ name, metadata string }

var rangeOnly = protocol{"range", "m1"}

// join is a JoinGroup of a consumer whose timeouts do not matter.
func join(group, member string, protocols ...protocol) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.ProtocolType = group, member, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 60000, 60000
	if len(protocols) == 0 {
		protocols = []protocol{rangeOnly}
	}
	for _, p := range protocols {
		offer := kmsg.NewJoinGroupRequestProtocol()
		offer.Name, offer.Metadata = p.name, []byte(p.metadata)
		req.Protocols = append(req.Protocols, offer)
	}
	return req
}

// joinStatic is a JoinGroup with an instance id.
func joinStatic(group, instance, member string, protocols ...protocol) *kmsg.JoinGroupRequest {
	req := join(group, member, protocols...)
	req.InstanceID = &instance
	return req
}

// timeouts sets the session and rebalance timeout of a JoinGroup.
func timeouts(req *kmsg.JoinGroupRequest, session, rebalance int32) *kmsg.JoinGroupRequest {
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = session, rebalance
	return req
}

// syncGroup is a SyncGroup; assignments are pairs of member id and assignment. v5 says which protocol it is about.
func syncGroup(group, member string, generation int32, assignments ...string) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	req.ProtocolType, req.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
	for i := 0; i < len(assignments); i += 2 {
		a := kmsg.NewSyncGroupRequestGroupAssignment()
		a.MemberID, a.MemberAssignment = assignments[i], []byte(assignments[i+1])
		req.GroupAssignment = append(req.GroupAssignment, a)
	}
	return req
}

func heartbeat(group, member string, generation int32) *kmsg.HeartbeatRequest {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID, req.Generation = group, member, generation
	return req
}

// leaver is one of a LeaveGroup; instance "" is none.
type leaver struct{ member, instance string }

// leave is a LeaveGroup for any version: before v3 the first one's member id is all there is.
func leave(group string, members ...leaver) *kmsg.LeaveGroupRequest {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	for _, m := range members {
		if req.MemberID == "" {
			req.MemberID = m.member
		}
		one := kmsg.NewLeaveGroupRequestMember()
		one.MemberID, one.Reason = m.member, kmsg.StringPtr("it is over")
		if m.instance != "" {
			one.InstanceID = &m.instance
		}
		req.Members = append(req.Members, one)
	}
	return req
}

// describeGroups has what Kafka keeps in a hash map in order.
func describeGroups(groups ...string) *kmsg.DescribeGroupsRequest {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = groups
	return req
}

// sortedMembers is for responses that list members, which Kafka keeps in a hash map.
var sortedMembers = judge.Sorted("Members")

// groupsReady returns once the broker answers for the groups: Kafka has to create its topic of offsets first.
func groupsReady(e *judge.Env, groups ...string) {
	for _, g := range groups {
		e.Await("coordinator of "+g, func() bool {
			find := kmsg.NewPtrFindCoordinatorRequest()
			find.CoordinatorKey = g
			if e.Quiet(3, find).(*kmsg.FindCoordinatorResponse).ErrorCode != 0 {
				return false
			}
			// A Heartbeat would do, but Kafka answers it while it still loads.
			req := kmsg.NewPtrOffsetFetchRequest()
			req.Group = g
			return e.Quiet(7, req).(*kmsg.OffsetFetchResponse).ErrorCode == 0
		})
	}
}

// named makes the names of groups of the scenario, each ready.
func named(e *judge.Env, label string) string {
	name := e.Name(label)
	groupsReady(e, name)
	return name
}

// stateOf asks, unrecorded, for a group's state and number of members.
func stateOf(e *judge.Env, group string) (state string, members int) {
	g := e.Quiet(4, describeGroups(group)).(*kmsg.DescribeGroupsResponse).Groups[0]
	return g.State, len(g.Members)
}

// awaitState returns once the group is in the state.
func awaitState(e *judge.Env, group, want string) {
	e.Await(fmt.Sprintf("group %s to be %s", group, want), func() bool {
		state, _ := stateOf(e, group)
		return state == want
	})
}

// awaitMembers returns once the group has so many members.
func awaitMembers(e *judge.Env, group string, want int) {
	e.Await(fmt.Sprintf("group %s to have %d members", group, want), func() bool {
		_, n := stateOf(e, group)
		return n == want
	})
}

// joined is what a JoinGroup gave; a scenario can't go on without it.
func joined(e *judge.Env, resp kmsg.Response) *kmsg.JoinGroupResponse {
	r, ok := resp.(*kmsg.JoinGroupResponse)
	if !ok {
		e.Fatalf("no response to a JoinGroup")
	}
	return r
}

// completing makes, unrecorded, a group of one member in state CompletingRebalance, of a client id "judge".
func completing(e *judge.Env, group string, protocols ...protocol) (member string, generation int32) {
	r := joined(e, e.Quiet(3, join(group, "", protocols...)))
	if r.ErrorCode != 0 {
		e.Fatalf("join %s: %s", group, judge.ErrorName(r.ErrorCode))
	}
	return r.MemberID, r.Generation
}

// stable makes, unrecorded, a group of one member in state Stable.
func stable(e *judge.Env, group string, protocols ...protocol) (member string, generation int32) {
	member, generation = completing(e, group, protocols...)
	r := e.Quiet(2, syncGroup(group, member, generation, member, "all")).(*kmsg.SyncGroupResponse)
	if r.ErrorCode != 0 {
		e.Fatalf("sync %s: %s", group, judge.ErrorName(r.ErrorCode))
	}
	return member, generation
}

// emptied makes, unrecorded, a group that had a member.
func emptied(e *judge.Env, group string) (member string, generation int32) {
	member, generation = stable(e, group)
	e.Quiet(2, leave(group, leaver{member: member}))
	return member, generation
}

// preparing makes a group of one member, and a second one that is parked in a JoinGroup of its own connection: PreparingRebalance.
func preparing(e *judge.Env, label, group string) (member string, generation int32, other *judge.Pending) {
	member, generation = stable(e, group)
	other = e.ConnAs("second").Park(label+": another member joins", 3, join(group, ""))
	awaitState(e, group, "PreparingRebalance")
	return member, generation, other
}
