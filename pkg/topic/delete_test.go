package topic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// FX-21: a delete is complete when it returns; the topic made anew has another
// id and none of the records, also after a restart.
func TestATopicMadeAnewHasNoneOfTheRecords(t *testing.T) {
	k := onDisk(t).start()
	old := k.create(Spec{Name: "a", Partitions: 2, ReplicationFactor: 1})[0]
	k.mustProduce(old, 0, "old")
	log, _ := old.Log(0)
	if err := k.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Log(0); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("Log of a deleted topic: %v", err)
	}
	if _, err := log.Read(0, 100, true, kafka.ReadUncommitted); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("Read of a deleted topic: %v", err)
	}
	if err := k.Delete(t.Context(), old); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("second delete: %v", err)
	}
	entries, _ := os.ReadDir(k.dir)
	if len(entries) != 1 {
		t.Errorf("left in the data directory: %v", entries)
	}
	anew := k.create(simple("a"))[0]
	if anew.ID() == old.ID() {
		t.Error("the same id")
	}
	k.mustProduce(anew, 0, "new")
	k.stop()
	k.start()
	defer k.stop()
	now, _ := k.Lookup("a")
	if err := k.holds(now, 0, "new"); err != nil || now.ID() != anew.ID() {
		t.Error(err)
	}
}

// ST-1: a directory of another id is never opened as the topic, nor removed with it.
func TestAForeignDirectoryIsNeitherOpenedNorRemoved(t *testing.T) {
	k := onDisk(t).start()
	topic := k.create(simple("a"))[0]
	k.mustProduce(topic, 0, "one")
	k.stop()
	if err := os.Remove(k.meta); err != nil {
		t.Fatal(err)
	}
	k.start()
	defer k.stop()
	if !k.logged.has("directories of no known topic") || !k.logged.has("first=a-0") {
		t.Error("not told of")
	}
	other := k.create(simple("a"))[0]
	if _, err := other.Log(0); !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("%v", err)
	}
	if err := k.Delete(t.Context(), other); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(k.dir + "/a-0"); err != nil {
		t.Error(err)
	}
}

// The name of a directory under way out fits the file system, and is known again.
func TestDeletedNamesFitAndAreKnownAgain(t *testing.T) {
	id := kafka.NewTopicID()
	for _, name := range []string{"a", strings.Repeat("x", 249)} {
		n := deletedName(kafka.TopicPartition{Topic: name, Partition: 12345}, id)
		got, ok := deletedID(n)
		if len(n) > maxFileName || !ok || got != id {
			t.Errorf("%s: %v, %s", n, ok, got)
		}
		if _, ok := parseDir(n); ok {
			t.Errorf("%s is taken for a partition", n)
		}
	}
}

// A delete that the disk fails is KAFKA_STORAGE_ERROR; the name is not used until it is finished.
func TestAFailedDeleteIsFinishedBeforeTheNameIsUsed(t *testing.T) {
	for _, rule := range []faultfs.Rule{{Kinds: vfs.OpRename}, {Kinds: vfs.OpRename, Happens: true}, {Kinds: vfs.OpSyncDir}, {Kinds: vfs.OpRemoveAll}} {
		kind := rule.Kinds
		rule.Times = -1
		k := onDisk(t)
		faulty := faultfs.New(vfs.OS)
		k.fs = faulty
		k.start()
		topic := k.create(simple("a"))[0]
		k.mustProduce(topic, 0, "old")
		fault := faulty.Fail(rule)
		if err := k.Delete(t.Context(), topic); !errors.Is(err, kerr.KafkaStorageError) || !errors.Is(err, syscall.EIO) {
			t.Errorf("%v: %v", kind, err)
		}
		if _, ok := k.Lookup("a"); ok {
			t.Errorf("%v: the topic is still there", kind)
		}
		if _, err := k.Ensure(t.Context(), "a"); !rule.Happens && !errors.Is(err, kerr.KafkaStorageError) {
			t.Errorf("%v: the name is used: %v", kind, err)
		}
		fault.Remove()
		anew, err := k.Ensure(t.Context(), "a")
		if final := kind == vfs.OpSyncDir; (err != nil) != final { // ST-61: a failed fsync is not tried again
			t.Errorf("%v: %v", kind, err)
		}
		if err != nil {
			k.stop()
			k.start()
			if anew, err = k.Ensure(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		k.mustProduce(anew, 0, "new")
		if err := k.holds(anew, 0, "new"); err != nil || anew.ID() == topic.ID() {
			t.Errorf("%v: %v", kind, err)
		}
		k.stop()
	}
}

// A delete leaves no row: meta.db would grow with every topic that ever was.
func TestADeleteLeavesNoRow(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	made := k.create(simple("a"), simple("b"))
	k.mustProduce(made[0], 0, "one")
	if err := errors.Join(k.DeleteAll(t.Context(), made)...); err != nil {
		t.Fatal(err)
	}
	err := k.store.View(func(tx *metastore.Tx) error {
		for row, err := range tx.Topics() {
			t.Errorf("a row is left: %+v, %v", row, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A re-creation that comes while the delete runs waits for it.
func TestReCreationWaitsForTheDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := onDisk(t).start()
		topic := k.create(simple("a"))[0]
		k.mustProduce(topic, 0, "old")
		held := make(chan struct{})
		k.fail = func() error { <-held; return nil }
		deleted, made := make(chan error, 1), make(chan *Topic, 1)
		go func() { deleted <- k.Delete(context.Background(), topic) }()
		synctest.Wait()
		go func() { made <- k.create(simple("a"))[0] }()
		synctest.Wait()
		close(held)
		if err := <-deleted; err != nil {
			t.Error(err)
		}
		if anew := <-made; anew.ID() == topic.ID() || k.holds(anew, 0) != nil {
			t.Error("the old topic")
		}
		k.stop()
	})
}

// A promise is what the workload of the sweep was told is durable.
type promise struct {
	id       kafka.TopicID // of the topic "a"; zero: there is none
	values   []string
	inFlight bool // an operation is under way: what it changes may be either way
	gone     []kafka.TopicID
}

// check starts a broker's topics after a cut and holds them against the promise.
func (p promise) check(k *kit) error {
	if err := k.tryStart(); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer func() { _ = errors.Join(k.Close(), k.store.Close()) }() // the checks are done
	for _, id := range p.gone {
		if _, ok := k.LookupID(id); ok {
			return errors.New("a deleted topic is back")
		}
	}
	t, ok := k.Lookup("a")
	if !p.inFlight && (ok != !p.id.IsZero() || ok && t.ID() != p.id) {
		return fmt.Errorf("topic there: %v, promised: %v", ok, p.id)
	}
	if ok && t.ID() == p.id {
		if err := k.holds(t, 0, p.values...); err != nil && !p.inFlight {
			return err
		}
	}
	t, err := k.Ensure(context.Background(), "a")
	if err != nil {
		return err
	}
	if t.ID() != p.id {
		if err := k.holds(t, 0); err != nil {
			return fmt.Errorf("a new topic is not empty: %w", err)
		}
	}
	if err := k.produce(t, 0, "after"); err != nil {
		return err
	}
	entries, err := k.fs.ReadDir(k.dir)
	for _, e := range entries {
		if _, left := deletedID(e.Name()); left {
			return fmt.Errorf("%s is left", e.Name())
		}
	}
	return err
}

// ST-70, ST-72: the power is cut before every disk operation and every commit
// of creates, produces, growth and deletes.
func TestAPowerCutAtAnyStepLosesNoTopicAndBringsNoneBack(t *testing.T) {
	disk := crashfs.New()
	k := onCrashDisk(t, disk)
	var p promise
	cuts := 0
	cut := func(what string) {
		for _, s := range crashfs.Survivals(uint64(cuts), 4) {
			if err := p.check(k.cut(s)); err != nil {
				t.Errorf("cut %d before %s, %v: %v", cuts, what, s, err)
			}
		}
		cuts++
	}
	k.fail = func() error { cut("a commit"); return nil }
	k.start()
	disk.OnOp(func(op vfs.Op) { cut(op.String()) })
	step := func(f func()) {
		p.inFlight = true
		f()
		p.inFlight = false
		cut("the next operation")
	}
	for round := range 2 {
		var topic *Topic
		step(func() {
			topic = k.create(simple("a"))[0]
			p.id, p.values = topic.ID(), nil
		})
		for i := range 2 {
			v := fmt.Sprintf("%d/%d", round, i)
			step(func() {
				k.mustProduce(topic, 0, v)
				p.values = append(p.values, v)
			})
		}
		step(func() {
			if err := k.Grow(t.Context(), topic, 2); err != nil {
				t.Fatal(err)
			}
		})
		topic, _ = k.Lookup("a")
		step(func() { k.mustProduce(topic, 1, "other") })
		step(func() {
			if err := k.Delete(t.Context(), topic); err != nil {
				t.Fatal(err)
			}
			p.gone, p.id = append(p.gone, p.id), kafka.TopicID{}
		})
	}
	t.Logf("%d cuts", cuts)
	if cuts < 40 {
		t.Errorf("only %d cuts", cuts)
	}
	disk.OnOp(nil)
	k.fail = nil
	k.stop()
}
