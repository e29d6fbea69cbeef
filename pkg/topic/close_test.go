package topic

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// ST-50: a stop flushes every open log; afterwards no log can be opened.
func TestCloseEndsEveryLog(t *testing.T) {
	k := onDisk(t).start()
	topic := k.create(Spec{Name: "a", Partitions: 50, ReplicationFactor: 1})[0]
	for p := range int32(50) {
		l, err := topic.Log(p)
		if err != nil {
			t.Fatal(err)
		}
		_ = l
	}
	k.mustProduce(topic, 7, "x")
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	late := k.create(simple("late"))[0]
	for _, topic := range []*Topic{topic, late} {
		if _, err := topic.Log(0); !errors.Is(err, kerr.KafkaStorageError) {
			t.Errorf("%s: %v", topic.Name(), err)
		}
	}
	if n := k.OpenLogs(); n != 0 {
		t.Errorf("%d logs are open", n)
	}
	k.stop()
}
