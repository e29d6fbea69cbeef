package cleaner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// inBubble runs a test in virtual time on a kit that is started and stopped.
func inBubble(t *testing.T, f func(k *kit)) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t).start()
		f(k)
		k.stop()
	})
}

// ST-30, ST-31, ST-34, ST-35: a topic of 100 segments, trimmed by size, by age, by DeleteRecords and by changes of its configs.
func TestATopicOfAHundredSegmentsIsTrimmed(t *testing.T) {
	inBubble(t, func(k *kit) {
		for _, name := range []string{"size", "age", "delete", "config"} {
			k.fill(k.create(name, 1), 0, 100, time.Now())
		}
		pass(time.Second)
		for _, name := range []string{"size", "age", "delete", "config"} {
			k.wantStart("nothing is limited", name, 0, 0)
		}
		k.alter("size", "retention.bytes", fmt.Sprint(30*recordSize))
		k.alter("age", "retention.ms", "60000")
		pass(time.Second) // the first record is 2 s old
		k.wantStart("by size", "size", 0, 70)
		k.wantStart("by age, all young", "age", 0, 0)
		pass(88 * time.Second)
		k.wantStart("by age, after 90 s", "age", 0, 30)
		k.clock.Advance(time.Hour)
		pass(0)
		k.wantStart("by age, the clock moved", "age", 0, 99) // the active segment stays (ST-32)
		got := k.topics.DeleteRecords(context.Background(), []topic.Deletion{{TopicPartition: kafka.TopicPartition{Topic: "delete"}, Offset: 42}})[0]
		if got.Err != nil || got.LogStart != 42 {
			t.Errorf("%+v", got)
		}
		k.wantStart("by DeleteRecords", "delete", 0, 42)
		for _, c := range []struct {
			key, value string
			want       int64
		}{
			{"retention.bytes", fmt.Sprint(90 * recordSize), 10}, {"retention.bytes", "-1", 10}, {"retention.bytes", fmt.Sprint(80*recordSize - 1), 21},
			{"retention.bytes", "", 21}, {"cleanup.policy", "compact", 21}, {"retention.ms", "1", 21}, {"cleanup.policy", "compact,delete", 99},
		} {
			k.alter("config", c.key, c.value)
			pass(time.Second)
			k.wantStart("by "+c.key+"="+c.value, "config", 0, c.want)
		}
	})
}

// ST-31: a topic's limits beat the flags in both directions, and so does none; without them the flags count again. All over a restart.
func TestTopicConfigsBeatTheFlags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.settings.RetentionBytes = 5 * recordSize
		k.start()
		begin := time.Now()
		for name, limit := range map[string]string{"more": fmt.Sprint(8 * recordSize), "less": fmt.Sprint(2 * recordSize), "none": "-1", "flag": ""} {
			if limit == "" {
				k.fill(k.create(name, 1), 0, 10, begin)
				continue
			}
			k.fill(k.create(name, 1, "retention.bytes", limit), 0, 10, begin)
		}
		want := map[string]int64{"more": 2, "less": 8, "none": 0, "flag": 5}
		pass(time.Second)
		for name, start := range want {
			k.wantStart("at first", name, 0, start)
		}
		k.stop()
		k.start()
		for name, start := range want {
			now, _ := k.topics.Lookup(name)
			k.fill(now, 0, 1, begin)
			pass(time.Second)
			if name != "none" {
				start++
			}
			k.wantStart("after a restart", name, 0, start)
		}
		k.alter("none", "retention.bytes", "")
		k.alter("flag", "retention.bytes", "-1")
		now, _ := k.topics.Lookup("flag")
		k.fill(now, 0, 3, begin)
		pass(time.Second)
		k.wantStart("back to the flag", "none", 0, 6)
		k.wantStart("no limit", "flag", 0, 6)
		k.stop()
	})
}

// ST-33: once a second for logs that are open; once a minute for the others, which stay closed; one commit a sweep.
func TestSweepsComeOnceASecondAndOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t).start()
		for _, name := range []string{"open", "closed", "later"} {
			made := k.create(name, 3)
			for p := range int32(3) {
				k.fill(made, p, 4, time.Now())
			}
		}
		k.stop()
		k.start()
		open, _ := k.topics.Lookup("open")
		for p := range int32(3) {
			_, err := open.Log(p)
			k.must(err)
		}
		for _, name := range []string{"open", "closed"} {
			k.alter(name, "retention.bytes", "0")
		}
		before := k.commits.Load()
		pass(time.Second - time.Millisecond)
		k.wantStart("before a second", "open", 0, 0)
		pass(time.Millisecond)
		k.wantStart("after a second", "open", 2, 3)
		pass(58 * time.Second)
		if got := k.segments("closed", 1); got != 4 || k.commits.Load()-before != 1 {
			t.Errorf("after 59 s: %d segments, %d commits", got, k.commits.Load()-before)
		}
		pass(time.Second)
		if got := k.segments("closed", 1); got != 1 || k.commits.Load()-before != 2 || k.topics.OpenLogs() != 3 {
			t.Errorf("after a minute: %d segments, %d commits, %d logs open", got, k.commits.Load()-before, k.topics.OpenLogs())
		}
		k.alter("later", "retention.bytes", "0")
		pass(59 * time.Second)
		if got := k.segments("later", 1); got != 4 {
			t.Errorf("after two minutes but a second: %d segments", got)
		}
		pass(time.Hour)
		if got := k.segments("later", 1); got != 1 || k.commits.Load()-before != 4 { // that of its config is one
			t.Errorf("after an hour: %d segments, %d commits", got, k.commits.Load()-before)
		}
		k.stop()
	})
}

// ST-33: nothing is looked at while no limit applies.
func TestNothingIsLookedAtWithoutALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t).start()
		k.fill(k.create("a", 2), 0, 4, time.Now())
		k.create("compacted", 1, "cleanup.policy", "compact", "retention.ms", "1")
		k.stop()
		k.start()
		disk := k.fs.(*crashfs.FS)
		disk.OnOp(func(op vfs.Op) { t.Errorf("%s", op) })
		pass(10 * time.Minute)
		disk.OnOp(nil)
		k.stop()
	})
}

// A sweep on demand has a topic's partitions at once, in use or not, and no other's.
func TestRetainTopicIsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t).start()
		for _, name := range []string{"a", "b"} {
			k.fill(k.create(name, 1, "retention.ms", "1000"), 0, 3, time.Now().Add(-time.Hour))
		}
		k.stop()
		k.start()
		a, _ := k.topics.Lookup("a")
		if moved, err := k.cleaner.RetainTopic(context.Background(), a); moved != 1 || err != nil {
			t.Error(moved, err)
		}
		if k.segments("a", 0) != 1 || k.segments("b", 0) != 3 {
			t.Error(k.segments("a", 0), k.segments("b", 0))
		}
		k.stop()
	})
}

// A disk that fails is told of once, and once when it works again.
func TestAFailingSweepIsToldOnce(t *testing.T) {
	inBubble(t, func(k *kit) {
		made := k.create("a", 1)
		k.fill(made, 0, 3, time.Now())
		l, _ := made.Opened(0)
		l.Abandon() // every look at it fails
		k.alter("a", "retention.bytes", "0")
		pass(10 * time.Second)
		k.must(k.topics.Delete(context.Background(), func() *topic.Topic { now, _ := k.topics.Lookup("a"); return now }()))
		pass(10 * time.Second)
		got := k.log.String()
		if strings.Count(got, "old records could not be deleted") > 1 || strings.Count(got, "old records are deleted again") > 1 {
			t.Error(got)
		}
		if !strings.Contains(got, "old records could not be deleted") {
			t.Error("not told")
		}
	})
}

// ST-33, PF-2: what sweeps over 5,000 partitions that are not open cost.
func BenchmarkSweepOfUnopenedPartitions(b *testing.B) {
	k := newKit(b)
	k.fs, k.dir = vfs.OS, b.TempDir()
	k.start()
	const partitions = 5000
	k.fill(k.create("t", partitions), 0, 3, time.Now())
	k.stop()
	for p := 1; p < partitions; p++ { // links: to fill each would take an fsync a segment
		dir := filepath.Join(k.dir, fmt.Sprint("t-", p))
		k.must(os.Mkdir(dir, 0o755))
		files, err := filepath.Glob(filepath.Join(k.dir, "t-0", "*"))
		k.must(err)
		for _, f := range files {
			k.must(os.Link(f, filepath.Join(dir, filepath.Base(f))))
		}
	}
	k.settings.RetentionMs = 3_600_000
	k.start()
	defer k.stop()
	b.ReportAllocs()
	for b.Loop() {
		if moved, err := k.topics.Retain(context.Background(), k.topics.All(), time.Now().UnixMilli(), true); moved != 0 || err != nil {
			b.Fatal(moved, err)
		}
	}
	if k.topics.OpenLogs() != 0 {
		b.Error("logs were opened")
	}
}
