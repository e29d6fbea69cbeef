package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

// What franz-go's producer makes of the broker's answers, and what its consumer reads then.
var (
	_ = judge.Register("client-produce", clientProduce)
	_ = judge.Register("client-produce-order", clientProduceOrder)
	_ = judge.Register("client-produce-errors", clientProduceErrors)
)

// producing records what ProduceSync says of records, in the order in which they were given to it.
func producing(e *judge.Env, step string, client *kgo.Client, records ...*kgo.Record) {
	var sizes []int
	for _, r := range records {
		sizes = append(sizes, len(r.Value))
	}
	e.Call(step, "kgo.ProduceSync", judge.Args{"Topic": records[0].Topic, "Sizes": sizes}, func(ctx context.Context) (any, error) {
		errs := map[*kgo.Record]error{}
		for _, result := range client.ProduceSync(ctx, records...) {
			errs[result.Record] = result.Err
		}
		var results []judge.ClientRecord
		for _, r := range records {
			results = append(results, e.ClientRecordOf(r, errs[r]))
		}
		return results, nil
	})
}

// compressible is a record that every codec makes smaller, so that the producer keeps it compressed.
func compressible(topic string, partition int32, n int64) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Timestamp: time.UnixMilli(judge.Base + n), Key: fmt.Append(nil, "key", n), Value: []byte(strings.Repeat("value ", 30)),
		Headers: []kgo.RecordHeader{{Key: "n", Value: fmt.Append(nil, n)}, {Key: "null"}}}
}

// codecs are those of franz-go, in the order of their numbers.
var codecs = []struct {
	name string
	kgo.CompressionCodec
}{{"none", kgo.NoCompression()}, {"gzip", kgo.GzipCompression()}, {"snappy", kgo.SnappyCompression()}, {"lz4", kgo.Lz4Compression()}, {"zstd", kgo.ZstdCompression()}}

// clientProduce: every codec, with each kind of acknowledgement, and all of it read.
func clientProduce(e *judge.Env) {
	topic, unacknowledged := e.CreateTopic("t", 2).Name, e.CreateTopic("unacknowledged", int32(len(codecs))).Name
	manual := kgo.RecordPartitioner(kgo.ManualPartitioner())
	plain := func(acks kgo.Acks) []kgo.Opt { return []kgo.Opt{kgo.DisableIdempotentWrite(), kgo.RequiredAcks(acks)} }
	for i, codec := range codecs {
		for _, kind := range []struct {
			name string
			opts []kgo.Opt
		}{{"idempotent", nil}, {"acks all", plain(kgo.AllISRAcks())}, {"acks 1", plain(kgo.LeaderAck())}} {
			client := e.Client(append(kind.opts, manual, kgo.ProducerBatchCompression(codec.CompressionCodec))...)
			for n := range 2 {
				producing(e, fmt.Sprintf("%s, %s: %d", codec.name, kind.name, n+1), client, compressible(topic, 0, 0), compressible(topic, 1, 1), compressible(topic, 0, 2))
			}
		}
		// A partition each: nothing says when one that is not acknowledged is taken up.
		producing(e, codec.name+", acks 0", e.Client(append(plain(kgo.NoAck()), manual, kgo.ProducerBatchCompression(codec.CompressionCodec))...),
			compressible(unacknowledged, int32(i), 3))
		consuming(e, codec.name+", acks 0, read", 1, startAt(unacknowledged, map[int32]kgo.Offset{int32(i): kgo.NewOffset().AtStart()}))
	}
	consuming(e, "all of it", len(codecs)*3*2*3, startAt(topic, map[int32]kgo.Offset{0: kgo.NewOffset().AtStart(), 1: kgo.NewOffset().AtStart()}))

	recompressed := e.CreateTopic("recompressed", 1, "compression.type", "gzip", "message.timestamp.type", "LogAppendTime").Name
	for _, codec := range codecs {
		producing(e, codec.name+" to gzip", e.Client(kgo.ProducerBatchCompression(codec.CompressionCodec)), compressible(recompressed, 0, 0))
	}
	consuming(e, "recompressed", len(codecs), startAt(recompressed, map[int32]kgo.Offset{0: kgo.NewOffset().AtStart()}))

	odd := e.CreateTopic("odd", 1).Name
	producing(e, "null and empty", e.Client(kgo.ProducerBatchCompression(kgo.NoCompression())), &kgo.Record{Topic: odd, Timestamp: time.UnixMilli(judge.Base)},
		&kgo.Record{Topic: odd, Key: []byte{}, Value: []byte{}, Timestamp: time.UnixMilli(judge.Base)}, &kgo.Record{Topic: odd, Value: []byte("now")})
	consuming(e, "null and empty, read", 3, startAt(odd, map[int32]kgo.Offset{0: kgo.NewOffset().AtStart()}))
}

// clientProduceOrder: many batches under way at once, of which each waits for none, are stored once each and in order.
func clientProduceOrder(e *judge.Env) {
	const n = 2000
	for _, codec := range codecs {
		topic := e.CreateTopic(codec.name, 1).Name
		e.Call(codec.name, "kgo.ProduceSync", judge.Args{"Topic": topic, "Records": n}, func(ctx context.Context) (any, error) {
			producer := e.Client(kgo.ProducerBatchCompression(codec.CompressionCodec), kgo.ProducerBatchMaxBytes(1024), kgo.ProducerLinger(0))
			records := make([]*kgo.Record, n)
			for i := range records {
				records[i] = &kgo.Record{Topic: topic, Value: fmt.Append(nil, i)}
			}
			if err := producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
				return nil, err
			}
			consumer := e.Client(startAt(topic, map[int32]kgo.Offset{0: kgo.NewOffset().AtStart()}), kgo.FetchMaxPartitionBytes(4096))
			for next := 0; next < n; {
				fetches := consumer.PollFetches(ctx)
				if err := fetches.Err(); err != nil {
					return next, err
				}
				for r := range fetches.RecordsAll() {
					if r.Offset != int64(next) || string(r.Value) != fmt.Sprint(next) {
						return fmt.Sprintf("record %s at offset %d, and %d is next", r.Value, r.Offset, next), nil
					}
					next++
				}
			}
			return "all in order", nil
		})
	}
}

// value is a record of a value of n bytes.
func value(topic string, n int) *kgo.Record {
	return &kgo.Record{Topic: topic, Timestamp: time.UnixMilli(judge.Base), Value: []byte(strings.Repeat("x", n))}
}

// clientProduceErrors: what the producer is refused, and that it can go on.
func clientProduceErrors(e *judge.Env) {
	plain := func(opts ...kgo.Opt) *kgo.Client { return e.Client(append(opts, kgo.DisableIdempotentWrite())...) }
	kinds := []string{"idempotent", "not idempotent"}
	uncompressed := kgo.ProducerBatchCompression(kgo.NoCompression())
	producing(e, "unknown topic", e.Client(kgo.UnknownTopicRetries(1)), value(e.Name("none"), 1))
	producing(e, "unknown topic, not idempotent", plain(kgo.UnknownTopicRetries(1)), value(e.Name("none"), 1))
	producing(e, "illegal name", e.Client(kgo.UnknownTopicRetries(1)), value("no good", 1))
	producing(e, "unknown topic that is made", e.Client(kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(-1)), value(e.Name("auto"), 1))

	small := e.CreateTopic("small", 1, "max.message.bytes", "500").Name
	for i, client := range []*kgo.Client{e.Client(uncompressed), plain(uncompressed)} {
		name := kinds[i]
		producing(e, name+": too large for the topic", client, value(small, 600))
		producing(e, name+": small enough after it", client, value(small, 100))
		producing(e, name+": too large again", client, value(small, 501))
		producing(e, name+": too large for the client", client, value(small, 2<<20))
	}
	timed := e.CreateTopic("timed", 1, "message.timestamp.before.max.ms", "10800000", "message.timestamp.after.max.ms", "3600000").Name
	for i, client := range []*kgo.Client{e.Client(), plain()} {
		for n, hours := range []int{0, 2, 0, -4, -2} {
			r := value(timed, 10)
			r.Timestamp = time.UnixMilli(e.Now(hours))
			producing(e, fmt.Sprintf("%s: %d, now%+dh", kinds[i], n+1, hours), client, r)
		}
	}
	keyed := e.CreateTopic("keyed", 1, "cleanup.policy", "compact").Name
	client := e.Client()
	producing(e, "no key where one is needed", client, value(keyed, 10))
	producing(e, "a key after it", client, compressible(keyed, 0, 1))
	replicas := e.CreateTopic("replicas", 1, "min.insync.replicas", "2").Name
	producing(e, "too few replicas", plain(kgo.RecordRetries(0)), value(replicas, 10))
	producing(e, "too few replicas, acks 1", plain(kgo.RecordRetries(0), kgo.RequiredAcks(kgo.LeaderAck())), value(replicas, 10))
	for _, x := range []struct {
		topic string
		want  int
	}{{e.Name("auto"), 1}, {small, 2}, {timed, 6}, {keyed, 1}, {replicas, 1}} {
		consuming(e, "what is in "+x.topic, x.want, startAt(x.topic, map[int32]kgo.Offset{0: kgo.NewOffset().AtStart()}))
	}
}
