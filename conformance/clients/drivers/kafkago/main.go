// The driver of segmentio/kafka-go (../../PROTOCOL.md). A member is a ConsumerGroup, the layer beneath a Reader with a GroupID that tells of
// its assignments, and a Reader for each partition.
package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

func main() {
	d := &driver{}
	wire.Main(wire.Driver{
		Client: "kafka-go", Version: wire.ModuleVersion("github.com/segmentio/kafka-go"), Language: "Go",
		Codecs:   []string{"none", "gzip", "snappy", "lz4", "zstd"},
		Features: []string{"admin", "range", "commit", "headers"},
		Create:   create, Produce: produce, Join: d.join, Commit: d.commit, Leave: d.leave,
	})
}

func create(ctx context.Context, addr string, c wire.Command) error {
	client := &kafka.Client{Addr: kafka.TCP(addr), Timeout: 10 * time.Second}
	answer, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: c.Topic, NumPartitions: c.Partitions, ReplicationFactor: 1}},
	})
	if err != nil {
		return err
	}
	return answer.Errors[c.Topic]
}

var compressions = map[string]kafka.Compression{"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}

func produce(ctx context.Context, addr string, c wire.Command) ([][3]int64, error) {
	var mu sync.Mutex
	var acked [][3]int64
	w := &kafka.Writer{
		Addr: kafka.TCP(addr), Topic: c.Topic, RequiredAcks: kafka.RequireAll, Compression: compressions[c.Codec], BatchTimeout: 5 * time.Millisecond,
		Balancer: kafka.BalancerFunc(func(m kafka.Message, partitions ...int) int { return number(m) % len(partitions) }),
		Completion: func(messages []kafka.Message, err error) {
			mu.Lock()
			defer mu.Unlock()
			for _, m := range messages {
				if err == nil {
					acked = append(acked, [3]int64{int64(number(m)), int64(m.Partition), m.Offset})
				}
			}
		},
	}
	var messages []kafka.Message
	for _, r := range c.Records() {
		messages = append(messages, kafka.Message{Key: []byte(r.Key), Value: []byte(r.Value), Headers: []kafka.Header{{Key: "h", Value: []byte(r.Header)}}})
	}
	if err := errors.Join(w.WriteMessages(ctx, messages...), w.Close()); err != nil {
		return nil, err
	}
	return acked, nil
}

// number is that of the workload's record, which its key tells.
func number(m kafka.Message) int {
	n, err := strconv.Atoi(strings.TrimPrefix(string(m.Key), "key-"))
	if err != nil {
		panic(err)
	}
	return n
}

// driver is one group member.
type driver struct {
	addr, topic string
	isolation   kafka.IsolationLevel
	group       *kafka.ConsumerGroup
	stop        context.CancelFunc
	done        sync.WaitGroup

	mu         sync.Mutex
	generation *kafka.Generation
}

func (d *driver) join(ctx context.Context, addr string, c wire.Command, m *wire.Member) error {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: c.Group, Brokers: []string{addr}, Topics: []string{c.Topic}, GroupBalancers: []kafka.GroupBalancer{kafka.RangeGroupBalancer{}},
		HeartbeatInterval: 500 * time.Millisecond, SessionTimeout: 10 * time.Second, RebalanceTimeout: 10 * time.Second, JoinGroupBackoff: 250 * time.Millisecond,
		StartOffset: kafka.FirstOffset,
	})
	if err != nil {
		return err
	}
	d.addr, d.topic, d.group = addr, c.Topic, group
	if c.Isolation == "read_committed" {
		d.isolation = kafka.ReadCommitted
	}
	ctx, d.stop = context.WithCancel(ctx)
	d.done.Go(func() {
		for ctx.Err() == nil {
			generation, err := group.Next(ctx)
			switch {
			case err == nil:
				d.begin(generation, m)
			case ctx.Err() == nil:
				m.Error(err)
			}
		}
	})
	return nil
}

// begin starts the readers of a generation. kafka-go ends the generation when they have ended, and only then joins again.
func (d *driver) begin(generation *kafka.Generation, m *wire.Member) {
	d.mu.Lock()
	d.generation = generation
	d.mu.Unlock()
	var owned []int
	for _, a := range generation.Assignments[d.topic] {
		owned = append(owned, a.ID)
	}
	if len(owned) > 0 {
		m.Assigned(owned)
	}
	generation.Start(func(ctx context.Context) {
		var readers sync.WaitGroup
		for _, a := range generation.Assignments[d.topic] {
			readers.Go(func() { d.read(ctx, a, m) })
		}
		<-ctx.Done()
		readers.Wait()
		m.RevokedAll()
	})
}

func (d *driver) read(ctx context.Context, a kafka.PartitionAssignment, m *wire.Member) {
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{d.addr}, Topic: d.topic, Partition: a.ID, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: 250 * time.Millisecond, ReadBackoffMax: 250 * time.Millisecond,
		IsolationLevel: d.isolation,
	})
	defer func() {
		if err := r.Close(); err != nil {
			m.Error(err)
		}
	}()
	if err := r.SetOffset(a.Offset); err != nil {
		m.Error(err)
		return
	}
	for {
		message, err := r.ReadMessage(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			m.Error(err)
			continue
		}
		var header string
		for _, h := range message.Headers {
			if h.Key == "h" {
				header = string(h.Value)
			}
		}
		m.Record(message.Partition, message.Offset, string(message.Key), string(message.Value), header)
	}
}

func (d *driver) commit(_ context.Context, m *wire.Member) (map[int]int64, error) {
	d.mu.Lock()
	generation := d.generation
	d.mu.Unlock()
	positions := m.Positions()
	return positions, generation.CommitOffsets(map[string]map[int]int64{d.topic: positions})
}

func (d *driver) leave(context.Context, *wire.Member) error {
	d.stop()
	d.done.Wait()
	return d.group.Close()
}
