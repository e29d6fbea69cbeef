package handler

import (
	"errors"
	"maps"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// incrementalRequest asks for operations on one resource.
func incrementalRequest(kind kmsg.ConfigResourceType, name string, ops ...topic.ConfigOp) *kmsg.IncrementalAlterConfigsRequest {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	for _, op := range ops {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Op, c.Name, c.Value = kmsg.IncrementalAlterConfigOp(op.Op), op.Name, &op.Value
		if op.Op == topic.OpDelete {
			c.Value = nil
		}
		r.Configs = append(r.Configs, c)
	}
	req.Resources = append(req.Resources, r)
	return req
}

// replaceRequest asks for all configs of a topic.
func replaceRequest(name string, configs ...string) *kmsg.AlterConfigsRequest {
	req := kmsg.NewPtrAlterConfigsRequest()
	r := kmsg.NewAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, name
	for i := 0; i < len(configs); i += 2 {
		c := kmsg.NewAlterConfigsRequestResourceConfig()
		c.Name, c.Value = configs[i], &configs[i+1]
		r.Configs = append(r.Configs, c)
	}
	req.Resources = append(req.Resources, r)
	return req
}

func (k *kit) wantOverrides(name string, want map[string]string) {
	k.t.Helper()
	if t, _ := k.Registry.Lookup(name); !maps.Equal(t.Overrides(), want) {
		k.t.Fatalf("%v, want %v", t.Overrides(), want)
	}
}

// KIP-339: what is not named stays. Nothing of the request is kept: the kit overwrites its frame.
func TestIncrementalAlterConfigs(t *testing.T) {
	k := newKit(t)
	k.eachVersion(kmsg.IncrementalAlterConfigs, func(t *testing.T, version int16) {
		name := "t" + string(rune('0'+version))
		k.create(name, 1, "flush.ms", "7", "segment.ms", "8")
		ops := []topic.ConfigOp{{Op: topic.OpSet, Name: "retention.ms", Value: "9"}, {Op: topic.OpDelete, Name: "flush.ms"}, {Op: topic.OpAppend, Name: "cleanup.policy", Value: "compact"}}
		req := incrementalRequest(kmsg.ConfigResourceTypeTopic, name, ops...)
		req.ValidateOnly = true
		wantCode(t, ask[*kmsg.IncrementalAlterConfigsResponse](k, version, req).Resources[0].ErrorCode, nil)
		k.wantOverrides(name, map[string]string{"flush.ms": "7", "segment.ms": "8"})
		req.ValidateOnly = false
		got := ask[*kmsg.IncrementalAlterConfigsResponse](k, version, req).Resources
		if len(got) != 1 || got[0].ResourceName != name || got[0].ResourceType != kmsg.ConfigResourceTypeTopic || got[0].ErrorMessage != nil {
			t.Fatalf("%+v", got)
		}
		wantCode(t, got[0].ErrorCode, nil)
		k.wantOverrides(name, map[string]string{"retention.ms": "9", "segment.ms": "8", "cleanup.policy": "delete,compact"})
	})
}

func TestAlterConfigsReplacesAll(t *testing.T) {
	k := newKit(t)
	k.eachVersion(kmsg.AlterConfigs, func(t *testing.T, version int16) {
		name := "t" + string(rune('0'+version))
		k.create(name, 1, "flush.ms", "7", "segment.ms", "8")
		req := replaceRequest(name, "segment.ms", "9")
		req.ValidateOnly = true
		wantCode(t, ask[*kmsg.AlterConfigsResponse](k, version, req).Resources[0].ErrorCode, nil)
		k.wantOverrides(name, map[string]string{"flush.ms": "7", "segment.ms": "8"})
		got := ask[*kmsg.AlterConfigsResponse](k, version, replaceRequest(name, "segment.ms", "9")).Resources
		if len(got) != 1 || got[0].ResourceName != name || got[0].ErrorMessage != nil {
			t.Fatalf("%+v", got)
		}
		wantCode(t, got[0].ErrorCode, nil)
		k.wantOverrides(name, map[string]string{"segment.ms": "9"})
	})
}

// Answers are in the order of the request, whoever refuses.
func TestAlterConfigsRefuses(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	req := replaceRequest("twice", "flush.ms", "1")
	for _, r := range []*kmsg.AlterConfigsRequest{
		replaceRequest("missing", "flush.ms", "1"), replaceRequest("a", "nonsense", "1"), replaceRequest("twice"),
		replaceRequest("b", "flush.ms", "1", "flush.ms", "2"), replaceRequest("c", "flush.ms", "1", "segment.ms", "1"),
	} {
		req.Resources = append(req.Resources, r.Resources...)
	}
	req.Resources[5].Configs[0].Value, req.Resources[5].Configs[1].Value = nil, nil
	want := []struct {
		err  *kerr.Error
		text string
	}{
		{kerr.InvalidRequest, "Each resource must appear at most once."},
		{kerr.UnknownTopicOrPartition, "The topic 'missing' does not exist."},
		{kerr.InvalidConfig, "Unknown topic config name: nonsense"},
		{kerr.InvalidRequest, "Each resource must appear at most once."},
		{kerr.InvalidRequest, "Error due to duplicate config keys"},
		{kerr.InvalidRequest, "Null value not supported for : flush.ms, segment.ms"},
	}
	got := ask[*kmsg.AlterConfigsResponse](k, 2, req).Resources
	for i, w := range want {
		wantCode(t, got[i].ErrorCode, w.err)
		wantText(t, got[i].ErrorMessage, w.text)
	}
}

// Of loggers, groups and client metrics nothing can be altered; the names are checked as Kafka does.
func TestAlterConfigsOfWhatIsNoTopic(t *testing.T) {
	k := newKit(t)
	const cannot = "Cannot update these configs dynamically: [x, y]"
	for _, x := range []struct {
		kind kmsg.ConfigResourceType
		name string
		text string
	}{
		{kmsg.ConfigResourceTypeBroker, "8", "Unexpected broker id, expected 7, but received 8"},
		{kmsg.ConfigResourceTypeBroker, "b", "Node id must be an integer, but it is: b"},
		{kmsg.ConfigResourceTypeBrokerLogger, "7", cannot},
		{kmsg.ConfigResourceTypeBrokerLogger, "8", "Unexpected node id. Expected 7, but received 8"},
		{kmsg.ConfigResourceTypeClientMetrics, "m", cannot},
		{kmsg.ConfigResourceTypeClientMetrics, "", "Subscription name can't be empty"},
		{kmsg.ConfigResourceTypeGroupConfig, "g", cannot},
		{kmsg.ConfigResourceTypeGroupConfig, "", "Default group resources are not allowed."},
		{77, "x", "Unknown resource type 77"},
	} {
		req := incrementalRequest(x.kind, x.name, topic.ConfigOp{Name: "x"}, topic.ConfigOp{Op: topic.OpDelete, Name: "y"})
		got := &ask[*kmsg.IncrementalAlterConfigsResponse](k, 1, req).Resources[0]
		wantCode(t, got.ErrorCode, kerr.InvalidRequest)
		wantText(t, got.ErrorMessage, x.text)
	}
	wantCode(t, ask[*kmsg.IncrementalAlterConfigsResponse](k, 1, incrementalRequest(kmsg.ConfigResourceTypeBroker, "7")).Resources[0].ErrorCode, nil)
	logger := replaceRequest("7")
	logger.Resources[0].ResourceType = kmsg.ConfigResourceTypeBrokerLogger
	wantText(t, ask[*kmsg.AlterConfigsResponse](k, 2, logger).Resources[0].ErrorMessage, "Unknown resource type 8")
}

// Configs of the broker and of the cluster are altered by both APIs, and are seen at once as the defaults of topics.
func TestAlterConfigsOfTheBroker(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	alter := func(name string, ops ...topic.ConfigOp) {
		t.Helper()
		got := ask[*kmsg.IncrementalAlterConfigsResponse](k, 1, incrementalRequest(kmsg.ConfigResourceTypeBroker, name, ops...)).Resources[0]
		wantCode(t, got.ErrorCode, nil)
	}
	want := func(value string, source kmsg.ConfigSource) {
		t.Helper()
		got := ask[*kmsg.DescribeConfigsResponse](k, 4, describeRequest(kmsg.ConfigResourceTypeTopic, "a", "retention.ms")).Resources[0].Configs[0]
		if *got.Value != value || got.Source != source {
			t.Errorf("retention.ms is %s of %v, want %s of %v", *got.Value, got.Source, value, source)
		}
	}
	alter("", topic.ConfigOp{Name: "log.retention.ms", Value: "5000"})
	want("5000", kmsg.ConfigSourceDynamicDefaultBrokerConfig)
	replace := replaceRequest("7", "log.retention.ms", "6000")
	replace.Resources[0].ResourceType = kmsg.ConfigResourceTypeBroker
	wantCode(t, ask[*kmsg.AlterConfigsResponse](k, 2, replace).Resources[0].ErrorCode, nil)
	want("6000", kmsg.ConfigSourceDynamicBrokerConfig)
	replace.Resources[0].Configs[0].Value = kmsg.StringPtr("x")
	got := ask[*kmsg.AlterConfigsResponse](k, 2, replace).Resources[0]
	wantCode(t, got.ErrorCode, kerr.InvalidRequest)
	wantText(t, got.ErrorMessage, "Invalid value x for configuration log.retention.ms: Not a number of type LONG")
	alter("7", topic.ConfigOp{Op: topic.OpDelete, Name: "log.retention.ms"})
	want("5000", kmsg.ConfigSourceDynamicDefaultBrokerConfig)
}

func TestAlterConfigsFailsWithTheCommit(t *testing.T) {
	var broken atomic.Bool
	k := newKitOn(t, crashfs.New(), func() error {
		if broken.Load() {
			return errors.New("no space left")
		}
		return nil
	})
	k.create("a", 1)
	broken.Store(true)
	wantCode(t, ask[*kmsg.AlterConfigsResponse](k, 2, replaceRequest("a", "flush.ms", "1")).Resources[0].ErrorCode, kerr.KafkaStorageError)
	k.wantOverrides("a", nil)
}
