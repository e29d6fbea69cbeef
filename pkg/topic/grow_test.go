package topic

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

// A topic grows durably, keeps its open logs, and never shrinks.
func TestGrowKeepsTheOpenLogs(t *testing.T) {
	k := onDisk(t).start()
	topic := k.create(Spec{Name: "a", Partitions: 2, ReplicationFactor: 1})[0]
	k.mustProduce(topic, 0, "x")
	before, _ := topic.Log(0)
	if err := k.Grow(t.Context(), topic, 4); err != nil {
		t.Fatal(err)
	}
	now, _ := k.Lookup("a")
	if after, err := now.Log(0); err != nil || after != before || now.ID() != topic.ID() {
		t.Errorf("another log, %v", err)
	}
	if _, err := topic.Log(3); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("the topic as it was has the new partition: %v", err)
	}
	k.mustProduce(now, 3, "y")
	for n, want := range map[int32]string{4: "Topic already has 4 partition(s).", 1: "The topic a currently has 4 partition(s); 1 would not be an increase."} {
		err := k.Grow(t.Context(), topic, n)
		if m := kafka.ErrorMessage(err); kafka.ErrorCode(err) != kerr.InvalidPartitions.Code || m == nil || *m != want {
			t.Errorf("%v", err)
		}
	}
	k.stop()
	k.start()
	defer k.stop()
	if now, _ = k.Lookup("a"); now.Partitions() != 4 || k.holds(now, 3, "y") != nil {
		t.Errorf("%+v", now)
	}
}

// Several topics grow together; one that can't leaves the others alone. What is only validated stays as it is.
func TestGrowAllIsEachOnItsOwn(t *testing.T) {
	k := onDisk(t).start()
	k.create(Spec{Name: "a", Partitions: 1, ReplicationFactor: 1}, Spec{Name: "b", Partitions: 1, ReplicationFactor: 1}, Spec{Name: "c", Partitions: 1, ReplicationFactor: 1})
	growths := []Growth{{Name: "a", Partitions: 3}, {Name: "b", Partitions: 1}, {Name: "none", Partitions: 2}, {Name: "c", Partitions: 2, Assignments: [][]int32{{1, 1}}}}
	want := []error{nil, kerr.InvalidPartitions, kerr.UnknownTopicOrPartition, kerr.InvalidReplicaAssignment}
	partitions := int32(1)
	for _, validateOnly := range []bool{true, false} {
		for i, err := range k.GrowAll(t.Context(), growths, validateOnly) {
			if !errors.Is(err, want[i]) {
				t.Errorf("%s: %v", growths[i].Name, err)
			}
		}
		if !validateOnly {
			partitions = 3
		}
		if a, _ := k.Lookup("a"); a.Partitions() != partitions {
			t.Errorf("validate only %v: %d partitions", validateOnly, a.Partitions())
		}
	}
	k.stop()
	k.start()
	defer k.stop()
	for name, n := range map[string]int32{"a": 3, "b": 1, "c": 1} {
		if topic, _ := k.Lookup(name); topic.Partitions() != n {
			t.Errorf("%s has %d partitions", name, topic.Partitions())
		}
	}
}
