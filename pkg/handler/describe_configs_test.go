package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/config"
)

func describeRequest(kind kmsg.ConfigResourceType, name string, keys ...string) *kmsg.DescribeConfigsRequest {
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kind, name, keys
	req.Resources = append(req.Resources, r)
	return req
}

func TestDescribeConfigsOfATopic(t *testing.T) {
	k := newKit(t)
	k.create("a", 1, "cleanup.policy", "compact")
	k.eachVersion(kmsg.DescribeConfigs, func(t *testing.T, version int16) {
		for _, all := range [][]string{nil, {}} {
			resp := ask[*kmsg.DescribeConfigsResponse](k, version, describeRequest(kmsg.ConfigResourceTypeTopic, "a", all...))
			got := &resp.Resources[0]
			wantCode(t, got.ErrorCode, nil)
			wantText(t, got.ErrorMessage, "")
			if len(got.Configs) != len(config.DescribeTopic(k.Settings, nil)) || got.ResourceName != "a" || got.ResourceType != 2 {
				t.Fatalf("%+v", got)
			}
			for _, c := range got.Configs {
				if c.Documentation != nil || len(c.ConfigSynonyms) != 0 || c.ReadOnly {
					t.Fatalf("%+v", c)
				}
			}
		}
		req := describeRequest(kmsg.ConfigResourceTypeTopic, "a", "no.such", "cleanup.policy")
		req.IncludeSynonyms, req.IncludeDocumentation = true, true
		got := ask[*kmsg.DescribeConfigsResponse](k, version, req).Resources[0].Configs
		if len(got) != 1 || got[0].Name != "cleanup.policy" || *got[0].Value != "compact" || got[0].Source != 1 {
			t.Fatalf("%+v", got)
		}
		if s := got[0].ConfigSynonyms; len(s) < 2 || s[0].Name != "cleanup.policy" || s[0].Source != 1 || s[1].Name != "log.cleanup.policy" {
			t.Fatalf("synonyms %+v", got[0].ConfigSynonyms)
		}
		if version >= 3 && (got[0].ConfigType != 7 || got[0].Documentation == nil || *got[0].Documentation == "") {
			t.Fatalf("%+v", got[0])
		}
	})
}

func TestDescribeConfigsOfTheBroker(t *testing.T) {
	k := newKit(t)
	k.eachVersion(kmsg.DescribeConfigs, func(t *testing.T, version int16) {
		got := ask[*kmsg.DescribeConfigsResponse](k, version, describeRequest(kmsg.ConfigResourceTypeBroker, "7")).Resources[0]
		wantCode(t, got.ErrorCode, nil)
		if len(got.Configs) == 0 {
			t.Fatal("no configs")
		}
		got = ask[*kmsg.DescribeConfigsResponse](k, version, describeRequest(kmsg.ConfigResourceTypeBroker, "")).Resources[0]
		wantCode(t, got.ErrorCode, nil)
		if len(got.Configs) != 1 || got.Configs[0].Name != "min.insync.replicas" || got.Configs[0].Source != kmsg.ConfigSourceDynamicDefaultBrokerConfig {
			t.Fatalf("cluster-wide defaults %+v", got.Configs)
		}
	})
}

func TestDescribeConfigsErrorsPerResource(t *testing.T) {
	k := newKit(t)
	for _, c := range []struct {
		kind kmsg.ConfigResourceType
		name string
		want *kerr.Error
		text string
	}{
		{kmsg.ConfigResourceTypeTopic, "missing", kerr.UnknownTopicOrPartition, ""},
		{kmsg.ConfigResourceTypeBroker, "8", kerr.InvalidRequest, "Unexpected broker id, expected 7 or empty string, but received 8"},
		{kmsg.ConfigResourceTypeBroker, "x", kerr.InvalidRequest, "Broker id must be an integer, but it is: x"},
		{kmsg.ConfigResourceTypeBrokerLogger, "", kerr.InvalidRequest, "Broker id must not be empty"},
		{kmsg.ConfigResourceTypeBrokerLogger, "8", kerr.InvalidRequest, "Unexpected broker id, expected 7 but received 8"},
		{kmsg.ConfigResourceTypeClientMetrics, "", kerr.InvalidRequest, "Client metrics subscription name must not be empty"},
		{kmsg.ConfigResourceTypeGroupConfig, "", kerr.InvalidRequest, "Group name must not be empty"},
	} {
		req := describeRequest(c.kind, c.name)
		req.Resources = append(req.Resources, describeRequest(kmsg.ConfigResourceTypeBroker, "7").Resources...)
		resp := ask[*kmsg.DescribeConfigsResponse](k, 4, req)
		wantCode(t, resp.Resources[0].ErrorCode, c.want)
		wantText(t, resp.Resources[0].ErrorMessage, c.text)
		wantCode(t, resp.Resources[1].ErrorCode, nil)
	}
	bad := ask[*kmsg.DescribeConfigsResponse](k, 4, describeRequest(kmsg.ConfigResourceTypeTopic, "a b")).Resources[0]
	wantCode(t, bad.ErrorCode, kerr.InvalidTopicException)
	if bad.ErrorMessage == nil || *bad.ErrorMessage == "" {
		t.Fatal("a bad name has no text")
	}
}

// An unknown type makes the whole request invalid.
func TestDescribeConfigsRefusesUnknownTypes(t *testing.T) {
	k := newKit(t)
	for _, kind := range []kmsg.ConfigResourceType{0, 1, 3, 64} {
		req := describeRequest(kind, "x")
		req.Resources = append(req.Resources, describeRequest(kmsg.ConfigResourceTypeBroker, "7").Resources...)
		for _, r := range ask[*kmsg.DescribeConfigsResponse](k, 4, req).Resources {
			wantCode(t, r.ErrorCode, kerr.InvalidRequest)
			wantText(t, r.ErrorMessage, kerr.InvalidRequest.Description)
			if len(r.Configs) != 0 {
				t.Fatalf("%+v", r)
			}
		}
	}
}

func TestDescribeConfigsOfOtherResources(t *testing.T) {
	k := newKit(t, func(s *config.Settings) { s.LogLevel = "warn" })
	logger := ask[*kmsg.DescribeConfigsResponse](k, 4, describeRequest(kmsg.ConfigResourceTypeBrokerLogger, "7")).Resources[0].Configs
	if len(logger) != 1 || logger[0].Name != "root" || *logger[0].Value != "WARN" || logger[0].Source != 6 || logger[0].ReadOnly {
		t.Fatalf("%+v", logger)
	}
	metrics := ask[*kmsg.DescribeConfigsResponse](k, 4, describeRequest(kmsg.ConfigResourceTypeClientMetrics, "any")).Resources[0].Configs
	if len(metrics) != 3 || metrics[0].Name != "interval.ms" || *metrics[0].Value != "300000" || metrics[0].Source != 5 || metrics[0].ConfigType != 3 {
		t.Fatalf("%+v", metrics)
	}
	group := ask[*kmsg.DescribeConfigsResponse](k, 4, describeRequest(kmsg.ConfigResourceTypeGroupConfig, "any")).Resources[0]
	wantCode(t, group.ErrorCode, nil)
}
