// The driver of franz-go (../../PROTOCOL.md).
package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

func main() {
	d := &driver{}
	wire.Main(wire.Driver{
		Client: "franz-go", Version: wire.ModuleVersion("github.com/twmb/franz-go"), Language: "Go",
		Codecs:   []string{"none", "gzip", "snappy", "lz4", "zstd"},
		Features: []string{"admin", "idempotent", "range", "cooperative", "commit", "headers", "static", "transactions"},
		Create:   create, Produce: produce, Join: d.join, Commit: d.commit, Leave: d.leave, Txn: (&transactions{}).run,
	})
}

func create(ctx context.Context, addr string, c wire.Command) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(ctx, int32(c.Partitions), 1, nil, c.Topic)
	return err
}

var compressions = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func produce(ctx context.Context, addr string, c wire.Command) ([][3]int64, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(compressions[c.Codec])}
	if !c.Idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var records []*kgo.Record
	for _, r := range c.Records() {
		records = append(records, &kgo.Record{
			Topic: c.Topic, Partition: int32(r.Partition), Key: []byte(r.Key), Value: []byte(r.Value), Headers: []kgo.RecordHeader{{Key: "h", Value: []byte(r.Header)}},
		})
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return nil, err
	}
	acked := make([][3]int64, len(records))
	for i, r := range records {
		acked[i] = [3]int64{int64(c.From + i), int64(r.Partition), r.Offset}
	}
	return acked, nil
}

// driver is one group member.
type driver struct {
	client *kgo.Client
	topic  string
	stop   context.CancelFunc
	done   chan struct{}
}

func (d *driver) join(ctx context.Context, addr string, c wire.Command, m *wire.Member) error {
	balancer := kgo.RangeBalancer()
	if c.Assignor == "cooperative" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	revoked := func(lost bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, p map[string][]int32) {
			if len(p[c.Topic]) > 0 {
				m.Revoked(ints(p[c.Topic]), lost)
			}
		}
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(addr), kgo.ConsumeTopics(c.Topic), kgo.ConsumerGroup(c.Group), kgo.Balancers(balancer), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.SessionTimeout(10 * time.Second), kgo.HeartbeatInterval(500 * time.Millisecond),
		kgo.RebalanceTimeout(10 * time.Second), kgo.FetchMaxWait(250 * time.Millisecond), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, p map[string][]int32) { m.Assigned(ints(p[c.Topic])) }),
		kgo.OnPartitionsRevoked(revoked(false)), kgo.OnPartitionsLost(revoked(true)),
		kgo.RetryBackoffFn(func(int) time.Duration { return 200 * time.Millisecond }),
	}
	if c.Instance != "" {
		opts = append(opts, kgo.InstanceID(c.Instance))
	}
	if c.Isolation == "read_committed" {
		opts = append(opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	d.client, d.topic, d.stop, d.done = client, c.Topic, stop, make(chan struct{})
	go d.poll(ctx, m)
	return nil
}

func (d *driver) poll(ctx context.Context, m *wire.Member) {
	defer close(d.done)
	for ctx.Err() == nil {
		fetches := d.client.PollFetches(ctx)
		fetches.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				m.Error(err)
			}
		})
		for r := range fetches.RecordsAll() {
			var header string
			for _, h := range r.Headers {
				if h.Key == "h" {
					header = string(h.Value)
				}
			}
			m.Record(int(r.Partition), r.Offset, string(r.Key), string(r.Value), header)
		}
		d.client.AllowRebalance()
	}
}

func (d *driver) commit(ctx context.Context, m *wire.Member) (map[int]int64, error) {
	positions := m.Positions()
	offsets := map[int32]kgo.EpochOffset{}
	for p, offset := range positions {
		offsets[int32(p)] = kgo.EpochOffset{Epoch: -1, Offset: offset}
	}
	var failed error
	d.client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{d.topic: offsets}, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, r *kmsg.OffsetCommitResponse, err error) {
		if failed = err; err != nil {
			return
		}
		for _, t := range r.Topics {
			for _, p := range t.Partitions {
				failed = errors.Join(failed, kerr.ErrorForCode(p.ErrorCode))
			}
		}
	})
	return positions, failed
}

// leave revokes through the callback, then leaves the group.
func (d *driver) leave(context.Context, *wire.Member) error {
	d.stop()
	<-d.done
	d.client.CloseAllowingRebalance()
	return nil
}

// ints is sorted.
func ints(partitions []int32) []int {
	set := map[int]struct{}{}
	for _, p := range partitions {
		set[int(p)] = struct{}{}
	}
	return slices.Sorted(maps.Keys(set))
}
