// The driver of Sarama (../../PROTOCOL.md).
package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

func main() {
	d := &driver{}
	wire.Main(wire.Driver{
		Client: "Sarama", Version: wire.ModuleVersion("github.com/IBM/sarama"), Language: "Go",
		Codecs:   []string{"none", "gzip", "snappy", "lz4", "zstd"},
		Features: []string{"admin", "idempotent", "range", "cooperative", "commit", "headers", "static", "transactions"},
		Create:   create, Produce: produce, Join: d.join, Commit: d.commit, Leave: d.leave, Txn: (&transactions{}).run,
	})
}

var compressions = map[string]sarama.CompressionCodec{
	"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

// config speaks the newest protocol that Sarama knows.
func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	c.Metadata.RefreshFrequency = 500 * time.Millisecond
	c.Metadata.Retry.Max = 20
	return c
}

func create(_ context.Context, addr string, c wire.Command) error {
	admin, err := sarama.NewClusterAdmin([]string{addr}, config())
	if err != nil {
		return err
	}
	return errors.Join(admin.CreateTopic(c.Topic, &sarama.TopicDetail{NumPartitions: int32(c.Partitions), ReplicationFactor: 1}, false), admin.Close())
}

func produce(_ context.Context, addr string, c wire.Command) ([][3]int64, error) {
	conf := config()
	conf.Producer.Compression = compressions[c.Codec]
	conf.Producer.RequiredAcks = sarama.WaitForAll
	conf.Producer.Idempotent = c.Idempotent
	conf.Producer.Partitioner = sarama.NewManualPartitioner
	conf.Producer.Return.Successes = true
	conf.Producer.Flush.Frequency = 5 * time.Millisecond
	conf.Net.MaxOpenRequests = 1 // what Sarama asks for with idempotence, and what keeps order without
	producer, err := sarama.NewSyncProducer([]string{addr}, conf)
	if err != nil {
		return nil, err
	}
	var messages []*sarama.ProducerMessage
	for _, r := range c.Records() {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: c.Topic, Partition: int32(r.Partition), Key: sarama.StringEncoder(r.Key), Value: sarama.StringEncoder(r.Value),
			Headers: []sarama.RecordHeader{{Key: []byte("h"), Value: []byte(r.Header)}},
		})
	}
	if err := errors.Join(producer.SendMessages(messages), producer.Close()); err != nil {
		return nil, err
	}
	acked := make([][3]int64, len(messages))
	for i, m := range messages {
		acked[i] = [3]int64{int64(c.From + i), int64(m.Partition), m.Offset}
	}
	return acked, nil
}

// driver is one group member.
type driver struct {
	addr, id, topic string

	group sarama.ConsumerGroup
	stop  context.CancelFunc
	done  sync.WaitGroup
	m     *wire.Member

	mu      sync.Mutex
	session sarama.ConsumerGroupSession
}

func (d *driver) join(ctx context.Context, addr string, c wire.Command, m *wire.Member) error {
	conf := config()
	conf.Consumer.Return.Errors = true
	conf.Consumer.Offsets.Initial = sarama.OffsetOldest
	conf.Consumer.Offsets.AutoCommit.Enable = false
	conf.Consumer.Group.Session.Timeout = 10 * time.Second
	conf.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	conf.Consumer.Group.Rebalance.Timeout = 10 * time.Second
	conf.Consumer.Group.Rebalance.Retry.Backoff = 250 * time.Millisecond
	conf.Consumer.Group.Rebalance.Retry.Max = 20
	conf.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	if c.Assignor == "cooperative" {
		conf.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyCooperativeSticky()}
	}
	conf.Consumer.Group.InstanceId = c.Instance
	conf.Consumer.Retry.Backoff = 250 * time.Millisecond
	conf.Consumer.MaxWaitTime = 250 * time.Millisecond
	if c.Isolation == "read_committed" {
		conf.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	group, err := sarama.NewConsumerGroup([]string{addr}, c.Group, conf)
	if err != nil {
		return err
	}
	ctx, d.stop = context.WithCancel(ctx)
	d.addr, d.id, d.topic, d.group, d.m = addr, c.Group, c.Topic, group, m
	go func() {
		for err := range group.Errors() {
			m.Error(err)
		}
	}()
	d.done.Go(func() {
		for ctx.Err() == nil {
			if err := group.Consume(ctx, []string{c.Topic}, d); err != nil && ctx.Err() == nil {
				m.Error(err)
				if errors.Is(err, sarama.ErrClosedConsumerGroup) {
					return
				}
			}
		}
	})
	return nil
}

// Setup is called before the first ConsumeClaim of a session: a generation with an eager strategy, a membership with a cooperative one.
func (d *driver) Setup(s sarama.ConsumerGroupSession) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.session = s
	return nil
}

// Cleanup has nothing to add: every ConsumeClaim has ended.
func (d *driver) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim reads one partition while the member owns it. Sarama waits for its end before it joins again.
func (d *driver) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	owned := []int{int(claim.Partition())}
	d.m.Assigned(owned)
	defer d.m.Revoked(owned, false)
	for {
		select {
		case <-s.Context().Done():
			return nil
		case r, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			var header string
			for _, h := range r.Headers {
				if string(h.Key) == "h" {
					header = string(h.Value)
				}
			}
			d.m.Record(int(r.Partition), r.Offset, string(r.Key), string(r.Value), header)
		}
	}
}

// commit waits for the answer, but Sarama keeps what it was: a failure goes to the group's errors, some time later. So the broker is asked.
func (d *driver) commit(_ context.Context, m *wire.Member) (map[int]int64, error) {
	d.mu.Lock()
	session := d.session
	d.mu.Unlock()
	positions := m.Positions()
	var partitions []int32
	for p, offset := range positions {
		session.MarkOffset(d.topic, int32(p), offset, "")
		partitions = append(partitions, int32(p))
	}
	session.Commit()
	admin, err := sarama.NewClusterAdmin([]string{d.addr}, config())
	if err != nil {
		return nil, err
	}
	offsets, err := admin.ListConsumerGroupOffsets(d.id, map[string][]int32{d.topic: partitions})
	if err := errors.Join(err, admin.Close()); err != nil {
		return nil, err
	}
	for p, want := range positions {
		if block := offsets.GetBlock(d.topic, int32(p)); block == nil || block.Err != sarama.ErrNoError || block.Offset != want {
			return nil, fmt.Errorf("partition %d has not been committed at %d: %+v", p, want, block)
		}
	}
	return positions, nil
}

func (d *driver) leave(context.Context, *wire.Member) error {
	d.stop()
	d.done.Wait()
	return d.group.Close()
}
