// Package client is the little that a test of the image wants of a Kafka client, from wherever it sits: on the host, in a container beside the
// broker's (as the program cmd/client), outside.
package client

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// limit bounds each operation: a client that was told a wrong address waits for ever otherwise.
const limit = 15 * time.Second

// Ask returns the address that the broker at addr tells in all three responses that have one.
func Ask(ctx context.Context, addr string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return "", err
	}
	defer cl.Close()
	seed := cl.SeedBrokers()[0] // what the broker tells may not be where it is asked
	metadata, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, seed)
	if err != nil {
		return "", err
	}
	cluster, err := kmsg.NewPtrDescribeClusterRequest().RequestWith(ctx, seed)
	if err != nil {
		return "", err
	}
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKeys = []string{"group"}
	coordinator, err := find.RequestWith(ctx, seed)
	if err != nil {
		return "", err
	}
	told := join(metadata.Brokers[0].Host, metadata.Brokers[0].Port)
	if b := cluster.Brokers[0]; join(b.Host, b.Port) != told {
		return "", fmt.Errorf("told %s by Metadata, %s by DescribeCluster", told, join(b.Host, b.Port))
	}
	if c := coordinator.Coordinators[0]; join(c.Host, c.Port) != told {
		return "", fmt.Errorf("told %s by Metadata, %s by FindCoordinator", told, join(c.Host, c.Port))
	}
	return told, nil
}

func join(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// Produce sends values with acks=all, and no retry: nothing that is ready needs one (FX-21).
func Produce(ctx context.Context, addr, topic string, values ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic(topic), kgo.RecordRetries(0))
	if err != nil {
		return err
	}
	defer cl.Close()
	for _, v := range values {
		if err := cl.ProduceSync(ctx, kgo.StringRecord(v)).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

// Consume reads n values as the member of a group, commits their offsets and leaves.
func Consume(ctx context.Context, addr, topic, group string, n int) (values []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	for len(values) < n {
		fetches := cl.PollRecords(ctx, n-len(values))
		if err := fetches.Err(); err != nil {
			return values, err
		}
		for r := range fetches.RecordsAll() {
			values = append(values, string(r.Value))
		}
		if err := cl.CommitRecords(ctx, fetches.Records()...); err != nil {
			return values, err
		}
	}
	return values, cl.LeaveGroupContext(ctx)
}

// Committed is the offset that a group has committed for partition 0 of a topic, -1 for none.
func Committed(ctx context.Context, addr, topic, group string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	offsets, err := kadm.NewClient(cl).FetchOffsets(ctx, group)
	if err != nil {
		return 0, err
	}
	o, ok := offsets.Lookup(topic, 0)
	if !ok {
		return -1, nil
	}
	return o.At, o.Err
}
