package scenario

import (
	"fmt"
	"strings"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var (
	_ = judge.Register("produce-codecs", produceCodecs)
	_ = judge.Register("produce-gaps", produceGaps)
	_ = judge.Register("produce-recompressed", produceRecompressed)
	_ = judge.Register("produce-decompressed-limit", produceDecompressedLimit)
)

// produceCodecs sends every codec at the versions around where zstd came.
func produceCodecs(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	c := e.Conn()
	for _, version := range []int16{3, 6, 7, 12} {
		for codec := range int16(8) {
			c.Do(fmt.Sprintf("v%d codec %d", version, codec), version, one(1, topic, judge.Values("a", strings.Repeat("b", 100)).Codec(codec)))
		}
	}
	for codec := int16(1); codec < 5; codec++ {
		c.Do(fmt.Sprintf("codec %d, bytes after the records", codec), 10, one(1, topic, judge.Values("a").Codec(codec).With(func(b *judge.Batch) { b.Trailing = []byte{1, 2, 3} })))
		c.Do(fmt.Sprintf("codec %d, a record too few", codec), 10, one(1, topic, judge.Values("a").Codec(codec).With(func(b *judge.Batch) { b.Count, b.LastOffsetDelta = 2, 1 })))
		c.Do(fmt.Sprintf("codec %d, no payload", codec), 10, one(1, topic, judge.Values("a").Codec(codec).With(func(b *judge.Batch) { b.Payload = []byte{} })))
		c.Do(fmt.Sprintf("codec %d, payload cut", codec), 10, one(1, topic, judge.Values(strings.Repeat("abc", 1000)).Codec(codec).With(func(b *judge.Batch) {
			whole := b.Bytes()[61:]
			b.Payload = whole[:len(whole)-3]
		})))
		c.Do(fmt.Sprintf("end after codec %d", codec), 7, listOffsets(topic, -1))
	}
	c.Do("the log", 13, fetch(topic, 0))
}

// produceGaps sends records whose offsets are not consecutive, which the broker numbers anew: Kafka fails to where it need not recompress.
func produceGaps(e *judge.Env) {
	c := e.Conn()
	for _, x := range []struct {
		label   string
		configs []string
	}{{"plain", nil}, {"compacted", []string{"cleanup.policy", "compact"}}, {"gzip", []string{"compression.type", "gzip"}}} {
		for codec := range int16(5) {
			topic := e.CreateTopic(fmt.Sprintf("%s-%d", x.label, codec), 1, x.configs...)
			batch := judge.NewBatch(judge.KeyValue("k1", "a"), judge.KeyValue("k2", "b")).Codec(codec).With(func(b *judge.Batch) { b.Records[1].OffsetDelta = 4 })
			c.Do(fmt.Sprintf("%s, codec %d", x.label, codec), 10, one(1, topic, batch))
			c.Do(fmt.Sprintf("%s, codec %d, the log", x.label, codec), 13, fetch(topic, 0))
		}
	}
}

// produceRecompressed: topics with a codec of their own.
func produceRecompressed(e *judge.Env) {
	c := e.Conn()
	for _, x := range []struct {
		kind   string
		codecs []int16
	}{{"uncompressed", []int16{0, 1, 4}}, {"gzip", []int16{0, 1, 2}}, {"snappy", []int16{0, 2, 3}}, {"lz4", []int16{0, 3, 4}}, {"zstd", []int16{0, 4, 1}}} {
		topic := e.CreateTopic(x.kind, 1, "compression.type", x.kind, "max.message.bytes", "1000")
		for _, codec := range x.codecs {
			c.Do(fmt.Sprintf("%s topic, codec %d", x.kind, codec), 10, one(1, topic, judge.Values("a", "b", "c").Codec(codec).With(func(b *judge.Batch) {
				b.Attributes |= 0x4000
				b.MaxTimestamp = 5
			}).Idempotent(int64(11000+codec), 3, 4)))
		}
		c.Do(x.kind+" topic, too large before", 10, one(1, topic, judge.Values(strings.Repeat("a", 2000))))
		c.Do(x.kind+" topic, too large when uncompressed", 10, one(1, topic, judge.Values(strings.Repeat("a", 2000)).Codec(1)))
		c.Do(x.kind+" topic, log", 13, fetch(topic, 0))
	}
}

// produceDecompressedLimit: a topic that limits the records of compressed batches, on either side of the limit. The record that is not
// compressed is longer than any of them.
func produceDecompressedLimit(e *judge.Env) {
	c := e.Conn()
	topic := e.CreateTopic("t", 1, "max.decompressed.message.bytes", "100")
	for codec := range int16(5) {
		for _, n := range []int{92, 93, 94, 95, 96, 2000} {
			c.Do(fmt.Sprintf("codec %d, value of %d bytes", codec, n), 13, one(1, topic, judge.Values("a", strings.Repeat("b", n)).Codec(codec)))
		}
		c.Do(fmt.Sprintf("codec %d, then a record of a bad time", codec), 13, one(1, topic, judge.Values("a", strings.Repeat("b", 200)).Codec(codec).With(func(b *judge.Batch) {
			b.Records[0].TimestampDelta = 1 << 52
		})))
	}
	c.Do("the end", 7, listOffsets(topic, -1))
}
