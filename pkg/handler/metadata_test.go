package handler

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// metadataFor asks for names, to be made if need be; none at all is every topic.
func metadataFor(names ...string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.AllowAutoTopicCreation = true
	for _, n := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &n
		req.Topics = append(req.Topics, t)
	}
	return req
}

func metadataForID(ids ...kafka.TopicID) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	for _, id := range ids {
		t := kmsg.NewMetadataRequestTopic()
		t.TopicID = id
		req.Topics = append(req.Topics, t)
	}
	return req
}

func wantTopic(t *testing.T, version int16, got *kmsg.MetadataResponseTopic, want *topic.Topic) {
	t.Helper()
	wantCode(t, got.ErrorCode, nil)
	wantText(t, got.Topic, want.Name())
	if version >= 10 && got.TopicID != want.ID() {
		t.Fatalf("topic id %v, want %v", got.TopicID, want.ID())
	}
	if len(got.Partitions) != int(want.Partitions()) || got.IsInternal {
		t.Fatalf("%+v", got)
	}
	for i, p := range got.Partitions {
		wantCode(t, p.ErrorCode, nil)
		if p.Partition != int32(i) || p.Leader != testNode || !slices.Equal(p.Replicas, []int32{testNode}) ||
			!slices.Equal(p.ISR, []int32{testNode}) || len(p.OfflineReplicas) != 0 {
			t.Fatalf("partition %+v", p)
		}
		if version >= 7 && p.LeaderEpoch != testEpoch { // ST-57
			t.Fatalf("leader epoch %d, want %d", p.LeaderEpoch, testEpoch)
		}
	}
}

func TestMetadataDescribesAllTopicsAndTheBroker(t *testing.T) {
	k := newKit(t)
	a, b := k.create("a", 3), k.create("b", 1)
	k.eachVersion(kmsg.Metadata, func(t *testing.T, version int16) {
		resp := ask[*kmsg.MetadataResponse](k, version, metadataFor())
		if len(resp.Topics) != 2 {
			t.Fatalf("%d topics, want 2", len(resp.Topics))
		}
		wantTopic(t, version, &resp.Topics[0], a)
		wantTopic(t, version, &resp.Topics[1], b)
		if version >= 8 && resp.Topics[0].AuthorizedOperations != math.MinInt32 {
			t.Fatalf("operations %d without being asked", resp.Topics[0].AuthorizedOperations)
		}
		if len(resp.Brokers) != 1 || resp.Brokers[0].NodeID != testNode || resp.Brokers[0].Host != "127.0.0.1" || resp.Brokers[0].Port != 9092 {
			t.Fatalf("brokers %+v", resp.Brokers)
		}
		if version >= 1 && resp.ControllerID != testNode {
			t.Fatalf("controller %d", resp.ControllerID)
		}
		if version >= 2 {
			wantText(t, resp.ClusterID, testCluster)
		}
	})
}

func TestMetadataOfNoTopics(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	k.eachVersion(kmsg.Metadata, func(t *testing.T, version int16) {
		req := metadataFor()
		req.Topics = []kmsg.MetadataRequestTopic{}
		want := 0
		if version == 0 { // where it means all
			want = 1
		}
		if resp := ask[*kmsg.MetadataResponse](k, version, req); len(resp.Topics) != want {
			t.Fatalf("%d topics, want %d", len(resp.Topics), want)
		}
	})
}

func TestMetadataTellsAuthorizedOperations(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	for version := int16(8); version <= 13; version++ {
		req := metadataFor("a", "missing")
		req.AllowAutoTopicCreation = false
		req.IncludeTopicAuthorizedOperations, req.IncludeClusterAuthorizedOperations = true, true
		resp := ask[*kmsg.MetadataResponse](k, version, req)
		for _, topic := range resp.Topics {
			if topic.AuthorizedOperations != 3576 {
				t.Fatalf("v%d: %s may %d", version, *topic.Topic, topic.AuthorizedOperations)
			}
		}
		if version <= 10 && resp.AuthorizedOperations != 8096 {
			t.Fatalf("v%d: cluster operations %d", version, resp.AuthorizedOperations)
		}
	}
}

// FX-21: a topic that is asked for is there, with a leader, in the same response.
func TestMetadataCreatesTopics(t *testing.T) {
	k := newKit(t, func(s *config.Settings) { s.NumPartitions = 2 })
	k.eachVersion(kmsg.Metadata, func(t *testing.T, version int16) {
		x, y := fmt.Sprintf("x%d", version), fmt.Sprintf("y%d", version)
		resp := ask[*kmsg.MetadataResponse](k, version, metadataFor(x, y, x))
		if len(resp.Topics) != 2 {
			t.Fatalf("%d topics, want 2: a name that is there twice is answered once", len(resp.Topics))
		}
		for i, name := range []string{x, y} {
			made, ok := k.Registry.Lookup(name)
			if !ok || made.Partitions() != 2 {
				t.Fatalf("%s was not made with num.partitions", name)
			}
			wantTopic(t, version, &resp.Topics[i], made)
		}
	})
}

// FX-21: also when several connections ask for a new topic at once.
func TestMetadataCreatesOnceForAll(t *testing.T) {
	k := newKit(t)
	for round := range 10 {
		name := fmt.Sprintf("t%d", round)
		var calls [8]*call
		var wg sync.WaitGroup
		for i := range calls {
			calls[i] = k.begin(12, metadataFor(name)) // all of them find nothing
		}
		for _, c := range calls {
			wg.Go(func() { c.reply.Wait(t.Context()) })
		}
		wg.Wait()
		for _, c := range calls {
			resp, err := c.reply.Response()
			check(t, err)
			wantCode(t, resp.Body.(*kmsg.MetadataResponse).Topics[0].ErrorCode, nil)
		}
	}
}

func TestMetadataCreatesOnlyWhereAllowed(t *testing.T) {
	for _, c := range []struct {
		setting, request bool
	}{{false, true}, {true, false}} {
		k := newKit(t, func(s *config.Settings) { s.AutoCreateTopics = c.setting })
		for version := int16(4); version <= 13; version++ {
			req := metadataFor("missing")
			req.AllowAutoTopicCreation = c.request
			resp := ask[*kmsg.MetadataResponse](k, version, req)
			wantCode(t, resp.Topics[0].ErrorCode, kerr.UnknownTopicOrPartition)
			if len(resp.Topics[0].Partitions) != 0 || resp.Topics[0].TopicID != [16]byte{} {
				t.Fatalf("%+v", resp.Topics[0])
			}
		}
		if len(k.Registry.All()) != 0 {
			t.Fatal("a topic was made")
		}
	}
}

// A bad name is told as such; a collision of names is only seen by whoever creates, as in Kafka.
func TestMetadataOfNamesThatCannotBe(t *testing.T) {
	k := newKit(t)
	k.create("a.b", 1)
	for name, want := range map[string]*kerr.Error{
		"":    kerr.InvalidTopicException,
		"a b": kerr.InvalidTopicException,
		"..":  kerr.InvalidTopicException,
		"a_b": kerr.UnknownTopicOrPartition,
	} {
		resp := ask[*kmsg.MetadataResponse](k, 12, metadataFor(name))
		wantCode(t, resp.Topics[0].ErrorCode, want)
		wantText(t, resp.Topics[0].Topic, name)
	}
}

func TestMetadataKnowsInternalNames(t *testing.T) {
	k := newKit(t)
	req := metadataFor("__consumer_offsets", "__transaction_state", "__share_group_state", "__other")
	req.AllowAutoTopicCreation = false
	resp := ask[*kmsg.MetadataResponse](k, 13, req)
	for i, want := range []bool{true, true, true, false} {
		if resp.Topics[i].IsInternal != want {
			t.Fatalf("%s internal: %v", *resp.Topics[i].Topic, resp.Topics[i].IsInternal)
		}
	}
}

func TestMetadataByID(t *testing.T) {
	k := newKit(t)
	a, unknown := k.create("a", 2), kafka.NewTopicID()
	for version := int16(12); version <= 13; version++ {
		req := metadataForID(unknown, a.ID(), unknown)
		req.Topics[1].Topic = kmsg.StringPtr("not looked at")
		req.Topics = append(req.Topics, metadataFor("nor this").Topics...)
		resp := ask[*kmsg.MetadataResponse](k, version, req)
		if len(resp.Topics) != 2 {
			t.Fatalf("%d topics, want 2", len(resp.Topics))
		}
		wantCode(t, resp.Topics[0].ErrorCode, kerr.UnknownTopicID)
		if resp.Topics[0].Topic != nil || resp.Topics[0].TopicID != unknown || len(resp.Topics[0].Partitions) != 0 {
			t.Fatalf("%+v", resp.Topics[0])
		}
		wantTopic(t, version, &resp.Topics[1], a)
	}
	if len(k.Registry.All()) != 1 {
		t.Fatal("a lookup by id made a topic")
	}
}

// v10 and v11 have the fields of ids, but no meaning for them.
func TestMetadataRefusesIDsBeforeV12(t *testing.T) {
	k := newKit(t)
	a := k.create("a", 1)
	for version := int16(10); version <= 11; version++ {
		for _, req := range []*kmsg.MetadataRequest{metadataForID(a.ID()), metadataForID(kafka.TopicID{})} {
			resp := ask[*kmsg.MetadataResponse](k, version, req)
			wantCode(t, resp.Topics[0].ErrorCode, kerr.InvalidRequest)
			wantText(t, resp.Topics[0].Topic, "")
			if len(resp.Brokers) != 0 || resp.ClusterID != nil || resp.ControllerID != -1 {
				t.Fatalf("%+v", resp)
			}
		}
	}
	resp := ask[*kmsg.MetadataResponse](k, 13, metadataForID(kafka.TopicID{}))
	wantCode(t, resp.ErrorCode, kerr.UnknownServerError)
}

// ST-60: a topic that the disk does not take is UNKNOWN_TOPIC_OR_PARTITION, which a client repeats.
func TestMetadataOnAFailingStore(t *testing.T) {
	var failing atomic.Bool
	k := newKitOn(t, crashfs.New(), func() error {
		if failing.Load() {
			return errors.New("no space")
		}
		return nil
	})
	k.create("a", 1)
	failing.Store(true)
	resp := ask[*kmsg.MetadataResponse](k, 12, metadataFor("a", "b"))
	wantCode(t, resp.Topics[0].ErrorCode, nil)
	wantCode(t, resp.Topics[1].ErrorCode, kerr.UnknownTopicOrPartition)
}

// BenchmarkMetadata asks for all of 5,000 topics.
func BenchmarkMetadata(b *testing.B) {
	k := newKit(b)
	specs := make([]topic.Spec, 5000)
	for i := range specs {
		specs[i] = topic.Spec{Name: fmt.Sprintf("topic-%04d", i), Partitions: 1, ReplicationFactor: -1}
	}
	for _, c := range k.Registry.Create(b.Context(), specs, false) {
		check(b, c.Err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c := k.begin(12, metadataFor())
		resp, err := c.reply.Response()
		check(b, err)
		resp.Body.AppendTo(nil)
	}
}
