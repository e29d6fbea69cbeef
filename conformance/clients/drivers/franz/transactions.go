package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

// transactions are the transactional producers of this process.
type transactions struct {
	clients map[string]*kgo.Client
	hanging map[string]bool
}

func (t *transactions) run(ctx context.Context, addr string, c wire.Command) error {
	client, err := t.client(addr, c)
	if err != nil {
		return err
	}
	if !t.hanging[c.TransactionalID] {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
	}
	t.hanging[c.TransactionalID] = c.End == "hang"
	var records []*kgo.Record
	for _, r := range c.Records() {
		records = append(records, &kgo.Record{
			Topic: c.Topic, Partition: int32(r.Partition), Key: []byte(r.Key), Value: []byte(r.Value), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte(r.Header)}},
		})
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	if c.Group != "" {
		if err := stage(ctx, client, c); err != nil {
			return err
		}
	}
	// franz-go 1.22.3 sends the first records for a topic before it has stored the topic's partitions, and a transaction that is ended in
	// between counts as one without records: nothing is sent, and no error comes. This waits until its update of metadata is done.
	client.PurgeTopicsFromProducing("no topic")
	switch c.End {
	case "commit":
		return client.EndTransaction(ctx, kgo.TryCommit)
	case "abort":
		return client.EndTransaction(ctx, kgo.TryAbort)
	}
	return nil
}

func (t *transactions) client(addr string, c wire.Command) (*kgo.Client, error) {
	if client := t.clients[c.TransactionalID]; client != nil {
		return client, nil
	}
	if t.clients == nil {
		t.clients, t.hanging = map[string]*kgo.Client{}, map[string]bool{}
	}
	opts := []kgo.Opt{kgo.SeedBrokers(addr), kgo.TransactionalID(c.TransactionalID), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	if c.TimeoutMillis > 0 {
		opts = append(opts, kgo.TransactionTimeout(time.Duration(c.TimeoutMillis)*time.Millisecond))
	}
	client, err := kgo.NewClient(opts...)
	if err == nil {
		t.clients[c.TransactionalID] = client
	}
	return client, err
}

// stage sends offsets to the transaction. The library does it by itself for what a group member has consumed (GroupTransactSession); for other
// offsets it has the requests.
func stage(ctx context.Context, client *kgo.Client, c wire.Command) error {
	id, epoch, err := client.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = c.TransactionalID, id, epoch, c.Group
	added, err := add.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	offsets, err := c.PartitionOffsets()
	if err := errors.Join(err, kerr.ErrorForCode(added.ErrorCode)); err != nil {
		return err
	}
	topics, err := kadm.NewClient(client).ListTopics(ctx, c.Topic)
	if err != nil {
		return err
	}
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group, commit.Generation = c.TransactionalID, id, epoch, c.Group, -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = c.Topic, topics[c.Topic].ID // version 6 has ids
	for p, offset := range offsets {
		one := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		one.Partition, one.Offset, one.LeaderEpoch = p, offset, -1
		topic.Partitions = append(topic.Partitions, one)
	}
	commit.Topics = append(commit.Topics, topic)
	committed, err := commit.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, t := range committed.Topics {
		for _, p := range t.Partitions {
			err = errors.Join(err, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	return err
}
