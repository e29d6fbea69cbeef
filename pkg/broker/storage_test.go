package broker

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// testStorage opens the storage of a broker on a disk; the same meta each time.
func testStorage(t *testing.T, disk vfs.FS, metaDir string) *storage {
	t.Helper()
	s := config.Default()
	s.DataDir, s.FsyncInterval = "data", 0
	st, err := openStorage(t.Context(), s, gather(s, []Option{WithFS(disk, metaDir)}))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// touch appends a record to a topic, which is made if need be, and flushes nothing.
func (st *storage) touch(t *testing.T, name string) {
	t.Helper()
	topic, err := st.topics.Ensure(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := topic.Log(0)
	if err != nil {
		t.Fatal(err)
	}
	b := record.NewBuilder(record.Options{})
	if err := b.Append(1, nil, []byte(name)); err != nil {
		t.Fatal(err)
	}
	batch, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(batch); err != nil {
		t.Fatal(err)
	}
}

// ST-50: no mark if any flush failed.
func TestNoMarkAfterAFailedFlush(t *testing.T) {
	disk := faultfs.New(crashfs.New())
	st := testStorage(t, disk, t.TempDir())
	st.touch(t, "a")
	st.touch(t, "b")
	disk.Fail(faultfs.Rule{Kinds: vfs.OpSync, Name: "b-0/*.log"})
	if err := st.close(); err == nil {
		t.Error("the stop was clean")
	}
	if _, err := disk.Stat(filepath.Join("data", shutdownMark)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mark: %v", err)
	}
}

// ST-50: a partition that nothing has opened since a kill is not covered by the
// mark of the next clean stop, nor by that of the one after it.
func TestAMarkDoesNotCoverWhatNothingHasVerified(t *testing.T) {
	disk, metaDir := crashfs.New(), t.TempDir()
	st := testStorage(t, disk, metaDir)
	st.touch(t, "a")
	st.touch(t, "b")
	st.abandon() // killed: no log is flushed
	for i := range 3 {
		st = testStorage(t, disk, metaDir)
		if i > 0 && (!st.last.covers(kafka.TopicPartition{Topic: "a"}) || st.last.covers(kafka.TopicPartition{Topic: "b"})) {
			t.Errorf("start %d: %+v", i, st.last)
		}
		st.touch(t, "a")
		if err := st.close(); err != nil {
			t.Fatal(err)
		}
	}
}
