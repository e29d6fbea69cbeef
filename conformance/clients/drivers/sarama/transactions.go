package main

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

// transactions are the transactional producers of this process.
type transactions struct {
	producers map[string]sarama.SyncProducer
	hanging   map[string]bool
}

func (t *transactions) run(_ context.Context, addr string, c wire.Command) error {
	producer, err := t.producer(addr, c)
	if err != nil {
		return err
	}
	if !t.hanging[c.TransactionalID] {
		if err := producer.BeginTxn(); err != nil {
			return err
		}
	}
	t.hanging[c.TransactionalID] = c.End == "hang"
	var messages []*sarama.ProducerMessage
	for _, r := range c.Records() {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: c.Topic, Partition: int32(r.Partition), Key: sarama.StringEncoder(r.Key), Value: sarama.StringEncoder(r.Value),
			Headers: []sarama.RecordHeader{{Key: []byte("h"), Value: []byte(r.Header)}},
		})
	}
	if len(messages) > 0 {
		if err := producer.SendMessages(messages); err != nil {
			return err
		}
	}
	if c.Group != "" {
		offsets, err := c.PartitionOffsets()
		if err != nil {
			return err
		}
		var all []*sarama.PartitionOffsetMetadata
		for p, offset := range offsets {
			all = append(all, &sarama.PartitionOffsetMetadata{Partition: p, Offset: offset})
		}
		if err := producer.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{c.Topic: all}, c.Group); err != nil {
			return err
		}
	}
	switch c.End {
	case "commit":
		return producer.CommitTxn()
	case "abort":
		return producer.AbortTxn()
	}
	return nil
}

func (t *transactions) producer(addr string, c wire.Command) (sarama.SyncProducer, error) {
	if producer := t.producers[c.TransactionalID]; producer != nil {
		return producer, nil
	}
	if t.producers == nil {
		t.producers, t.hanging = map[string]sarama.SyncProducer{}, map[string]bool{}
	}
	conf := config()
	conf.Producer.RequiredAcks = sarama.WaitForAll
	conf.Producer.Idempotent = true
	conf.Producer.Transaction.ID = c.TransactionalID
	if c.TimeoutMillis > 0 {
		conf.Producer.Transaction.Timeout = time.Duration(c.TimeoutMillis) * time.Millisecond
	}
	conf.Producer.Partitioner = sarama.NewManualPartitioner
	conf.Producer.Return.Successes = true
	conf.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer([]string{addr}, conf)
	if err != nil {
		return nil, errors.Join(errors.New("new producer"), err)
	}
	t.producers[c.TransactionalID] = producer
	return producer, nil
}
