//go:build linux

package fulldisk

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var (
	record = flag.Bool("record", false, "ask Apache Kafka again what a full disk does to it: writes testdata/full-disk-append.kafka.txt")
	update = flag.Bool("update", false, "write testdata/full-disk-append.txt, what this broker answers")
)

// ST-60: what clients get of a broker whose disk is full, and once there is room again. testdata/full-disk-append.kafka.txt is what Apache Kafka
// gives them (the first refusal is KAFKA_STORAGE_ERROR, or no answer if its end comes first), testdata/full-disk-append.txt what this broker gives. The difference
// is a line of docs/limitations.md: Kafka ends.
func TestFullDiskAppend(t *testing.T) {
	dir := mount(t, "tmpfs", 64<<20)
	name := filepath.Join("testdata", "full-disk-append.txt")
	var addr string
	if *record {
		target.Need(t, "java", "mvn")
		name = filepath.Join("testdata", "full-disk-append.kafka.txt")
		s, err := kafka.New(t.Context(), t.TempDir(), map[string]string{"log.dirs": filepath.Join(dir, "data"), "offsets.topic.num.partitions": "1"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = s.Stop() // it may have ended by itself
			t.Log(s.LogTail(15))
		})
		addr = s.Addr()
	} else {
		addr = start(t, filepath.Join(dir, "data")).addr
	}
	got := strings.Join(appendStory(t, addr, dir), "\n") + "\n"
	if *record || *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("clients get\n%s\n%s says\n%s", got, name, want)
	}
}

// appendStory fills the disk, asks for everything, makes room, and asks again.
func appendStory(t *testing.T, addr, dir string) (story []string) {
	tell := func(what string, err error) { story = append(story, what+": "+word(err)) }
	free := ballast(t, dir, 8<<20)
	p := newStory(t, addr)
	tell("create", p.create("a"))
	large := make([]byte, 500<<10)
	tell("produce", p.produce(-1, []byte("small")))
	tell("commit", p.commit())
	var err error
	for range 1000 {
		if err = p.produce(-1, large); err != nil {
			break
		}
	}
	story = append(story, "-- the disk is full")
	tell("produce acks=all", err)
	p.awaitEnd(3 * time.Second) // so that what follows does not depend on how fast it ends
	tell("produce acks=all, again", p.produce(-1, large))
	tell("produce acks=1", p.produce(1, large))
	tell("fetch", p.fetch())
	tell("metadata", p.metadata())
	free()
	story = append(story, "-- there is room again")
	tell("produce acks=all", p.produce(-1, large))
	tell("produce acks=1", p.produce(1, large))
	tell("fetch", p.fetch())
	tell("commit", p.commit())
	tell("create", p.create("b"))
	tell("the broker", p.dial())
	return story
}

func (s *storyteller) dial() error {
	conn, err := net.DialTimeout("tcp", s.addr, time.Second)
	if err == nil {
		_ = conn.Close() // it was only tried
	}
	return err
}

// awaitEnd returns once nobody listens any more, or after a while.
func (s *storyteller) awaitEnd(most time.Duration) {
	tick, timeout := time.NewTicker(50*time.Millisecond), time.After(most)
	defer tick.Stop()
	for s.dial() == nil {
		select {
		case <-tick.C:
		case <-timeout:
			return
		}
	}
}

// word is what a client gets, without what is different each time.
func word(err error) string {
	if err == nil {
		return "OK"
	}
	if e, ok := errors.AsType[*kerr.Error](err); ok {
		return e.Message
	}
	return "no answer: the connection is closed or refused"
}

// A storyteller asks with a new connection each time.
type storyteller struct {
	t    *testing.T
	addr string
}

func newStory(t *testing.T, addr string) *storyteller { return &storyteller{t, addr} }

func (s *storyteller) ask(acks int16, req kmsg.Request) (kmsg.Response, error) {
	ack := kgo.AllISRAcks()
	if acks == 1 { // kgo writes the client's acks into every produce request
		ack = kgo.LeaderAck()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.RequestRetries(0), kgo.RequiredAcks(ack), kgo.DisableIdempotentWrite())
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), 15*time.Second)
	defer cancel()
	return cl.SeedBrokers()[0].Request(ctx, req)
}

func (s *storyteller) create(topic string) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, 1, 1
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 10_000
	resp, err := s.ask(-1, req)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode)
}

func (s *storyteller) produce(acks int16, value []byte) error {
	ack := kgo.AllISRAcks()
	if acks == 1 {
		ack = kgo.LeaderAck()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.RequestRetries(0), kgo.RecordRetries(0), kgo.RequiredAcks(ack), kgo.DisableIdempotentWrite(), kgo.RecordDeliveryTimeout(15*time.Second), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	return cl.ProduceSync(s.t.Context(), &kgo.Record{Topic: "a", Value: value}).FirstErr()
}

func (s *storyteller) metadata() error {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr("a")
	req.Topics = append(req.Topics, t)
	resp, err := s.ask(-1, req)
	if err != nil {
		return err
	}
	got := resp.(*kmsg.MetadataResponse).Topics[0]
	return errors.Join(kerr.ErrorForCode(got.ErrorCode), kerr.ErrorForCode(got.Partitions[0].ErrorCode))
}

func (s *storyteller) fetch() error {
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch, req.MaxWaitMillis = 1<<20, -1, 500
	t := kmsg.NewFetchRequestTopic()
	at := kmsg.NewFetchRequestTopicPartition()
	at.PartitionMaxBytes = 1 << 20
	t.Topic, t.Partitions = "a", append(t.Partitions, at)
	m := kmsg.NewPtrMetadataRequest()
	mt := kmsg.NewMetadataRequestTopic()
	mt.Topic = &t.Topic
	m.Topics = append(m.Topics, mt)
	resp, err := s.ask(-1, m)
	if err != nil {
		return err
	}
	t.TopicID = resp.(*kmsg.MetadataResponse).Topics[0].TopicID
	req.Topics = append(req.Topics, t)
	if resp, err = s.ask(-1, req); err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode)
}

func (s *storyteller) commit() error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.RequestRetries(8))
	if err != nil {
		s.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), 15*time.Second)
	defer cancel()
	req := kmsg.NewPtrOffsetCommitRequest()
	t := kmsg.NewOffsetCommitRequestTopic()
	part := kmsg.NewOffsetCommitRequestTopicPartition()
	part.Offset = 1
	t.Topic, t.Partitions = "a", append(t.Partitions, part)
	req.Group, req.Topics = "g", append(req.Topics, t)
	p := &peer{t: s.t, cl: cl}
	if t.TopicID, err = p.idOf(ctx, "a"); err != nil {
		return err
	}
	req.Topics[0].TopicID = t.TopicID
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}
