package main

import (
	"context"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

// transactions are the transactional producers of this process.
type transactions struct {
	producers map[string]*kafka.Producer
	hanging   map[string]bool
}

func (t *transactions) run(ctx context.Context, addr string, c wire.Command) error {
	producer, err := t.producer(ctx, addr, c)
	if err != nil {
		return err
	}
	if !t.hanging[c.TransactionalID] {
		if err := producer.BeginTransaction(); err != nil {
			return err
		}
	}
	t.hanging[c.TransactionalID] = c.End == "hang"
	reports := make(chan kafka.Event, c.Count)
	for _, r := range c.Records() {
		err := producer.Produce(&kafka.Message{
			TopicPartition: kafka.TopicPartition{Topic: &c.Topic, Partition: int32(r.Partition)}, Key: []byte(r.Key), Value: []byte(r.Value),
			Headers: []kafka.Header{{Key: "h", Value: []byte(r.Header)}},
		}, reports)
		if err != nil {
			return err
		}
	}
	for range c.Count {
		if m := (<-reports).(*kafka.Message); m.TopicPartition.Error != nil {
			return m.TopicPartition.Error
		}
	}
	if c.Group != "" {
		if err := stage(ctx, producer, c); err != nil {
			return err
		}
	}
	switch c.End {
	case "commit":
		return producer.CommitTransaction(ctx)
	case "abort":
		return producer.AbortTransaction(ctx)
	}
	return nil
}

func stage(ctx context.Context, producer *kafka.Producer, c wire.Command) error {
	offsets, err := c.PartitionOffsets()
	if err != nil {
		return err
	}
	var all []kafka.TopicPartition
	for p, offset := range offsets {
		all = append(all, kafka.TopicPartition{Topic: &c.Topic, Partition: p, Offset: kafka.Offset(offset)})
	}
	group, err := kafka.NewTestConsumerGroupMetadata(c.Group)
	if err != nil {
		return err
	}
	return producer.SendOffsetsToTransaction(ctx, all, group)
}

func (t *transactions) producer(ctx context.Context, addr string, c wire.Command) (*kafka.Producer, error) {
	if producer := t.producers[c.TransactionalID]; producer != nil {
		return producer, nil
	}
	if t.producers == nil {
		t.producers, t.hanging = map[string]*kafka.Producer{}, map[string]bool{}
	}
	config := kafka.ConfigMap{"bootstrap.servers": addr, "transactional.id": c.TransactionalID, "go.delivery.reports": true}
	if c.TimeoutMillis > 0 {
		config["transaction.timeout.ms"] = c.TimeoutMillis
		config["message.timeout.ms"] = c.TimeoutMillis // it may not be larger
	}
	producer, err := kafka.NewProducer(&config)
	if err != nil {
		return nil, err
	}
	if err := producer.InitTransactions(ctx); err != nil {
		producer.Close()
		return nil, err
	}
	t.producers[c.TransactionalID] = producer
	return producer, nil
}
