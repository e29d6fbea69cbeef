package cleaner

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// rot damages the header of the first batch of a segment, while nobody has it open.
func (k *kit) rot(name, segment string) {
	k.Helper()
	f, err := k.fs.OpenFile(filepath.Join(k.dir, name, segment), os.O_RDWR, 0)
	k.must(err)
	_, err = f.WriteAt([]byte{9}, 16) // its magic
	k.must(errors.Join(err, f.Close()))
}

// ST-14, ST-63: a segment that can't be walked stops the compaction of its partition alone, with all of it where it was, and that is told
// once and not every second. Retention goes on there, too, and once it has deleted the segment so does compaction.
func TestRotStopsTheCompactionOfOnePartitionAlone(t *testing.T) {
	inBubble(t, func(k *kit) {
		spec := []string{"cleanup.policy", "compact,delete", "min.compaction.lag.ms", "5000"}
		bad, good := k.create("bad", 1, spec...), k.create("good", 1, spec...)
		for _, made := range []*topic.Topic{bad, good} {
			k.put(made, "x", "y", "x", "y", "end")
		}
		k.stop()
		const segment = "00000000000000000001.log"
		k.rot("bad-0", segment)
		content := func() string {
			b, err := vfs.ReadFile(k.fs, filepath.Join(k.dir, "bad-0", segment))
			k.must(err)
			return string(b)
		}
		before := content()
		k.start()
		open := func(name string) *topic.Topic {
			made, _ := k.topics.Lookup(name)
			_, err := made.Log(0)
			k.must(err)
			return made
		}
		bad, good = open("bad"), open("good")
		pass(time.Minute)
		k.want(good, 2, 3, 4)
		if n := k.segments("bad", 0); n != 5 || content() != before {
			t.Errorf("the partition has %d segments, and what was in the one has changed: %v", n, content() != before)
		}
		if _, err := k.cleaner.CompactTopic(context.Background(), bad); !errors.Is(err, kerr.CorruptMessage) {
			t.Error("on demand:", err)
		}
		told := 0
		for line := range strings.Lines(k.log.String()) {
			if strings.Contains(line, "compacted no more") && strings.Contains(line, "partition=bad-0") && strings.Contains(line, segment) && strings.Contains(line, "position 0") {
				told++
			}
		}
		if told != 1 || strings.Contains(k.log.String(), "could not be compacted") || strings.Contains(k.log.String(), "tried again") {
			t.Errorf("told %d times in\n%s", told, &k.log)
		}
		k.put(good, "x", "end")
		k.alter("bad", "retention.bytes", "250") // three segments
		pass(time.Minute)
		k.want(good, 3, 4, 5, 6)
		k.alter("bad", "retention.bytes", "")
		k.put(bad, "x", "end")
		pass(time.Minute)
		k.want(bad, 3, 4, 5, 6)
		k.stop()
	})
}
