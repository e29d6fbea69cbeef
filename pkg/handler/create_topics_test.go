package handler

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// createRequest asks for topics of one partition.
func createRequest(names ...string) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	for _, n := range names {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = n, 1, 1
		req.Topics = append(req.Topics, t)
	}
	return req
}

func setConfig(t *kmsg.CreateTopicsRequestTopic, name string, value *string) {
	c := kmsg.NewCreateTopicsRequestTopicConfig()
	c.Name, c.Value = name, value
	t.Configs = append(t.Configs, c)
}

// KIP-525: from v5 on the answer has everything there is to know.
func TestCreateTopicsTellsWhatItMade(t *testing.T) {
	k := newKit(t, func(s *config.Settings) { s.NumPartitions = 4 })
	k.eachVersion(kmsg.CreateTopics, func(t *testing.T, version int16) {
		name := "t" + string(rune('0'+version))
		req := createRequest(name)
		req.Topics[0].NumPartitions = -1
		req.Topics[0].ReplicationFactor = -1
		setConfig(&req.Topics[0], "max.message.bytes", kmsg.StringPtr("1000"))
		resp := ask[*kmsg.CreateTopicsResponse](k, version, req)
		got := &resp.Topics[0]
		wantCode(t, got.ErrorCode, nil)
		if got.ErrorMessage != nil {
			t.Fatalf("message %q", *got.ErrorMessage)
		}
		made, ok := k.Registry.Lookup(name)
		if !ok || made.Partitions() != 4 || made.Overrides()["max.message.bytes"] != "1000" {
			t.Fatalf("made %v %+v", ok, made)
		}
		if version >= 7 && (got.TopicID != made.ID() || made.ID().IsZero()) {
			t.Fatalf("id %v, want %v", got.TopicID, made.ID())
		}
		if version < 5 {
			return
		}
		if got.NumPartitions != 4 || got.ReplicationFactor != 1 || got.ConfigErrorCode != 0 {
			t.Fatalf("%+v", got)
		}
		byName := func(a, b kmsg.CreateTopicsResponseTopicConfig) int { return compare(a.Name, b.Name) }
		if !slices.IsSortedFunc(got.Configs, byName) || len(got.Configs) != len(config.DescribeTopic(k.Settings, nil)) {
			t.Fatalf("configs %+v", got.Configs)
		}
		for _, c := range got.Configs {
			if c.Name == "max.message.bytes" && (*c.Value != "1000" || c.Source != 1) {
				t.Fatalf("%+v", c)
			}
			if c.Source == 0 || c.Source == -1 || c.ReadOnly {
				t.Fatalf("%+v", c)
			}
		}
	})
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestCreateTopicsRefuses(t *testing.T) {
	k := newKit(t)
	k.create("there", 1)
	k.eachVersion(kmsg.CreateTopics, func(t *testing.T, version int16) {
		req := createRequest("twice", "there", "twice", "__cluster_metadata", "bad name", "conf", "null", "zero", "twice")
		setConfig(&req.Topics[5], "no.such", kmsg.StringPtr("1"))
		setConfig(&req.Topics[6], "retention.ms", nil)
		req.Topics[7].NumPartitions = 0
		resp := ask[*kmsg.CreateTopicsResponse](k, version, req)
		want := map[string]struct {
			err  *kerr.Error
			text string
		}{
			"twice":              {kerr.InvalidRequest, "Duplicate topic name."},
			"there":              {kerr.TopicAlreadyExists, "Topic 'there' already exists."},
			"__cluster_metadata": {kerr.InvalidRequest, "Creation of internal topic __cluster_metadata is prohibited."},
			"bad name":           {kerr.InvalidTopicException, ""},
			"conf":               {kerr.InvalidConfig, "Unknown topic config name: no.such"},
			"null":               {kerr.InvalidConfig, "Null value not supported for topic configs: retention.ms"},
			"zero":               {kerr.InvalidPartitions, "Number of partitions was set to an invalid non-positive value."},
		}
		if len(resp.Topics) != len(want) {
			t.Fatalf("%d answers, want %d: %+v", len(resp.Topics), len(want), resp.Topics)
		}
		for _, got := range resp.Topics {
			w := want[got.Topic]
			wantCode(t, got.ErrorCode, w.err)
			if w.text != "" {
				wantText(t, got.ErrorMessage, w.text)
			} else if got.ErrorMessage == nil {
				t.Fatalf("%s has no text", got.Topic)
			}
			if version >= 5 && (got.NumPartitions != -1 || got.ReplicationFactor != -1 || got.Configs == nil || len(got.Configs) != 0) {
				t.Fatalf("%+v", got)
			}
		}
		if all := k.Registry.All(); len(all) != 1 {
			t.Fatalf("%d topics", len(all))
		}
	})
}

// FX-4: a replication factor that one node cannot have is stored as 1.
func TestCreateTopicsTakesAnyReplicationFactor(t *testing.T) {
	k := newKit(t)
	req := createRequest("three")
	req.Topics[0].ReplicationFactor = 3
	resp := ask[*kmsg.CreateTopicsResponse](k, 7, req)
	wantCode(t, resp.Topics[0].ErrorCode, nil)
	if resp.Topics[0].ReplicationFactor != 1 {
		t.Fatalf("factor %d", resp.Topics[0].ReplicationFactor)
	}
	strict := newKit(t, func(s *config.Settings) { s.StrictReplication = true })
	wantCode(t, ask[*kmsg.CreateTopicsResponse](strict, 7, req).Topics[0].ErrorCode, kerr.InvalidReplicationFactor)
}

func TestCreateTopicsWithAssignments(t *testing.T) {
	k := newKit(t)
	req := createRequest("manual")
	req.Topics[0].NumPartitions, req.Topics[0].ReplicationFactor = -1, -1
	for p := range int32(2) {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = p, []int32{testNode}
		req.Topics[0].ReplicaAssignment = append(req.Topics[0].ReplicaAssignment, a)
	}
	resp := ask[*kmsg.CreateTopicsResponse](k, 7, req)
	wantCode(t, resp.Topics[0].ErrorCode, nil)
	if resp.Topics[0].NumPartitions != 2 {
		t.Fatalf("%+v", resp.Topics[0])
	}
}

func TestCreateTopicsValidateOnlyMakesNothing(t *testing.T) {
	k := newKit(t)
	req := createRequest("dry")
	req.ValidateOnly = true
	resp := ask[*kmsg.CreateTopicsResponse](k, 7, req)
	wantCode(t, resp.Topics[0].ErrorCode, nil)
	if resp.Topics[0].TopicID == [16]byte{} || resp.Topics[0].NumPartitions != 1 || len(resp.Topics[0].Configs) == 0 {
		t.Fatalf("%+v", resp.Topics[0])
	}
	if len(k.Registry.All()) != 0 {
		t.Fatal("a topic was made")
	}
}

func TestCreateTopicsBoundsTheRequest(t *testing.T) {
	k := newKit(t)
	req := createRequest("a", "b", "b")
	req.Topics[0].NumPartitions = 10001
	resp := ask[*kmsg.CreateTopicsResponse](k, 7, req)
	if len(resp.Topics) != 3 {
		t.Fatalf("%d answers", len(resp.Topics))
	}
	for _, topic := range resp.Topics {
		wantCode(t, topic.ErrorCode, kerr.PolicyViolation)
		wantText(t, topic.ErrorMessage, "Excessively large number of partitions per request.")
	}
}

// ST-60: a disk that does not take the rows is KAFKA_STORAGE_ERROR, for creating as for deleting.
func TestTopicChangesOnAFailingStore(t *testing.T) {
	var failing atomic.Bool
	k := newKitOn(t, crashfs.New(), func() error {
		if failing.Load() {
			return errors.New("no space")
		}
		return nil
	})
	k.create("a", 1)
	failing.Store(true)
	created := ask[*kmsg.CreateTopicsResponse](k, 7, createRequest("b"))
	wantCode(t, created.Topics[0].ErrorCode, kerr.KafkaStorageError)
	deleted := ask[*kmsg.DeleteTopicsResponse](k, 6, deleteRequest(6, "a"))
	wantCode(t, deleted.Topics[0].ErrorCode, kerr.KafkaStorageError)
	if _, ok := k.Registry.Lookup("a"); !ok {
		t.Fatal("the topic is gone")
	}
}
