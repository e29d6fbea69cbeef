package matrix

import (
	"slices"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

// partitionSet has a bit for each partition of a topic of the workload.
type partitionSet uint64

func (s *partitionSet) add(partitions []int) {
	for _, p := range partitions {
		*s |= 1 << p
	}
}

// changes says whether a line is about who owns what.
func changes(l wire.Line) bool { return l.Event == "assigned" || l.Event == "revoked" }

// possibleOrder is an order of the members' changes in which no partition ever has two owners: the indexes of the members, one for each
// change. Each member's changes are in their order; between members nothing is known but that what is here was written before anything that
// is not. owned is what each has to begin with. Without such an order the answer is empty: there was an overlap, in whichever order.
func possibleOrder(owned []partitionSet, queues [][]wire.Line) []int {
	states := make([][]partitionSet, len(queues)) // per member: what it owns after each of its changes
	total := 0
	for i, queue := range queues {
		states[i] = []partitionSet{owned[i]}
		for _, l := range queue {
			if changes(l) {
				states[i] = append(states[i], after(states[i][len(states[i])-1], l))
				total++
			}
		}
	}
	var order []int
	at := make([]int, len(queues)) // how many changes of each member are done
	dead := map[string]bool{}      // from where no way leads to the end
	var walk func() bool
	walk = func() bool {
		if len(order) == total {
			return true
		}
		key := make([]byte, 0, 2*len(at))
		for _, n := range at {
			key = append(key, byte(n), byte(n>>8))
		}
		if dead[string(key)] {
			return false
		}
		for i := range at {
			if at[i]+1 < len(states[i]) && disjoint(states, at, i) {
				at[i]++
				order = append(order, i)
				if walk() {
					return true
				}
				at[i]--
				order = order[:len(order)-1]
			}
		}
		dead[string(key)] = true
		return false
	}
	walk()
	return slices.Clip(order)
}

// after is what a member owns after a change.
func after(s partitionSet, l wire.Line) partitionSet {
	var changed partitionSet
	changed.add(l.Partitions)
	if l.Event == "assigned" {
		return s | changed
	}
	return s &^ changed
}

// disjoint says whether member i's next state has nothing that another one has.
func disjoint(states [][]partitionSet, at []int, i int) bool {
	next := states[i][at[i]+1]
	for j := range at {
		if j != i && next&states[j][at[j]] != 0 {
			return false
		}
	}
	return true
}
