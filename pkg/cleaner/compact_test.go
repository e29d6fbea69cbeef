package cleaner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// put appends a record for each key, each in a segment of its own.
func (k *kit) put(t *topic.Topic, keys ...string) {
	k.Helper()
	l, err := t.Log(0)
	k.must(err)
	for _, key := range keys {
		b := record.NewBuilder(record.Options{})
		k.must(b.Append(k.clock.Now().UnixMilli(), []byte(key), make([]byte, 8)))
		batch, err := b.Batch()
		k.must(err)
		a, err := l.Append(batch)
		k.must(err)
		k.must(l.AwaitFlushed(context.Background(), a.End))
	}
}

// offsets of the records that are left of a topic.
func (k *kit) offsets(t *topic.Topic) (all []int64) {
	k.Helper()
	l, err := t.Log(0)
	k.must(err)
	for offset := l.Offsets().LogStart; offset < l.Offsets().End; {
		s, err := l.Read(offset, 1, true, kafka.ReadUncommitted)
		k.must(err)
		b := make(record.Batch, s.Region.Length)
		_, err = s.Region.File.ReadAt(b, s.Region.Offset)
		k.must(err)
		s.Region.Release()
		if b.Count() > 0 {
			all = append(all, b.BaseOffset())
		}
		offset = b.LastOffset() + 1
	}
	return all
}

func (k *kit) want(t *topic.Topic, offsets ...int64) {
	k.Helper()
	if got := k.offsets(t); !slices.Equal(got, offsets) {
		k.Errorf("the log has the offsets %v, not %v", got, offsets)
	}
}

// ST-40, ST-41, ST-42: a partition in use is compacted within about a second of a roll, but for its active
// segment, in passes of as many keys as are allowed, and goes on after a restart where it was.
func TestACompactedTopicIsCompacted(t *testing.T) {
	inBubble(t, func(k *kit) {
		k.stop()
		k.settings.CleanerMaxKeys = 2
		k.start()
		made := k.create("a", 1, "cleanup.policy", "compact")
		plain := k.create("b", 1)
		k.put(made, "x", "y", "x", "z", "y", "x")
		k.put(plain, "x", "x", "x")
		pass(2 * time.Second)
		k.want(made, 2, 3, 4, 5) // 5 is active, so that 2 stays
		k.want(plain, 0, 1, 2)
		k.put(made, "q")
		pass(2 * time.Second)
		k.want(made, 3, 4, 5, 6)
		k.stop()
		k.start()
		made, _ = k.topics.Lookup("a")
		k.must(k.store.View(func(tx *metastore.Tx) error {
			if got := tx.FirstDirty(made.ID(), 0); got != 6 {
				k.Error("first dirty offset", got)
			}
			return nil
		}))
		k.put(made, "x", "end")
		pass(2 * time.Second)
		k.want(made, 3, 4, 6, 7, 8)
		k.stop()
	})
}

// ST-47: what is dirty has to be more than the ratio, or older than max.compaction.lag.ms; what is younger than
// min.compaction.lag.ms is never compacted, on demand neither.
func TestWhenATopicIsCompacted(t *testing.T) {
	inBubble(t, func(k *kit) {
		ratio := k.create("ratio", 1, "cleanup.policy", "compact", "min.cleanable.dirty.ratio", "0.6", "max.compaction.lag.ms", "100000")
		young := k.create("young", 1, "cleanup.policy", "compact", "min.compaction.lag.ms", "50000")
		k.put(ratio, "a", "b", "c", "a", "end")
		k.put(young, "x", "x", "x")
		pass(2 * time.Second)
		k.want(ratio, 1, 2, 3, 4)
		k.put(ratio, "a", "end")
		pass(2 * time.Second)
		k.want(ratio, 1, 2, 3, 4, 5, 6) // 2 of 5 segments
		if done, err := k.cleaner.CompactTopic(context.Background(), young); err != nil || done.Segments != 0 {
			t.Error(done, err)
		}
		pass(100 * time.Second)
		k.want(ratio, 1, 2, 4, 5, 6)
		k.want(young, 1, 2)
		k.stop()
	})
}

// FX-20: on demand, whether it is due or not, and also a topic that is not in use; ST-49.
func TestATopicIsCompactedOnDemand(t *testing.T) {
	inBubble(t, func(k *kit) {
		made := k.create("a", 1, "cleanup.policy", "compact,delete", "min.cleanable.dirty.ratio", "1")
		plain := k.create("b", 1)
		k.put(made, "x", "x", "y")
		k.stop()
		k.start()
		made, _ = k.topics.Lookup("a")
		done, err := k.cleaner.CompactTopic(context.Background(), made)
		if err != nil || done.Partitions != 1 || done.Segments != 1 || done.Reclaimed == 0 || done.Removed != 1 {
			t.Error(done, err)
		}
		if got := k.log.String(); strings.Count(got, "msg=compacted partition=a-0 segments=1 removed_records=1 ") != 1 {
			t.Error("not told:", got)
		}
		k.want(made, 1, 2)
		plain, _ = k.topics.Lookup(plain.Name())
		if _, err := k.cleaner.CompactTopic(context.Background(), plain); !errors.Is(err, kerr.PolicyViolation) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := k.cleaner.CompactTopic(ctx, made); !errors.Is(err, context.Canceled) {
			t.Error(fmt.Errorf("ended: %w", err))
		}
		k.stop()
	})
}

// ST-72: on a full disk a compaction is tried by itself once a minute, and on demand at once. A try takes what room there is from those who write.
func TestACompactionThatFailsIsTriedEveryMinute(t *testing.T) {
	inBubble(t, func(k *kit) {
		k.stop()
		disk := faultfs.New(k.fs)
		k.fs = disk
		k.start()
		made, other := k.create("a", 1, "cleanup.policy", "compact"), k.create("b", 1, "cleanup.policy", "compact")
		fault := disk.Fail(faultfs.Rule{Kinds: vfs.OpWrite, Name: "a-0/*.cleaned", Times: -1, Err: syscall.ENOSPC})
		k.put(made, "x", "x", "end")
		k.put(other, "x", "x", "end")
		pass(30 * time.Second)
		k.want(made, 0, 1, 2)
		k.want(other, 1, 2)
		if n := fault.Hits(); n != 1 {
			t.Error("tried", n, "times in half a minute")
		}
		pass(2 * time.Minute)
		if n := fault.Hits(); n != 3 {
			t.Error("tried", n, "times in two minutes and a half")
		}
		if _, err := k.cleaner.CompactTopic(context.Background(), made); !errors.Is(err, kerr.KafkaStorageError) || fault.Hits() != 4 {
			t.Error("on demand:", err)
		}
		fault.Remove()
		pass(time.Minute + time.Second)
		k.want(made, 1, 2)
		log := k.log.String()
		if n := strings.Count(log, "tried again every minute"); n != 1 || strings.Count(log, "logs are compacted again") != 1 {
			t.Errorf("told %d times in\n%s", n, log)
		}
	})
}
