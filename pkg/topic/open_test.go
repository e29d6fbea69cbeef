package topic

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// ST-50: partitions that no clean stop has flushed are unverified until they are opened, or deleted.
func TestUnverifiedListsWhatWasNotOpened(t *testing.T) {
	k := onDisk(t).start()
	topic := k.create(Spec{Name: "a", Partitions: 12, ReplicationFactor: 1}, simple("b"), simple("untouched"))
	for p := range int32(12) {
		k.mustProduce(topic[0], p, "x")
	}
	k.mustProduce(topic[1], 0, "x")
	k.stop()
	k.clean = func(tp kafka.TopicPartition) bool { return tp.Partition == 5 }
	k.start()
	defer k.stop()
	a, _ := k.Lookup("a")
	for p := range int32(9) {
		if _, err := a.Log(p); err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(k.Unverified()); got != "[a-9 a-10 a-11 b-0]" {
		t.Error(got)
	}
	b, _ := k.Lookup("b")
	if err := k.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(k.Unverified()); got != "[a-9 a-10 a-11]" {
		t.Error(got)
	}
}

// ST-4: what looks like a partition, and what does not.
func TestPartitionDirs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a-0", "b.c-12", "x-y-3", "a-01", "-1", "a-x", "a", "lost+found", deletedName(kafka.TopicPartition{Topic: "a"}, kafka.NewTopicID())} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "f-0"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := PartitionDirs(vfs.OS, dir)
	if err != nil || !slices.Equal(got, []string{"a-0", "b.c-12", "x-y-3"}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := PartitionDirs(vfs.OS, filepath.Join(dir, "none")); got != nil || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// ST-21, PF-2: opening reads rows and names, no partition.
func TestOpeningThousandsOfTopicsIsQuick(t *testing.T) {
	k := onCrashDisk(t, crashfs.New()).start()
	specs := make([]Spec, 1000)
	for i := range specs {
		specs[i] = Spec{Name: fmt.Sprintf("topic-%d", i), Partitions: 5, ReplicationFactor: 1, Configs: withConfig("retention.ms", "1000")}
	}
	k.create(specs...)
	k.stop()
	for i := range specs {
		for p := range 5 {
			if err := k.fs.Mkdir(filepath.Join(k.dir, fmt.Sprintf("topic-%d-%d", i, p)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	begin := time.Now()
	k.start()
	t.Logf("%d topics, %d partitions unverified: %v", len(k.All()), len(k.Unverified()), time.Since(begin))
	if len(k.All()) != 1000 || len(k.Unverified()) != 5000 || k.OpenLogs() != 0 {
		t.Error("not all, or opened")
	}
	k.stop()
}
