package matrix

import (
	"slices"
	"testing"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

func TestPossibleOrderPassesAPartitionOn(t *testing.T) {
	// Read at once: a and b have had partition 0 before c has everything.
	queues := [][]wire.Line{
		{assigned(0), revoked(0)},
		{assigned(0, 1), {Event: "record"}, revoked(0, 1), assigned(1), revoked(1)},
		{assigned(0, 1)},
	}
	if got := possibleOrder(make([]partitionSet, 3), queues); !slices.Equal(got, []int{0, 0, 1, 1, 1, 1, 2}) {
		t.Errorf("order %v", got)
	}
	if got := possibleOrder([]partitionSet{0, 0, 2}, queues[:3]); len(got) != 0 {
		t.Errorf("a member that has partition 1 and never gives it up: order %v", got)
	}
}

func TestPossibleOrderFindsAnOverlap(t *testing.T) {
	for name, queues := range map[string][][]wire.Line{
		"at the end":          {{assigned(0)}, {assigned(0, 1)}},
		"in the middle":       {{assigned(0)}, {assigned(0), revoked(0)}, {assigned(0)}},
		"with one who has it": {nil, nil, {assigned(2), revoked(2)}},
	} {
		owned := make([]partitionSet, 3)
		owned[1] = 4
		if name != "with one who has it" {
			owned[1] = 0
		}
		if got := possibleOrder(owned[:len(queues)], queues); len(got) != 0 {
			t.Errorf("%s: order %v", name, got)
		}
	}
}

// A member's rebalances of a whole run, and no way through: every state is looked at once.
func TestPossibleOrderEnds(t *testing.T) {
	queues := make([][]wire.Line, 4)
	for i := range queues {
		for range 4 {
			queues[i] = append(queues[i], assigned(i), revoked(i))
		}
		queues[i] = append(queues[i], assigned(5))
	}
	if got := possibleOrder(make([]partitionSet, 4), queues); len(got) != 0 {
		t.Errorf("order %v", got)
	}
}
