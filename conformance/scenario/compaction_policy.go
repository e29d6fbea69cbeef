package scenario

import (
	"fmt"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

// What the log cleaner does as cleanup.policy changes, and beside retention (ST-43, ST-49).
var (
	_ = judge.RegisterOwn("compaction-policy", cleaning, compactionPolicy)
	_ = judge.RegisterOwn("compaction-unkeyed", cleaning, compactionUnkeyed)
	_ = judge.RegisterOwn("compaction-delete", cleaning, compactionDelete)
	_ = judge.RegisterOwn("compaction-delete-records", cleaning, compactionDeleteRecords)
)

// compactionPolicy alters it back and forth.
func compactionPolicy(e *judge.Env) {
	l := newCompactedLog(e, "t", judge.Base, "cleanup.policy", "delete", "retention.ms", "-1")
	l.segment(keyed("a", "1", "b", "1"), keyed("a", "2"))
	l.segment(keyed("a", "3"), keyed("c", "1"))
	l.segment(keyed("n", "1"))
	l.look("delete")
	e.Configure(l.topic.Name, "cleanup.policy", "compact")
	for v := int16(3); v <= 13; v++ {
		l.c.Do(fmt.Sprintf("a record without a key, v%d", v), v, one(-1, l.topic, judge.NewBatch(judge.KeyValue("k", "v"), judge.Value("plain"))))
	}
	l.c.Do("a tombstone without a key", 13, one(-1, l.topic, judge.NewBatch(judge.Record{})))
	l.compact("compact")
	e.Configure(l.topic.Name, "cleanup.policy", "delete")
	l.segment(keyed("b", "2"))
	l.segment(keyed("n", "2"))
	l.look("delete again")
	e.Configure(l.topic.Name, "cleanup.policy", "compact,delete")
	l.c.Do("a record without a key, compact,delete", 13, one(-1, l.topic, judge.Values("plain")))
	l.compact("compact,delete")
	e.Configure(l.topic.Name, "cleanup.policy", "")
	l.segment(keyed("b", "3"))
	l.segment(keyed("n", "3"))
	l.look("neither")
	e.Configure(l.topic.Name, "cleanup.policy", "compact")
	l.compact("compact again")
}

// compactionUnkeyed has records without a key from before the topic was compacted.
func compactionUnkeyed(e *judge.Env) {
	l := newCompactedLog(e, "t", judge.Base, "cleanup.policy", "delete", "retention.ms", "-1")
	l.segment(judge.Values("plain", "plain"), keyed("a", "1", "b", "1"), judge.NewBatch(judge.Value("plain"), judge.KeyValue("a", "2"), judge.Record{}))
	l.segment(keyed("a", "3"), judge.Values("last plain"))
	l.segment(keyed("n", "1"))
	e.Configure(l.topic.Name, "cleanup.policy", "compact")
	e.Compact(l.topic, l.active())
	l.batches("compacted: batches")
}

// compactionDelete has both policies: what is old goes, whatever its key, and what is left is compacted. Kafka makes one segment of small ones
// as it compacts them, which then goes as a whole: retention comes first here.
func compactionDelete(e *judge.Env) {
	l := newCompactedLog(e, "t", e.Now(-12), "cleanup.policy", "compact,delete", "retention.ms", "-1")
	for n := range 6 { // 12 to 2 hours ago
		l.segment(keyed("a", fmt.Sprint(n), "b", fmt.Sprint(n)), keyed(numbered("k", n), "1"), judge.NewBatch(tombstone(numbered("k", n-1))))
	}
	e.Configure(l.topic.Name, "retention.ms", "25200000")
	e.Await("what is older than seven hours to go", func() bool { return offsetNow(e, l.topic, -2) == l.segments[3] })
	l.look("what is old is gone")
	l.compact("compacted")
	l.segment(keyed("b", "9"))
	l.compact("and compacted again")
}

// compactionDeleteRecords has a log that begins within a batch, and within what was compacted.
func compactionDeleteRecords(e *judge.Env) {
	l := newCompactedLog(e, "t", e.Now(-10), "cleanup.policy", "compact,delete", "retention.ms", "-1")
	l.segment(keyed("a", "1", "b", "1", "c", "1"), keyed("a", "2"))
	l.segment(keyed("b", "2", "c", "2", "d", "2", "e", "2"), keyed("a", "3"))
	l.segment(keyed("n", "1"))
	l.c.Do("to 1", 2, drop(dropTopic(l.topic.Name, upTo(0, 1))))
	l.compact("from 1")
	l.c.Do("to 6", 2, drop(dropTopic(l.topic.Name, upTo(0, 6))))
	e.Await("the first segment to go", func() bool { return offsetNow(e, l.topic, -2) == 6 })
	l.look("from 6")
	l.segment(keyed("c", "4", "e", "4"))
	l.segment(keyed("n", "2"))
	l.compact("from 6, compacted")
	l.c.Do("to 9", 2, drop(dropTopic(l.topic.Name, upTo(0, 9))))
	l.look("from 9")
}
