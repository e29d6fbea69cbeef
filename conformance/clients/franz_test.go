package clients

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/lines"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// Show 2: franz-go, with its defaults (idempotent, acks=all) and without idempotence (acks=1, acks=0), and its admin client.
func TestFranzGo(t *testing.T) {
	broker := target.Start(t, target.Options{})
	t.Log(broker.Name())
	want := lines.Slice(*someLines)
	compressions := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	for _, codec := range codecs {
		compress := kgo.ProducerBatchCompression(compressions[codec])
		t.Run(codec, func(t *testing.T) { franzRun(t, broker.Addr(), codec, want, compress) })
		t.Run(codec+" acks 1", func(t *testing.T) {
			franzRun(t, broker.Addr(), codec, want, compress, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()), kgo.MaxProduceRequestsInflightPerBroker(1))
		})
	}
	t.Run("acks 0", func(t *testing.T) {
		franzRun(t, broker.Addr(), "snappy", want, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.NoAck()), kgo.MaxProduceRequestsInflightPerBroker(1))
	})
}

func franzRun(t *testing.T, addr, codec string, want [][]byte, producer ...kgo.Opt) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	topic := createTopic(t, addr, topicName("franz", t))
	client, err := kgo.NewClient(append(producer, kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	records := make([]*kgo.Record, len(want))
	for i, line := range want {
		records[i] = &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: line, Key: []byte("key"), Headers: []kgo.RecordHeader{{Key: "n", Value: []byte{byte(i)}}}}
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	franzConsume(ctx, t, addr, topic, want)
	checkCodec(t, addr, topic, codec)
	franzAdmin(ctx, t, kadm.NewClient(client), topic, len(want))
}

// franzConsume reads the whole topic and compares it with what was produced.
func franzConsume(ctx context.Context, t *testing.T, addr, topic string, want [][]byte) {
	t.Helper()
	start := map[int32]kgo.Offset{}
	for p := range int32(partitions) {
		start[p] = kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := lines.NewChecker(want)
	next := make([]int64, partitions)
	for c.Seen() < len(want) {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("after %d records of %d: %v", c.Seen(), len(want), err)
		}
		for r := range fetches.RecordsAll() {
			if r.Offset != next[r.Partition] {
				t.Fatalf("partition %d: offset %d, want %d", r.Partition, r.Offset, next[r.Partition])
			}
			next[r.Partition]++
			if err := c.Add(r.Partition, r.Value); err != nil {
				t.Fatal(err)
			}
		}
	}
	checkDone(t, c, partitions)
}

// checkCodec wants partition 0 to begin with batches that are compressed with codec: a client that silently does not compress proves nothing.
// Single batches may be uncompressed: librdkafka does that where compressing would make a batch longer.
func checkCodec(t *testing.T, addr, topic, codec string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	found := map[string]int{}
	for records := 0; records < 1000; {
		fetches := client.PollRecords(ctx, 1000)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for r := range fetches.RecordsAll() {
			found[codecs[r.Attrs.CompressionType()]]++
			records++
		}
	}
	wanted := found[codec]
	delete(found, codec)
	delete(found, "none")
	if wanted == 0 || len(found) > 0 {
		t.Errorf("%s: want records compressed with %s, got %d, and others %v", topic, codec, wanted, found)
	}
}

func franzAdmin(ctx context.Context, t *testing.T, admin *kadm.Client, topic string, n int) {
	t.Helper()
	_, err := admin.CreateTopic(ctx, partitions, 1, nil, topic)
	if !errors.Is(err, kerr.TopicAlreadyExists) {
		t.Errorf("create again: %v", err)
	}
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err != nil || ends.Error() != nil {
		t.Fatal(err, ends.Error())
	}
	total := 0
	ends.Each(func(o kadm.ListedOffset) { total += int(o.Offset) })
	if total != n {
		t.Errorf("end offsets add up to %d, want %d", total, n)
	}
	first, err := admin.ListOffsetsAfterMilli(ctx, 1, topic)
	if o, _ := first.Lookup(topic, 0); err != nil || o.Err != nil || o.Offset != 0 {
		t.Errorf("the first offset after the epoch: %+v, %v", o, err)
	}
	newest, err := admin.ListMaxTimestampOffsets(ctx, topic)
	if o, _ := newest.Lookup(topic, 0); err != nil || o.Err != nil || o.Timestamp <= 0 {
		t.Errorf("the offset of the greatest timestamp: %+v, %v", o, err)
	}
	configs, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil || len(configs) != 1 || configs[0].Err != nil || len(configs[0].Configs) < 10 {
		t.Errorf("topic configs: %+v, %v", configs, err)
	}
	deleted, err := admin.DeleteTopics(ctx, topic)
	if err != nil || deleted.Error() != nil {
		t.Errorf("delete: %v, %v", err, deleted.Error())
	}
}

// createTopic makes a topic of three partitions.
func createTopic(t *testing.T, addr, topic string) string {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	return topic
}

// topicName makes a legal topic name of the test's.
func topicName(client string, t *testing.T) string {
	name := []byte(fmt.Sprintf("%s-%s", client, t.Name()))
	for i, c := range name {
		if c == '/' || c == '_' {
			name[i] = '-'
		}
	}
	return string(name)
}
