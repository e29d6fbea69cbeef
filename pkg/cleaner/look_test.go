package cleaner

import (
	"context"
	"fmt"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// ST-40, ST-42: a look at partitions in use with nothing to compact takes no look at the disk and hardly any memory.
func TestALookAtCleanPartitionsIsCheap(t *testing.T) {
	inBubble(t, func(k *kit) {
		k.fillCompacted(100)
		disk := k.fs.(*crashfs.FS)
		disk.OnOp(func(op vfs.Op) { t.Errorf("%s", op) })
		commits := k.commits.Load()
		look := func() {
			if done, err := k.topics.Compact(context.Background(), k.topics.All(), topic.Compaction{MaxKeys: 1_000_000}); done.Partitions != 0 || err != nil {
				t.Error(done, err)
			}
		}
		if n := testing.AllocsPerRun(10, look); n > 20 {
			t.Errorf("%v allocations for 100 partitions", n)
		}
		disk.OnOp(nil)
		if k.commits.Load() != commits {
			t.Error("something was committed")
		}
		k.stop()
	})
}

// fillCompacted makes a topic of so many partitions that have three segments each and are clean.
func (k *kit) fillCompacted(partitions int32) {
	k.Helper()
	made := k.create("clean", partitions, "cleanup.policy", "compact")
	for p := range partitions {
		l, err := made.Log(p)
		k.must(err)
		for i := range 3 {
			b := record.NewBuilder(record.Options{})
			k.must(b.Append(1000, []byte("key"), fmt.Appendf(nil, "value %04d", i)))
			batch, err := b.Batch()
			k.must(err)
			_, err = l.Append(batch)
			k.must(err)
		}
		if l.Size() < 200 {
			k.Fatal("too little for three segments")
		}
	}
	if _, err := k.cleaner.CompactTopic(context.Background(), made); err != nil {
		k.Fatal(err)
	}
}

// PF-2: what the look once a second costs a hundred compacted partitions that are in use.
func BenchmarkLookAtCleanPartitions(b *testing.B) {
	k := newKit(b)
	k.fs, k.dir = vfs.OS, b.TempDir()
	k.start()
	defer k.stop()
	k.fillCompacted(100)
	b.ReportAllocs()
	for b.Loop() {
		if done, err := k.topics.Compact(b.Context(), k.topics.All(), topic.Compaction{MaxKeys: 1_000_000}); done.Partitions != 0 || err != nil {
			b.Fatal(done, err)
		}
	}
}
