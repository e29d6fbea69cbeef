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
