package topic

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// put appends a record for each key, each in a segment of its own if the topic is small.
func (k *kit) put(t *Topic, partition int32, keys ...string) {
	k.Helper()
	l, err := t.Log(partition)
	if err != nil {
		k.Fatal(err)
	}
	for _, key := range keys {
		b := record.NewBuilder(record.Options{})
		if err := b.Append(time.Now().UnixMilli(), []byte(key), make([]byte, 8)); err != nil {
			k.Fatal(err)
		}
		batch, err := b.Batch()
		if err != nil {
			k.Fatal(err)
		}
		if _, err := l.Append(batch); err != nil {
			k.Fatal(err)
		}
	}
	if err := l.AwaitFlushed(context.Background(), l.Offsets().End); err != nil {
		k.Fatal(err)
	}
}

// offsets of the records that a partition has.
func (k *kit) offsets(t *Topic, partition int32) (all []int64) {
	k.Helper()
	l, err := t.Log(partition)
	if err != nil {
		k.Fatal(err)
	}
	for offset := l.Offsets().LogStart; offset < l.Offsets().End; {
		s, err := l.Read(offset, 1, true, kafka.ReadUncommitted)
		if err != nil {
			k.Fatal(err)
		}
		b := make(record.Batch, s.Region.Length)
		_, err = s.Region.File.ReadAt(b, s.Region.Offset)
		s.Region.Release()
		if err != nil {
			k.Fatal(err)
		}
		if b.Count() > 0 {
			all = append(all, b.BaseOffset())
		}
		offset = b.LastOffset() + 1
	}
	return all
}

func (k *kit) wantOffsets(what string, t *Topic, partition int32, want ...int64) {
	k.Helper()
	if got := k.offsets(t, partition); !slices.Equal(got, want) {
		k.Errorf("%s: %s-%d has the offsets %v, not %v", what, t.name, partition, got, want)
	}
}

// storedDirty is what meta.db says.
func (k *kit) storedDirty(id kafka.TopicID, partition int32) (offset int64) {
	k.Helper()
	if err := k.store.View(func(tx *metastore.Tx) error { offset = tx.FirstDirty(id, partition); return nil }); err != nil {
		k.Fatal(err)
	}
	return offset
}

// always compacts whatever is due, in passes of many keys.
var always = Compaction{MaxKeys: 100, Always: true}

// at is always, with something done at the n-th batch, counted from 1.
func at(n int, do func(ctx context.Context) error) Compaction {
	c, calls := always, 0
	c.Pace = func(ctx context.Context, _ int) error {
		if calls++; calls == n {
			return do(ctx)
		}
		return nil
	}
	return c
}

func compacted(name string, partitions int32, configs ...string) Spec {
	return small(name, partitions, append([]string{"cleanup.policy", "compact"}, configs...)...)
}

func (k *kit) alterOne(name, key, value string) error {
	op := ConfigOp{Op: OpSet, Name: key, Value: value}
	return k.AlterConfigs(context.Background(), []ConfigChange{{Topic: name, Ops: []ConfigOp{op}}}, false)[0]
}

// ST-40, ST-42: all partitions of topics that are compacted, in use or not if that is asked for, and no others; the first
// dirty offset is stored, also between the passes of one partition.
func TestCompactGoesThroughThePartitions(t *testing.T) {
	k := onCrashDisk(t, crashfs.New()).start()
	topics := k.create(compacted("a", 3), compacted("b", 1), small("plain", 1))
	for p := range int32(3) {
		k.put(topics[0], p, "x", "y", "x", "end")
	}
	k.put(topics[1], 0, "x", "x", "end")
	k.put(topics[2], 0, "x", "x", "end")
	k.stop()
	k.clean = func(kafka.TopicPartition) bool { return true }
	k.start()
	defer k.stop()
	a, _ := k.Lookup("a")
	b, _ := k.Lookup("b")
	plain, _ := k.Lookup("plain")
	if done, err := k.Compact(t.Context(), k.All(), Compaction{MaxKeys: 100}); err != nil || done != (Compacted{}) || k.OpenLogs() != 0 {
		t.Errorf("none is in use: %+v, %v, %d open", done, err, k.OpenLogs())
	}
	k.put(a, 1, "later")
	if done, err := k.Compact(t.Context(), k.All(), Compaction{MaxKeys: 100}); err != nil || done.Partitions != 1 || done.Segments == 0 || k.OpenLogs() != 1 {
		t.Errorf("one is in use: %+v, %v, %d open", done, err, k.OpenLogs())
	}
	if done, err := k.Compact(t.Context(), k.All(), always); err != nil || done.Partitions != 4 || done.Segments < 3 || done.Reclaimed < 200 || k.OpenLogs() != 4 {
		t.Errorf("all: %+v, %v", done, err)
	}
	k.wantOffsets("all", a, 0, 1, 2, 3)
	k.wantOffsets("all", a, 1, 1, 2, 3, 4)
	k.wantOffsets("all", b, 0, 1, 2)
	k.wantOffsets("all", plain, 0, 0, 1, 2)
	for p, want := range []int64{3, 4, 3} {
		if got := k.storedDirty(a.id, int32(p)); got != want {
			t.Errorf("first dirty offset of a-%d: %d, want %d", p, got, want)
		}
	}
	if got := k.storedDirty(plain.id, 0); got != 0 {
		t.Error("first dirty offset of what is not compacted:", got)
	}
	if done, err := k.Compact(t.Context(), k.All(), Compaction{MaxKeys: 100}); err != nil || done != (Compacted{}) {
		t.Errorf("nothing is due any more: %+v, %v", done, err)
	}
}

// The policy is the topic's own, or the broker's default, as it is now.
func TestWhetherATopicIsCompacted(t *testing.T) {
	k := onCrashDisk(t, crashfs.New()).start()
	defer k.stop()
	k.create(simple("plain"), compacted("own", 1), small("both", 1, "cleanup.policy", "compact,delete"), small("delete", 1, "cleanup.policy", "delete"))
	for _, c := range []struct {
		broker string
		want   map[string]bool
	}{
		{"", map[string]bool{"plain": false, "own": true, "both": true, "delete": false}},
		{"compact", map[string]bool{"plain": true, "own": true, "both": true, "delete": false}},
	} {
		if c.broker != "" {
			ops := []ConfigOp{{Op: OpSet, Name: "log.cleanup.policy", Value: c.broker}}
			if err := k.AlterBroker(t.Context(), []BrokerChange{{Cluster: true, Ops: ops}}, false)[0]; err != nil {
				t.Fatal(err)
			}
		}
		for name, want := range c.want {
			topic, _ := k.Lookup(name)
			if got, err := topic.Compacted(); got != want || err != nil {
				t.Errorf("%s, broker %q: %v, %v", name, c.broker, got, err)
			}
		}
	}
}

// FX-21, ST-42: a topic that is deleted during a compaction ends it, at once and without an error, and leaves no row; one
// of the same name begins at 0.
func TestATopicIsDeletedDuringItsCompaction(t *testing.T) {
	for n := 1; n <= 9; n++ {
		k := onCrashDisk(t, crashfs.New()).start()
		topics := k.create(compacted("a", 2), compacted("b", 1))
		old := topics[0]
		for p := range int32(2) {
			k.put(old, p, "x", "y", "x", "x", "end")
		}
		k.put(topics[1], 0, "x", "x", "end")
		gone := make(chan error, 1)
		done, err := k.Compact(t.Context(), topics, at(n, func(ctx context.Context) error {
			go func() { gone <- k.Delete(context.Background(), old) }()
			<-ctx.Done() // the delete ends it, however slow the pace is
			return ctx.Err()
		}))
		if err := <-gone; err != nil {
			t.Fatal(err)
		}
		if err != nil || done.Partitions != 1 {
			t.Fatalf("at %d: %+v, %v", n, done, err)
		}
		k.wantOffsets("the other topic", topics[1], 0, 1, 2)
		if got := k.storedDirty(old.id, 0); got != 0 {
			t.Error("a first dirty offset of a deleted topic:", got)
		}
		if err := k.putFirstDirty(t.Context(), old, 0, old.slots[0], 3); !errors.Is(err, kerr.UnknownTopicOrPartition) {
			t.Error("stored for a deleted topic:", err)
		}
		anew := k.create(compacted("a", 1))[0]
		k.put(anew, 0, "x", "x", "end")
		if got := k.storedDirty(anew.id, 0); got != 0 {
			t.Error("first dirty offset of the new topic:", got)
		}
		if done, err := k.Compact(t.Context(), []*Topic{old}, always); err != nil || done != (Compacted{}) {
			t.Errorf("a deleted topic: %+v, %v", done, err)
		}
		k.wantOffsets("the new topic", anew, 0, 0, 1, 2)
		if _, err := k.Compact(t.Context(), k.All(), always); err != nil {
			t.Error(err)
		}
		k.wantOffsets("the new topic, compacted", anew, 0, 1, 2)
		k.stop()
	}
}

// ST-50: a stop during a compaction does not wait for its end. What was compacted is so after the next start, and the rest comes then.
func TestAStopDuringACompaction(t *testing.T) {
	for n := 1; n <= 9; n++ {
		k := onCrashDisk(t, crashfs.New()).start()
		a := k.create(compacted("a", 2))[0]
		for p := range int32(2) {
			k.put(a, p, "x", "y", "x", "x", "end")
		}
		ctx, stop := context.WithCancel(t.Context())
		closed := make(chan error, 1)
		_, err := k.Compact(ctx, k.All(), at(n, func(ctx context.Context) error {
			if n%2 == 0 {
				stop()
			} else { // what a broker does not do, and a log must bear
				go func() { closed <- k.Close() }()
			}
			<-ctx.Done()
			return ctx.Err()
		}))
		if want := []error{context.Canceled, kerr.KafkaStorageError}[n%2]; !errors.Is(err, want) {
			t.Errorf("at %d: %v", n, err)
		}
		stop()
		if n%2 == 1 {
			if err := <-closed; err != nil {
				t.Error(err)
			}
		}
		k.stop()
		k.clean = func(kafka.TopicPartition) bool { return true }
		k.start()
		a, _ = k.Lookup("a")
		if _, err := k.Compact(t.Context(), k.All(), always); err != nil {
			t.Error(err)
		}
		k.wantOffsets(fmt.Sprint("stopped at ", n), a, 0, 1, 3, 4)
		k.wantOffsets(fmt.Sprint("stopped at ", n), a, 1, 1, 3, 4)
		k.stop()
	}
}

// ST-40: compact that is taken out of the policy ends a compaction, without an error; put back, it goes on.
func TestThePolicyChangesDuringACompaction(t *testing.T) {
	for n := 1; n <= 9; n++ {
		k := onCrashDisk(t, crashfs.New()).start()
		a := k.create(compacted("a", 2))[0]
		for p := range int32(2) {
			k.put(a, p, "x", "y", "x", "x", "end")
		}
		done, err := k.Compact(t.Context(), []*Topic{a}, at(n, func(context.Context) error { return k.alterOne("a", "cleanup.policy", "delete") }))
		if err != nil || done.Partitions > 1 {
			t.Fatalf("at %d: %+v, %v", n, done, err)
		}
		k.wantOffsets("not compacted", a, 1, 0, 1, 2, 3, 4)
		// The topic of before the change is one of after it.
		if done, err := k.Compact(t.Context(), []*Topic{a}, always); err != nil || done != (Compacted{}) {
			t.Errorf("at %d, not compacted any more: %+v, %v", n, done, err)
		}
		if err := k.alterOne("a", "cleanup.policy", "delete,compact"); err != nil {
			t.Fatal(err)
		}
		if done, err := k.Compact(t.Context(), []*Topic{a}, always); err != nil || done.Partitions != 2 {
			t.Errorf("at %d, again: %+v, %v", n, done, err)
		}
		k.wantOffsets("again", a, 0, 1, 3, 4)
		k.wantOffsets("again", a, 1, 1, 3, 4)
		k.stop()
	}
}

// Partitions that come during a compaction are of the next one; records deleted and configs altered meanwhile fail nothing.
func TestOtherChangesDuringACompaction(t *testing.T) {
	for n := 1; n <= 9; n++ {
		k := onCrashDisk(t, crashfs.New()).start()
		a := k.create(small("a", 1, "cleanup.policy", "compact,delete"))[0]
		k.put(a, 0, "x", "y", "x", "x", "end")
		done, err := k.Compact(t.Context(), []*Topic{a}, at(n, func(ctx context.Context) error {
			g := k.Grow(ctx, a, 3)
			d := k.DeleteRecords(ctx, []Deletion{deletion("a", 0, 2)})[0]
			return errors.Join(g, d.Err, k.alterOne("a", "segment.bytes", "2097152"), k.alterOne("a", "compression.type", "zstd"))
		}))
		if err != nil || done.Partitions != 1 {
			t.Fatalf("at %d: %+v, %v", n, done, err)
		}
		k.wantOffsets(fmt.Sprint("at ", n), a, 0, 3, 4)
		now, _ := k.Lookup("a")
		k.put(now, 2, "x", "end")
		if done, err := k.Compact(t.Context(), []*Topic{a}, always); err != nil || done.Partitions != 3 {
			t.Errorf("at %d, grown: %+v, %v", n, done, err)
		}
		k.stop()
	}
}

// ST-60: a first dirty offset that can't be stored is an error of its partition alone; it is compacted again from there.
func TestAFirstDirtyOffsetThatCannotBeStored(t *testing.T) {
	k := onCrashDisk(t, crashfs.New()).start()
	defer k.stop()
	topics := k.create(compacted("a", 1), compacted("b", 1))
	for _, topic := range topics {
		k.put(topic, 0, "x", "x", "end")
	}
	failed := 0
	k.fail = func() error {
		if failed++; failed == 1 {
			return &fs.PathError{Op: "write", Path: "meta.db", Err: syscall.ENOSPC}
		}
		return nil
	}
	done, err := k.Compact(t.Context(), topics, always)
	if !errors.Is(err, kerr.KafkaStorageError) || done.Partitions != 1 || done.Segments != 2 {
		t.Errorf("%+v, %v", done, err)
	}
	if a, b := k.storedDirty(topics[0].id, 0), k.storedDirty(topics[1].id, 0); a != 0 || b != 2 {
		t.Error("stored:", a, b)
	}
	if done, err := k.Compact(t.Context(), topics, always); err != nil || done.Partitions != 2 || done.Segments != 0 {
		t.Errorf("again: %+v, %v", done, err)
	}
	if got := k.storedDirty(topics[0].id, 0); got != 2 {
		t.Error("stored:", got)
	}
	k.wantOffsets("again", topics[0], 0, 1, 2)
}

// A partition that can't be compacted keeps the others from nothing, and is told of.
func TestAPartitionThatCannotBeCompacted(t *testing.T) {
	k := onCrashDisk(t, crashfs.New()).start()
	defer k.stop()
	a := k.create(compacted("a", 2))[0]
	for p := range int32(2) {
		k.put(a, p, "x", "x", "end")
	}
	l, _ := a.Opened(0)
	var inner error
	done, err := k.Compact(t.Context(), []*Topic{a}, at(1, func(ctx context.Context) error {
		_, inner = k.Compact(ctx, []*Topic{a}, always)
		return nil
	}))
	if !errors.Is(inner, commitlog.ErrCompacting) || err != nil || done.Partitions != 2 {
		t.Errorf("%+v, %v; inside: %v", done, err, inner)
	}
	k.wantOffsets("both", a, 0, 1, 2)
	k.wantOffsets("both", a, 1, 1, 2)
	if l.Offsets().LogStart != 0 { // ST-44
		t.Error(l.Offsets())
	}
}
