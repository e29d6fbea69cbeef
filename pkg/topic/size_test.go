package topic

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// The size of a partition is the same with its log open and closed, and to ask for it opens none.
func TestSizeOpensNoLog(t *testing.T) {
	k := onDisk(t).start()
	topic := k.create(Spec{Name: "a", Partitions: 2, ReplicationFactor: 1})[0]
	k.mustProduce(topic, 0, "x")
	open, err := topic.Size(0)
	if l, _ := topic.Log(0); err != nil || open <= 0 || open != l.Size() {
		t.Errorf("%d bytes, %v", open, err)
	}
	k.stop()
	k.start()
	defer k.stop()
	topic, _ = k.Lookup("a")
	for partition, want := range []int64{open, 0} {
		if size, err := topic.Size(int32(partition)); err != nil || size != want {
			t.Errorf("partition %d: %d bytes, want %d, %v", partition, size, want, err)
		}
	}
	if _, err := topic.Size(2); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("%v", err)
	}
	if k.OpenLogs() != 0 {
		t.Errorf("%d logs are open", k.OpenLogs())
	}
	if total, usable, err := k.Space(); err != nil || usable <= 0 || total < usable {
		t.Errorf("%d of %d bytes, %v", usable, total, err)
	}
}
