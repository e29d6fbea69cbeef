// The driver of confluent-kafka-go, with the librdkafka that it brings (../../PROTOCOL.md).
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

func main() {
	d := &driver{}
	_, librdkafka := kafka.LibraryVersion()
	wire.Main(wire.Driver{
		Client: "confluent-kafka-go", Version: fmt.Sprintf("%s (librdkafka %s)", wire.ModuleVersion("github.com/confluentinc/confluent-kafka-go/v2"), librdkafka), Language: "Go",
		Codecs:   []string{"none", "gzip", "snappy", "lz4", "zstd"},
		Features: []string{"admin", "idempotent", "range", "cooperative", "commit", "headers", "static", "transactions"},
		Create:   create, Produce: produce, Join: d.join, Commit: d.commit, Leave: d.leave, Txn: (&transactions{}).run,
	})
}

func create(ctx context.Context, addr string, c wire.Command) error {
	admin, err := kafka.NewAdminClient(&kafka.ConfigMap{"bootstrap.servers": addr})
	if err != nil {
		return err
	}
	defer admin.Close()
	results, err := admin.CreateTopics(ctx, []kafka.TopicSpecification{{Topic: c.Topic, NumPartitions: c.Partitions, ReplicationFactor: 1}})
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Error.Code() != kafka.ErrNoError {
			return r.Error
		}
	}
	return nil
}

func produce(_ context.Context, addr string, c wire.Command) ([][3]int64, error) {
	producer, err := kafka.NewProducer(&kafka.ConfigMap{
		"bootstrap.servers": addr, "acks": "all", "compression.type": c.Codec, "enable.idempotence": c.Idempotent, "max.in.flight": 1, "go.delivery.reports": true,
	})
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	reports := make(chan kafka.Event, c.Count)
	for _, r := range c.Records() {
		err := producer.Produce(&kafka.Message{
			TopicPartition: kafka.TopicPartition{Topic: &c.Topic, Partition: int32(r.Partition)}, Key: []byte(r.Key), Value: []byte(r.Value),
			Headers: []kafka.Header{{Key: "h", Value: []byte(r.Header)}}, Opaque: r.Number,
		}, reports)
		if err != nil {
			return nil, err
		}
	}
	var acked [][3]int64
	for range c.Count {
		m := (<-reports).(*kafka.Message)
		if m.TopicPartition.Error != nil {
			return nil, m.TopicPartition.Error
		}
		acked = append(acked, [3]int64{int64(m.Opaque.(int)), int64(m.TopicPartition.Partition), int64(m.TopicPartition.Offset)})
	}
	return acked, nil
}

// driver is one group member. Its consumer is polled by one goroutine, which also runs the rebalance callback.
type driver struct {
	consumer *kafka.Consumer
	topic    string
	stop     chan struct{}
	done     sync.WaitGroup
}

func (d *driver) join(_ context.Context, addr string, c wire.Command, m *wire.Member) error {
	strategy := "range"
	if c.Assignor == "cooperative" {
		strategy = "cooperative-sticky"
	}
	config := kafka.ConfigMap{
		"bootstrap.servers": addr, "group.id": c.Group, "partition.assignment.strategy": strategy, "enable.auto.commit": false, "auto.offset.reset": "earliest",
		"session.timeout.ms": 10000, "heartbeat.interval.ms": 500, "max.poll.interval.ms": 10000, "fetch.wait.max.ms": 250, "reconnect.backoff.max.ms": 500,
		"topic.metadata.refresh.interval.ms": 1000,
	}
	if c.Instance != "" {
		config["group.instance.id"] = c.Instance
	}
	if c.Isolation != "" {
		config["isolation.level"] = c.Isolation
	}
	consumer, err := kafka.NewConsumer(&config)
	if err != nil {
		return err
	}
	d.consumer, d.topic, d.stop = consumer, c.Topic, make(chan struct{})
	// The library assigns and unassigns by itself when the callback has returned.
	err = consumer.SubscribeTopics([]string{c.Topic}, func(consumer *kafka.Consumer, event kafka.Event) error {
		switch e := event.(type) {
		case kafka.AssignedPartitions:
			if len(e.Partitions) > 0 {
				m.Assigned(numbers(e.Partitions))
			}
		case kafka.RevokedPartitions:
			if len(e.Partitions) > 0 {
				m.Revoked(numbers(e.Partitions), consumer.AssignmentLost())
			}
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, consumer.Close())
	}
	d.done.Go(func() { d.poll(m) })
	return nil
}

func (d *driver) poll(m *wire.Member) {
	for {
		select {
		case <-d.stop:
			return
		default:
		}
		switch e := d.consumer.Poll(100).(type) {
		case *kafka.Message:
			var header string
			for _, h := range e.Headers {
				if h.Key == "h" {
					header = string(h.Value)
				}
			}
			m.Record(int(e.TopicPartition.Partition), int64(e.TopicPartition.Offset), string(e.Key), string(e.Value), header)
		case kafka.Error:
			m.Error(e)
		}
	}
}

func (d *driver) commit(_ context.Context, m *wire.Member) (map[int]int64, error) {
	positions := m.Positions()
	var offsets []kafka.TopicPartition
	for p, offset := range positions {
		offsets = append(offsets, kafka.TopicPartition{Topic: &d.topic, Partition: int32(p), Offset: kafka.Offset(offset)})
	}
	committed, err := d.consumer.CommitOffsets(offsets)
	for _, p := range committed {
		err = errors.Join(err, p.Error)
	}
	return positions, err
}

// leave revokes through the callback, then leaves the group.
func (d *driver) leave(context.Context, *wire.Member) error {
	close(d.stop)
	d.done.Wait()
	return d.consumer.Close()
}

func numbers(partitions []kafka.TopicPartition) []int {
	n := make([]int, len(partitions))
	for i, p := range partitions {
		n[i] = int(p.Partition)
	}
	return n
}
