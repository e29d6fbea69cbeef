package scenario

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

// What the log cleaner leaves of the same records (ST-40 to ST-48): which, at which offsets, in which batches.
var (
	_ = judge.RegisterOwn("compaction-keys", cleaning, compactionKeys)
	_ = judge.RegisterOwn("compaction-tombstones", cleaning, compactionTombstones)
	_ = judge.RegisterOwn("compaction-codecs", cleaning, compactionCodecs)
	_ = judge.RegisterOwn("compaction-append-time", cleaning, compactionAppendTime)
	_ = judge.RegisterOwn("compaction-lag", cleaning, compactionLag)
)

// compactionKeys has keys in one batch, in one segment and over segments; segments and batches of which nothing stays; a first segment of which
// nothing stays; and an active segment that supersedes what is sealed.
func compactionKeys(e *judge.Env) {
	l := newCompactedLog(e, "t", judge.Base)
	withHeaders := judge.KeyValue("h", "1")
	withHeaders.Headers = []kmsg.Header{{Key: "k", Value: []byte("v")}, {Key: "", Value: nil}}
	l.segment(keyed("a", "1", "b", "1", "c", "1"), keyed("a", "2"), keyed("", "1"), judge.NewBatch(withHeaders, judge.KeyValue("a", "2b")))
	l.segment(keyed("a", "3", "b", "2"), keyed("x", "1", "x", "2", "x", "3"))
	l.segment(keyed("c", "2"), keyed("e", "1", "f", "1", "e", "2"), keyed("a", "4"))
	l.segment(keyed("z", "1"), keyed("z", "2", "z", "2b"))
	l.segment(keyed("z", "3", "b", "3"), keyed("", "2"))
	l.segment(keyed("c", "9"), keyed("q", "1", "q", "2"))
	l.look("before")
	l.compact("once")
	for _, offset := range []int64{0, 5, 10, 17, 19, 24} {
		l.consume(fmt.Sprintf("a consumer from %d", offset), offset, l.end-1)
	}
	l.versions("once", 0)
	l.versions("once", 5)
	l.segment(keyed("n", "1"))
	l.compact("the segment that was active")
	l.segment(keyed("", "3", "h", "2", "f", "2"), keyed("a", "5", "b", "4", "c", "10"))
	l.segment(keyed("n", "2"))
	l.compact("nothing of the first is left")
	produced(e, l.topic, 0, keyed("m", "1").At(l.time))
	l.end++
	l.look("and goes on")
}

// compactionTombstones looks at them before and after their horizon, which the first pass sets.
func compactionTombstones(e *judge.Env) {
	headers := tombstone("b")
	headers.Headers = []kmsg.Header{{Key: "k", Value: []byte("v")}}
	for _, x := range []struct {
		label   string
		configs []string
	}{{"day", nil}, {"now", []string{"delete.retention.ms", "0"}}, {"later", []string{"delete.retention.ms", "7200000"}}} {
		l := newCompactedLog(e, x.label, judge.Base, x.configs...)
		l.segment(keyed("a", "1", "b", "1"), keyed("c", "1"))
		l.segment(judge.NewBatch(tombstone("a")), judge.NewBatch(headers), judge.NewBatch(judge.KeyValue("c", "2"), tombstone("d")))
		l.segment(judge.NewBatch(judge.KeyValue("e", "1"), tombstone("e"), judge.KeyValue("f", "1")), judge.NewBatch(tombstone("")))
		l.segment(keyed("g", "1"))
		l.compact(x.label + ": once")
		if x.label == "later" {
			e.Configure(l.topic.Name, "delete.retention.ms", "0")
		}
		l.segment(judge.NewBatch(judge.KeyValue("b", "2"), tombstone("g"), tombstone("h")))
		l.segment(keyed("i", "1"))
		l.compact(x.label + ": twice")
		l.segment(keyed("i", "2"), judge.NewBatch(tombstone("f")))
		l.segment(keyed("j", "1"))
		l.compact(x.label + ": three times")
		l.segment(keyed("j", "2"))
		l.compact(x.label + ": four times")
	}
}

// compactionCodecs has batches of every codec, on topics of every compression.type, of which all, some, and tombstones stay.
func compactionCodecs(e *judge.Env) {
	for _, compression := range []string{"producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"} {
		l := newCompactedLog(e, compression, judge.Base, "compression.type", compression)
		text := strings.Repeat("as long as it takes to be shorter ", 20)
		for codec := range int16(5) {
			k := func(word string) string { return numbered(word, int(codec)) }
			l.segment(
				keyed(k("a"), text+"1", k("b"), "1", k("a"), "2").Codec(codec), keyed(k("c"), text, k("d"), text).Codec(codec), keyed(k("e"), "1").Codec(codec),
				judge.NewBatch(tombstone(k("t")), judge.KeyValue(k("f"), text)).Codec(codec))
		}
		l.segment(keyed("e0", "2", "e1", "2", "e2", "2", "e3", "2", "e4", "2"))
		l.segment(keyed("n", "1"))
		e.Compact(l.topic, l.active())
		l.batches(compression + ": batches")
	}
}

// compactionAppendTime has batches whose time is the broker's.
func compactionAppendTime(e *judge.Env) {
	for _, codec := range []int16{0, 4} {
		l := newCompactedLog(e, numbered("codec", int(codec)), e.Now(0), "message.timestamp.type", "LogAppendTime", "compression.type", "producer")
		l.segment(keyed("a", "1", "b", "1").Codec(codec), judge.NewBatch(judge.KeyValue("c", "1"), tombstone("d")).Codec(codec), keyed("e", "1").Codec(codec))
		e.Configure(l.topic.Name, "segment.ms", "1")
		last := e.Now(0)
		e.Await("the next millisecond but one", func() bool { return e.Now(0) > last+2 })
		l.segment(keyed("a", "2", "f", "1").Codec(codec))
		e.Configure(l.topic.Name, "segment.ms", "3600000")
		stage := fmt.Sprintf("codec %d", codec)
		e.Compact(l.topic, l.active())
		l.batches(stage + ": batches")
		l.c.Do(stage+": an hour ago", 8, listOffsets(l.topic, e.Now(-1)))
		l.c.Do(stage+": in an hour", 8, listOffsets(l.topic, e.Now(1)))
	}
}

// compactionLag has segments that are too young for min.compaction.lag.ms.
func compactionLag(e *judge.Env) {
	l := newCompactedLog(e, "t", e.Now(-12), "min.compaction.lag.ms", "18000000")
	for n := range 6 { // 12 to 2 hours ago
		l.segment(keyed("a", fmt.Sprint(n)), keyed(numbered("k", n), "1"), judge.NewBatch(tombstone(numbered("k", n-1))))
	}
	e.Compact(l.topic, l.segments[4])
	l.look("those of before five hours ago")
	e.Configure(l.topic.Name, "min.compaction.lag.ms", "0")
	l.compact("all")
}
