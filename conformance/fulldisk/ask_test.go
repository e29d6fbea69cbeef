//go:build linux

package fulldisk

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A peer sends single requests.
type peer struct {
	t        *testing.T
	cl       *kgo.Client
	metadata string // of commits
}

func newPeer(t *testing.T, addr string, opts ...kgo.Opt) *peer {
	t.Helper()
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr), kgo.RequestRetries(0), kgo.DisableIdempotentWrite())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return &peer{t: t, cl: cl}
}

func ask[R kmsg.Response](p *peer, req kmsg.Request) R {
	p.t.Helper()
	resp, err := p.cl.SeedBrokers()[0].Request(p.t.Context(), req)
	if err != nil {
		p.t.Fatalf("%s: %v", kmsg.NameForKey(req.Key()), err)
	}
	return resp.(R)
}

// want wants one of some errors, nil for none.
func (p *peer) want(what string, code int16, of ...error) {
	p.t.Helper()
	if err := kerr.ErrorForCode(code); !slices.ContainsFunc(of, func(e error) bool { return errors.Is(err, e) }) {
		p.t.Errorf("%s: %v, want one of %v", what, err, of)
	}
}

// told is want that says which it was.
func (p *peer) told(what string, code int16, of ...error) {
	p.t.Helper()
	err := kerr.ErrorForCode(code)
	p.want(what, code, of...)
	p.t.Logf("%s: %v", what, err)
}

func (p *peer) create(topic string, partitions int32) int16 {
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, partitions, 1
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 10_000
	return ask[*kmsg.CreateTopicsResponse](p, req).Topics[0].ErrorCode
}

// autoCreate asks for metadata of a topic that is to be made.
func (p *peer) autoCreate(topic string) int16 {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req.Topics, req.AllowAutoTopicCreation = append(req.Topics, t), true
	return ask[*kmsg.MetadataResponse](p, req).Topics[0].ErrorCode
}

func (p *peer) id(topic string) [16]byte {
	p.t.Helper()
	id, err := p.idOf(p.t.Context(), topic)
	if err != nil {
		p.t.Fatalf("Metadata: %v", err)
	}
	return id
}

func (p *peer) idOf(ctx context.Context, topic string) (id [16]byte, err error) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, p.cl.SeedBrokers()[0])
	if err != nil {
		return id, err
	}
	return resp.Topics[0].TopicID, nil
}

// produce sends a record of some bytes with the client's acks.
func (p *peer) produce(topic string, part int32, value []byte) error {
	return p.cl.ProduceSync(p.t.Context(), &kgo.Record{Topic: topic, Partition: part, Value: value}).FirstErr()
}

func (p *peer) commit(group, topic string, offset int64) int16 {
	req := kmsg.NewPtrOffsetCommitRequest()
	t := kmsg.NewOffsetCommitRequestTopic()
	part := kmsg.NewOffsetCommitRequestTopicPartition()
	part.Offset, part.Metadata = offset, &p.metadata
	t.Topic, t.TopicID, t.Partitions = topic, p.id(topic), append(t.Partitions, part)
	req.Group, req.Topics = group, append(req.Topics, t)
	return ask[*kmsg.OffsetCommitResponse](p, req).Topics[0].Partitions[0].ErrorCode
}

func (p *peer) committed(group, topic string) int64 {
	req := kmsg.NewPtrOffsetFetchRequest()
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.TopicID, t.Partitions = topic, p.id(topic), []int32{0}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.Topics = group, append(g.Topics, t)
	req.Groups = append(req.Groups, g)
	return ask[*kmsg.OffsetFetchResponse](p, req).Groups[0].Topics[0].Partitions[0].Offset
}

// bytesAt is how much a fetch of a partition from an offset on gets.
func (p *peer) bytesAt(topic string, part int32, offset int64) int {
	p.t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch = 1<<20, -1
	t := kmsg.NewFetchRequestTopic()
	at := kmsg.NewFetchRequestTopicPartition()
	at.Partition, at.FetchOffset, at.PartitionMaxBytes = part, offset, 1<<20
	t.Topic, t.TopicID, t.Partitions = topic, p.id(topic), append(t.Partitions, at)
	req.Topics = append(req.Topics, t)
	got := ask[*kmsg.FetchResponse](p, req).Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
		p.t.Errorf("fetch %s-%d: %v", topic, part, err)
	}
	return len(got.RecordBatches)
}
