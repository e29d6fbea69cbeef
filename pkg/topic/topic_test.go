package topic

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// ST-21: a log opens on first touch, once for all that ask at the same time.
func TestALogIsOpenedOnce(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	topic := k.create(simple("a"))[0]
	if _, open := topic.Opened(0); open {
		t.Error("open before the first touch")
	}
	logs := make([]*commitlog.Log, 16)
	var wg sync.WaitGroup
	for i := range logs {
		wg.Go(func() { logs[i], _ = topic.Log(0) })
	}
	wg.Wait()
	for _, l := range logs {
		if l == nil || l != logs[0] {
			t.Fatal("different logs")
		}
	}
	if l, open := topic.Opened(0); !open || l != logs[0] || k.OpenLogs() != 1 {
		t.Error("not the open log")
	}
	for _, p := range []int32{-1, 1} {
		if _, err := topic.Log(p); !errors.Is(err, kerr.UnknownTopicOrPartition) {
			t.Errorf("partition %d: %v", p, err)
		}
	}
}

// A log that can't be opened is KAFKA_STORAGE_ERROR, and tried again after a second.
func TestAFailedOpenIsRememberedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := onDisk(t)
		faulty := faultfs.New(crashfs.New())
		k.fs, k.dir = faulty, "data"
		if err := vfs.MkdirAll(k.fs, "data/a-0", 0o755); err != nil {
			t.Fatal(err)
		}
		k.start()
		topic := k.create(simple("a"))[0]
		fault := faulty.Fail(faultfs.Rule{Kinds: vfs.OpReadDir, Times: -1})
		for range 3 {
			if _, err := topic.Log(0); !errors.Is(err, kerr.KafkaStorageError) || !errors.Is(err, syscall.EIO) {
				t.Errorf("%v", err)
			}
		}
		if n := fault.Hits(); n != 1 {
			t.Errorf("%d opens", n)
		}
		fault.Remove()
		if _, err := topic.Log(0); err == nil {
			t.Error("opened at once")
		}
		time.Sleep(retryOpen) // virtual
		if _, err := topic.Log(0); err != nil {
			t.Error(err)
		}
		k.stop()
	})
}

// The log start offset of meta.db reaches the log, and overrides reach its config.
func TestALogHasItsTopicsConfig(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	topic := k.create(Spec{Name: "a", Partitions: 1, ReplicationFactor: 1, Configs: withConfig("max.message.bytes", "10")})[0]
	if err := k.produce(topic, 0, "larger than ten bytes"); !errors.Is(err, kerr.MessageTooLarge) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(k.dir, "a-0")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ST-1: a directory without an append: %v", err)
	}
}
