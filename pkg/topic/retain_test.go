package topic

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// ST-33, ST-34: a sweep commits once, opens no log, and does nothing for topics without a limit.
func TestRetainCommitsOnceAndOpensNothing(t *testing.T) {
	k := onCrashDisk(t, crashfs.New()).start()
	a := k.create(small("a", 3, "retention.bytes", "0"), small("free", 1), small("compacted", 1, "cleanup.policy", "compact", "retention.bytes", "0"))
	for _, topic := range a[:2] {
		k.fill(topic, 4)
	}
	var commits atomic.Int64
	k.fail = func() error { commits.Add(1); return nil }
	k.stop()
	k.clean = func(kafka.TopicPartition) bool { return true }
	k.start()
	defer k.stop()
	commits.Store(0)
	for i, want := range []int{0, 3, 0} { // those in use, all, and all again
		moved, err := k.Retain(t.Context(), k.All(), time.Now().UnixMilli(), i > 0)
		if moved != want || err != nil || k.OpenLogs() != 0 {
			t.Errorf("sweep %d: %d moved, %v, %d open", i, moved, err, k.OpenLogs())
		}
	}
	topic, _ := k.Lookup("a")
	if commits.Load() != 1 || k.segments(topic, 2) != 1 || k.logStart(topic, 2) != 3 {
		t.Errorf("%d commits, %d segments, stored %d", commits.Load(), k.segments(topic, 2), k.logStart(topic, 2))
	}
	free, _ := k.Lookup("free")
	if k.segments(free, 0) != 4 {
		t.Error("a topic without a limit has lost segments")
	}
	l, err := topic.Log(2)
	if err != nil || l.Offsets().LogStart != 3 || l.Offsets().End != 4 {
		t.Error(l.Offsets(), err)
	}
}

// A log that is opened between a sweep's look and its commit is moved as one that was open.
func TestRetainOfALogThatIsOpenedMeanwhile(t *testing.T) {
	k := onCrashDisk(t, crashfs.New()).start()
	k.fill(k.create(small("a", 1, "retention.bytes", "0"))[0], 4)
	k.stop()
	var topic *Topic
	k.start()
	defer k.stop()
	topic, _ = k.Lookup("a")
	var once atomic.Bool
	k.fail = func() error {
		if !once.Swap(true) {
			if _, err := topic.Log(0); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	if moved, err := k.Retain(t.Context(), k.All(), time.Now().UnixMilli(), true); moved != 1 || err != nil {
		t.Fatal(moved, err)
	}
	l, _ := topic.Opened(0)
	if l.Offsets().LogStart != 3 || k.segments(topic, 0) != 1 {
		t.Error(l.Offsets(), k.segments(topic, 0))
	}
}

// A roll on demand, and then retention has everything.
func TestRollOnDemand(t *testing.T) {
	k := onCrashDisk(t, crashfs.New()).start()
	defer k.stop()
	topic := k.create(Spec{Name: "a", Partitions: 2, ReplicationFactor: 1, Configs: withConfig("retention.bytes", "0")})[0]
	k.fill(topic, 4)
	if err := topic.Roll(); err != nil {
		t.Fatal(err)
	}
	if moved, err := k.Retain(t.Context(), []*Topic{topic}, 0, false); moved != 2 || err != nil {
		t.Error(moved, err)
	}
	if l, _ := topic.Opened(1); l.Offsets().LogStart != 4 || l.Offsets().End != 4 {
		t.Error(l.Offsets())
	}
}
