package clients

import (
	"errors"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/dozekafka/doze-kafka/conformance/lines"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// Show 2: Sarama at the newest protocol it speaks, and at its default version; idempotent and plain; consumer of partitions; cluster admin.
func TestSarama(t *testing.T) {
	broker := target.Start(t, target.Options{})
	t.Logf("%s; protocol versions of %s and %s", broker.Name(), sarama.MaxVersion, sarama.DefaultVersion)
	want := lines.Slice(*someLines)
	compressions := map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}
	for _, codec := range codecs {
		t.Run(codec+" idempotent", func(t *testing.T) {
			saramaRun(t, broker.Addr(), want, saramaConfig(sarama.MaxVersion, compressions[codec], true))
		})
		t.Run(codec+" default version", func(t *testing.T) {
			saramaRun(t, broker.Addr(), want, saramaConfig(sarama.DefaultVersion, compressions[codec], false))
		})
	}
}

func saramaConfig(version sarama.KafkaVersion, codec sarama.CompressionCodec, idempotent bool) *sarama.Config {
	c := sarama.NewConfig()
	c.Version = version
	c.Producer.Compression = codec
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Idempotent = idempotent
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Return.Successes = true
	c.Producer.Flush.Frequency = 5 * time.Millisecond
	c.Net.MaxOpenRequests = 1 // what Sarama asks for with idempotence, and what keeps order without
	c.Consumer.Return.Errors = true
	return c
}

func saramaRun(t *testing.T, addr string, want [][]byte, config *sarama.Config) {
	topic := topicName("sarama", t)
	admin, err := sarama.NewClusterAdmin([]string{addr}, config)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	detail := &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}
	if err := admin.CreateTopic(topic, detail, false); err != nil {
		t.Fatal(err)
	}
	if err := admin.CreateTopic(topic, detail, false); !errors.Is(err, sarama.ErrTopicAlreadyExists) {
		t.Errorf("create again: %v", err)
	}
	saramaProduce(t, addr, topic, want, config)
	saramaConsume(t, addr, topic, want, config)
	checkCodec(t, addr, topic, codecs[config.Producer.Compression])
	topics, err := admin.DescribeTopics([]string{topic})
	if err != nil || len(topics) != 1 || len(topics[0].Partitions) != partitions {
		t.Errorf("describe: %+v, %v", topics, err)
	}
	configs, err := admin.DescribeConfigs([]*sarama.ConfigResource{{Type: sarama.TopicResource, Name: topic}}, sarama.DescribeConfigsOptions{})
	if err != nil || len(configs) != 1 || len(configs[0].Configs) < 10 {
		t.Errorf("describe configs: %+v, %v", configs, err)
	}
	if err := admin.DeleteTopic(topic); err != nil {
		t.Errorf("delete: %v", err)
	}
}

func saramaProduce(t *testing.T, addr, topic string, want [][]byte, config *sarama.Config) {
	t.Helper()
	producer, err := sarama.NewSyncProducer([]string{addr}, config)
	if err != nil {
		t.Fatal(err)
	}
	messages := make([]*sarama.ProducerMessage, len(want))
	for i, line := range want {
		messages[i] = &sarama.ProducerMessage{Topic: topic, Partition: int32(i % partitions), Value: sarama.ByteEncoder(line)}
	}
	if err := producer.SendMessages(messages); err != nil {
		t.Fatal(err)
	}
	if err := producer.Close(); err != nil {
		t.Fatal(err)
	}
}

func saramaConsume(t *testing.T, addr, topic string, want [][]byte, config *sarama.Config) {
	t.Helper()
	consumer, err := sarama.NewConsumer([]string{addr}, config)
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	c := lines.NewChecker(want)
	for p := range int32(partitions) {
		part, err := consumer.ConsumePartition(topic, p, sarama.OffsetOldest)
		if err != nil {
			t.Fatal(err)
		}
		deadline := time.NewTimer(time.Minute)
		for offset := range int64((len(want) - int(p) + partitions - 1) / partitions) {
			select {
			case m := <-part.Messages():
				if m.Offset != offset {
					t.Fatalf("partition %d: offset %d, want %d", p, m.Offset, offset)
				}
				if err := c.Add(p, m.Value); err != nil {
					t.Fatal(err)
				}
			case err := <-part.Errors():
				t.Fatal(err)
			case <-deadline.C:
				t.Fatalf("partition %d: nothing after offset %d within a minute", p, offset)
			}
		}
		deadline.Stop()
		if err := part.Close(); err != nil {
			t.Error(err)
		}
	}
	checkDone(t, c, partitions)
}
