package scenario

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("produce-rejections", produceRejections)
	_ = judge.Register("produce-rejections-pairs", produceRejectionsPairs)
	_ = judge.Register("produce-records", produceRecords)
)

// A fault is one thing that is wrong with a batch.
type fault struct {
	name  string
	apply func(*judge.Batch)
}

// faults are in the order in which they are numbered below; in which Kafka finds them is what the pairs show.
func faults(e *judge.Env) []fault {
	return []fault{
		{"base offset 1", func(b *judge.Batch) { b.BaseOffset = 1 }},
		{"larger than max.message.bytes", func(b *judge.Batch) { b.Records[0].Value = []byte(strings.Repeat("x", 3000)) }},
		{"wrong checksum", func(b *judge.Batch) { b.CRCXor = 0x80 }},
		{"length one too small", func(b *judge.Batch) { b.LengthDelta = -1 }},
		{"count of records 0", func(b *judge.Batch) { b.Count = 0 }},
		{"count of records one too many", func(b *judge.Batch) { b.Count++ }},
		{"last offset delta -1", func(b *judge.Batch) { b.LastOffsetDelta = -1 }},
		{"last offset delta one too many", func(b *judge.Batch) { b.LastOffsetDelta++ }},
		{"count and last offset delta one too many", func(b *judge.Batch) { b.Count++; b.LastOffsetDelta++ }},
		{"count and last offset delta one too few", func(b *judge.Batch) { b.Count--; b.LastOffsetDelta-- }},
		{"control batch", func(b *judge.Batch) { b.Attributes |= 0x20 }},
		{"producer id without sequence", func(b *judge.Batch) { b.Idempotent(4711, 0, -1) }},
		{"sequence of an unknown epoch", func(b *judge.Batch) { b.Idempotent(4712, -1, 0) }},
		{"LogAppendTime", func(b *judge.Batch) { b.Attributes |= 0x08 }},
		{"two hours in the future", func(b *judge.Batch) { b.At(e.Now(2)) }},
		{"offset deltas that are not consecutive", func(b *judge.Batch) { b.Records[1].OffsetDelta = 5 }},
		{"record shorter than it says", func(b *judge.Batch) { b.Records[1].LengthDelta = 1 }},
		{"record longer than it says", func(b *judge.Batch) { b.Records[1].LengthDelta = -1 }},
		{"bytes after the records", func(b *judge.Batch) { b.Trailing = []byte{0} }},
		{"bytes after the header count", func(b *judge.Batch) { b.Records[1].Trailing = []byte{1} }},
		{"header that is not there", func(b *judge.Batch) { b.Records[0].Count = 1 }},
		{"negative count of headers", func(b *judge.Batch) { b.Records[0].Count = -1 }},
		{"record attributes", func(b *judge.Batch) { b.Records[0].Attributes = 1 }},
		{"codec 5", func(b *judge.Batch) { b.Codec(5) }},
		{"codec 7", func(b *judge.Batch) { b.Codec(7) }},
		{"gzip that is none", func(b *judge.Batch) { b.Codec(1).Payload = []byte("this is no gzip") }},
		{"snappy that is none", func(b *judge.Batch) { b.Codec(2).Payload = []byte("this is no snappy") }},
		{"lz4 that is none", func(b *judge.Batch) { b.Codec(3).Payload = []byte("this is no lz4") }},
		{"zstd that is none", func(b *judge.Batch) { b.Codec(4).Payload = []byte("this is no zstd") }},
		{"no payload", func(b *judge.Batch) { b.Payload = []byte{} }},
		{"delete horizon", func(b *judge.Batch) { b.Attributes |= 0x40 }},
		{"unused attributes", func(b *judge.Batch) { b.Attributes |= 0x4000 }},
		{"leader epoch 7", func(b *judge.Batch) { b.LeaderEpoch = 7 }},
		{"maximum timestamp that is wrong", func(b *judge.Batch) { b.MaxTimestamp = 1 }},
		{"timestamp -1", func(b *judge.Batch) { b.At(-1); b.Records[1].TimestampDelta = 0 }},
		{"timestamp -2", func(b *judge.Batch) { b.At(-2); b.Records[1].TimestampDelta = 0 }},
	}
}

func twoRecords() *judge.Batch {
	return judge.NewBatch(judge.KeyValue("k1", "v1"), judge.KeyValue("k2", "v2"))
}

// produceRejections sends batches that are wrong in one thing, and shows the end of the log after each.
func produceRejections(e *judge.Env) {
	for _, version := range []int16{7, 10} {
		topic := e.CreateTopic(fmt.Sprintf("v%d", version), 1, "max.message.bytes", "2000", "cleanup.policy", "compact")
		c := e.Conn()
		try := func(name string, records []byte, opts ...judge.Option) {
			c.Do(fmt.Sprintf("v%d %s", version, name), version, produce(-1, part{topic, 0, records}), opts...)
			c.Do(fmt.Sprintf("v%d end after %s", version, name), 7, listOffsets(topic, -1))
		}
		try("right", twoRecords().Bytes())
		for _, f := range faults(e) {
			try(f.name, twoRecords().With(f.apply).Bytes())
		}
		right := twoRecords().Bytes()
		try("without a key on a compacted topic", judge.Values("a", "b").Bytes())
		try("one without a key on a compacted topic", judge.NewBatch(judge.KeyValue("k", "v"), judge.Value("v")).Bytes())
		try("empty key on a compacted topic", judge.NewBatch(judge.KeyValue("", "v")).Bytes())
		try("two batches", append(twoRecords().Bytes(), right...))
		try("two batches, the second wrong", append(twoRecords().Bytes(), twoRecords().With(func(b *judge.Batch) { b.CRCXor = 1 }).Bytes()...))
		try("a batch and a byte", append(twoRecords().Bytes(), 0))
		try("a batch and half a batch", append(twoRecords().Bytes(), right[:40]...))
		try("empty records", []byte{})
		try("null records", nil, judge.MayHang())
		for _, n := range []int{1, 11, 12, 16, 17, 40, 60, 61, len(right) - 1} {
			try(fmt.Sprintf("batch cut to %d bytes", n), right[:n:n])
		}
		for _, length := range []int32{-1, 0, 13, 14, 48, 49, 50} {
			try(fmt.Sprintf("length %d", length), twoRecords().With(func(b *judge.Batch) { b.LengthDelta = length - int32(len(right)) + 12 }).Bytes())
		}
		for _, magic := range []int8{-1, 0, 1, 3, 127} {
			try(fmt.Sprintf("magic %d in a batch", magic), twoRecords().With(func(b *judge.Batch) { b.Magic = magic }).Bytes())
		}
		try("message of magic 0", judge.MessageSet(0, "old"))
		try("message of magic 1", judge.MessageSet(1, "old"))
		try("transactional without a transactional id", twoRecords().With(func(b *judge.Batch) { b.Attributes |= 0x10 }).Bytes())
		try("transactional with a producer, without a transactional id", twoRecords().Idempotent(5000, 0, 0).With(func(b *judge.Batch) { b.Attributes |= 0x10 }).Bytes())
		try("control and transactional", twoRecords().Idempotent(5000, 0, 0).With(func(b *judge.Batch) { b.Attributes |= 0x30 }).Bytes())
		c.Do(fmt.Sprintf("v%d the log at the end", version), 13, fetch(topic, 0))
	}
}

// produceRejectionsPairs sends batches that are wrong in two things: the answer shows which Kafka looks at first.
func produceRejectionsPairs(e *judge.Env) {
	topic := e.CreateTopic("t", 1, "max.message.bytes", "2000", "cleanup.policy", "compact")
	c := e.Conn()
	c.Do("right", 10, one(1, topic, twoRecords()))
	var chosen []fault
	for _, f := range faults(e) {
		switch f.name {
		case "base offset 1", "larger than max.message.bytes", "wrong checksum", "count of records one too many", "last offset delta -1", "control batch",
			"producer id without sequence", "two hours in the future", "record shorter than it says", "bytes after the records", "LogAppendTime":
			chosen = append(chosen, f)
		}
	}
	chosen = append(chosen,
		fault{"without a key", func(b *judge.Batch) { b.Records[0].Key = nil }},
		fault{"sequence gap", func(b *judge.Batch) { b.Idempotent(6000, 0, 7) }})
	c.Do("right, of a producer", 10, one(1, topic, twoRecords().Idempotent(6000, 0, 0)))
	for i, f := range chosen {
		for _, g := range chosen[i+1:] {
			batch := twoRecords()
			g.apply(batch)
			f.apply(batch)
			c.Do(fmt.Sprintf("%s, and %s", f.name, g.name), 10, one(1, topic, batch))
		}
		c.Do("end after "+f.name, 7, listOffsets(topic, -1))
	}
}

// produceRecords sends records that are unusual and right, and reads them back.
func produceRecords(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	c := e.Conn()
	many := make([]judge.Record, 100)
	for i := range many {
		many[i] = judge.KeyValue(fmt.Sprint("k", i), strings.Repeat("v", i))
	}
	for _, x := range []struct {
		name  string
		batch *judge.Batch
	}{
		{"null value", judge.NewBatch(judge.Record{Key: []byte("k")})},
		{"null key and value", judge.NewBatch(judge.Record{})},
		{"empty key and value", judge.NewBatch(judge.KeyValue("", ""))},
		{"headers", judge.NewBatch(judge.Record{Value: []byte("v"), Headers: []kmsg.Header{{Key: "h", Value: []byte("1")}, {Key: "h", Value: []byte{}}, {Key: ""}}})},
		{"a hundred records", judge.NewBatch(many...)},
		{"timestamps that go back", judge.NewBatch(judge.Value("a"), judge.Value("b")).With(func(b *judge.Batch) { b.Records[1].TimestampDelta = -1000 })},
		{"timestamp 0", judge.Values("a").At(0)},
		{"producer epoch without a producer", judge.Values("a").With(func(b *judge.Batch) { b.ProducerEpoch, b.BaseSequence = 3, 4 })},
		{"producer id -2", judge.Values("a").With(func(b *judge.Batch) { b.ProducerID = -2 })},
	} {
		c.Do(x.name, 10, one(-1, topic, x.batch))
	}
	c.Do("the log", 13, fetch(topic, 0))
}
