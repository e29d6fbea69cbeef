package topic

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// small has segments of one batch each.
func small(name string, partitions int32, configs ...string) Spec {
	s := Spec{Name: name, Partitions: partitions, ReplicationFactor: 1, Configs: withConfig("internal.segment.bytes", "100")}
	for i := 0; i < len(configs); i += 2 {
		s.Configs = append(s.Configs, withConfig(configs[i], configs[i+1])...)
	}
	return s
}

// fill makes so many segments of one record in each partition.
func (k *kit) fill(t *Topic, segments int) {
	k.Helper()
	for p := range t.partitions {
		for i := range segments {
			k.mustProduce(t, p, fmt.Sprint("value ", i))
		}
	}
}

// segments is how many a partition has on the disk.
func (k *kit) segments(t *Topic, partition int32) (n int) {
	k.Helper()
	entries, err := k.fs.ReadDir(k.Registry.dir(kafka.TopicPartition{Topic: t.name, Partition: partition}))
	if err != nil {
		k.Fatal(err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".log" {
			n++
		}
	}
	return n
}

// logStart is what meta.db says.
func (k *kit) logStart(t *Topic, partition int32) (start int64) {
	k.Helper()
	if err := k.store.View(func(tx *metastore.Tx) error { start = tx.LogStart(t.id, partition); return nil }); err != nil {
		k.Fatal(err)
	}
	return start
}

func deletion(name string, partition int32, offset int64) Deletion {
	return Deletion{kafka.TopicPartition{Topic: name, Partition: partition}, offset}
}

// ST-34, ST-35: the start is in meta.db before anybody sees that it has moved, and before any file goes; one commit is for all.
func TestDeleteRecordsIsDurableBeforeItIsVisible(t *testing.T) {
	k := onCrashDisk(t, crashfs.New()).start()
	defer k.stop()
	topic := k.create(small("a", 3))[0]
	k.fill(topic, 5)
	commits := 0
	k.fail = func() error {
		commits++
		for p := range int32(3) {
			l, _ := topic.Opened(p)
			if at := l.Offsets(); at.LogStart != 0 || k.segments(topic, p) != 5 {
				t.Errorf("partition %d before the commit: %+v, %d segments", p, at, k.segments(topic, p))
			}
		}
		return nil
	}
	for i, o := range k.DeleteRecords(t.Context(), []Deletion{deletion("a", 0, 3), deletion("a", 1, commitlog.HighWatermark), deletion("a", 2, 0)}) {
		if want := []int64{3, 5, 0}[i]; o.Err != nil || o.LogStart != want || k.logStart(topic, int32(i)) != want {
			t.Errorf("partition %d: %+v, stored %d", i, o, k.logStart(topic, int32(i)))
		}
	}
	k.fail = nil
	if got := []int{k.segments(topic, 0), k.segments(topic, 1), k.segments(topic, 2)}; commits != 1 || fmt.Sprint(got) != "[2 1 5]" {
		t.Errorf("%d commits, %d segments", commits, got)
	}
	// One that was decided before another, and comes after it, takes nothing back.
	late := &move{topic: topic, start: 1}
	if k.moveStarts(t.Context(), []*move{late}); late.err != nil || k.logStart(topic, 0) != 3 {
		t.Errorf("%v, stored %d", late.err, k.logStart(topic, 0))
	}
}

// ST-60: without the commit nothing has moved; a deleted topic's start is not stored.
func TestDeleteRecordsThatFails(t *testing.T) {
	k := onCrashDisk(t, crashfs.New()).start()
	defer k.stop()
	topic := k.create(small("a", 1))[0]
	k.fill(topic, 3)
	k.fail = func() error { return &fs.PathError{Op: "write", Path: "meta.db", Err: syscall.ENOSPC} }
	got := k.DeleteRecords(t.Context(), []Deletion{deletion("a", 0, 2), deletion("none", 0, 0), deletion("a", 7, 0)})
	k.fail = nil
	for i, want := range []error{kerr.KafkaStorageError, kerr.UnknownTopicOrPartition, kerr.UnknownTopicOrPartition} {
		if !errors.Is(got[i].Err, want) {
			t.Errorf("%d: %v", i, got[i].Err)
		}
	}
	l, _ := topic.Opened(0)
	if at := l.Offsets(); at.LogStart != 0 || k.logStart(topic, 0) != 0 || k.segments(topic, 0) != 3 {
		t.Errorf("%+v, stored %d", at, k.logStart(topic, 0))
	}
	m := &move{topic: topic, start: 2}
	if err := k.Delete(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	k.moveStarts(t.Context(), []*move{m})
	if !errors.Is(m.err, kerr.UnknownTopicOrPartition) || k.logStart(topic, 0) != 0 {
		t.Errorf("%v, stored %d", m.err, k.logStart(topic, 0))
	}
}

// ST-71: whenever the power goes during a DeleteRecords or a sweep of retention over logs that are open and not,
// what is left is a log without gaps that starts no earlier than was told.
func TestAPowerCutInADeletionLeavesAWholeLog(t *testing.T) {
	for _, closed := range []bool{false, true} {
		for at := 1; ; at++ {
			disk := crashfs.New()
			k := onCrashDisk(t, disk).start()
			topic := k.create(small("a", 2, "retention.bytes", "250"))[0]
			k.fill(topic, 6)
			if closed {
				k.stop()
				k.clean = func(kafka.TopicPartition) bool { return true }
				k.start()
				topic, _ = k.Lookup("a")
			}
			var cuts []*kit
			n := 0
			step := func() {
				if n++; n == at {
					for _, s := range crashfs.Survivals(uint64(at), 3) {
						cuts = append(cuts, k.cut(s))
					}
				}
			}
			disk.OnOp(func(op vfs.Op) {
				if op.Kind&vfs.OpChanges != 0 {
					step()
				}
			})
			var told int64
			if !closed {
				told = k.DeleteRecords(t.Context(), []Deletion{deletion("a", 0, 2)})[0].LogStart
			}
			if moved, err := k.Retain(t.Context(), k.All(), time.Now().UnixMilli(), closed); moved != 2 || err != nil {
				t.Fatal(moved, err)
			}
			disk.OnOp(nil)
			for _, after := range append(cuts, k.cut(crashfs.LoseUnsynced)) {
				after.start()
				topic, _ := after.Lookup("a")
				for p := range int32(2) {
					l, err := topic.Log(p)
					if err != nil {
						t.Fatal(err)
					}
					at := l.Offsets()
					if at.End != 6 || at.LogStart < after.logStart(topic, p) {
						t.Fatalf("step %d: %+v, stored %d", n, at, after.logStart(topic, p))
					}
					for offset := at.LogStart; offset < at.End; offset++ {
						s, err := l.Read(offset, 1<<20, true, kafka.ReadUncommitted)
						if err != nil || s.Region.Length == 0 {
							t.Fatalf("step %d: nothing at %d of %+v: %v", n, offset, at, err)
						}
						s.Region.Release()
					}
				}
				after.stop()
			}
			if k.logStart(topic, 0) < told {
				t.Fatal("the start went back")
			}
			k.stop()
			if n < at {
				t.Logf("closed %v: the power was cut at each of %d steps", closed, n)
				break
			}
		}
	}
}
