package broker

import (
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// ST-50: the mark lists the partitions that were not verified; the next start treats those as unclean.
func TestMarkNamesWhatWasNotVerified(t *testing.T) {
	dir := t.TempDir()
	odd := kafka.TopicPartition{Topic: "a-1", Partition: 12}
	if err := putMark(vfs.OS, dir, []kafka.TopicPartition{odd}); err != nil {
		t.Fatal(err)
	}
	last, err := takeMark(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	if !last.covers(kafka.TopicPartition{Topic: "b"}) || last.covers(odd) {
		t.Errorf("covers: %+v", last)
	}
}

// ST-54: the start takes the mark away before it accepts anything.
func TestMarkIsGoneOnceTaken(t *testing.T) {
	dir := t.TempDir()
	if err := putMark(vfs.OS, dir, nil); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		last, err := takeMark(vfs.OS, dir)
		if err != nil {
			t.Fatal(err)
		}
		if last.clean != want {
			t.Errorf("start %d: clean is %v", i+1, last.clean)
		}
	}
}

func TestMarkThatCannotBeReadIsNoMark(t *testing.T) {
	for _, s := range []string{"", "{", `{"version":2}`, `{"version":1,"unverified":["nonumber"]}`, `{"version":1,"unverified":["a-x"]}`} {
		if last := parseMark([]byte(s)); last.clean {
			t.Errorf("%q counts as a clean stop", s)
		}
	}
}
