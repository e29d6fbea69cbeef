package handler

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// sourceLogger is the source of a logger's level (DescribeConfigsResponse's DYNAMIC_BROKER_LOGGER_CONFIG).
const sourceLogger = config.Source(6)

// describeConfigs lists the configs of topics, of this broker and of the other
// resources that Kafka knows (ConfigHelper). A resource type that it does not know makes the whole request invalid.
func (h *Handler) describeConfigs(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.DescribeConfigsRequest)
	resp := kmsg.NewPtrDescribeConfigsResponse()
	resp.SetVersion(req.Version)
	known := !slices.ContainsFunc(body.Resources, func(r kmsg.DescribeConfigsRequestResource) bool {
		return !knownResource(r.ResourceType)
	})
	for i := range body.Resources {
		r := &body.Resources[i]
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		if !known {
			out.ErrorCode, out.ErrorMessage = kerr.InvalidRequest.Code, text(kerr.InvalidRequest)
			resp.Resources = append(resp.Resources, out)
			continue
		}
		entries, err := h.describeResource(r)
		out.ErrorCode, out.ErrorMessage = h.code(req, err), kafka.ErrorMessage(err)
		if err == nil || errors.Is(err, kerr.UnknownTopicOrPartition) {
			out.ErrorMessage = new(string) // Kafka's schema's default, where nothing sets it
		}
		out.Configs = configsOf(entries, r.ConfigNames, body)
		resp.Resources = append(resp.Resources, out)
	}
	return resp
}

// knownResource says whether Kafka has configs of a resource type.
func knownResource(t kmsg.ConfigResourceType) bool {
	switch t {
	case kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeBrokerLogger,
		kmsg.ConfigResourceTypeClientMetrics, kmsg.ConfigResourceTypeGroupConfig:
		return true
	}
	return false
}

// describeResource lists a resource's configs, by name.
func (h *Handler) describeResource(r *kmsg.DescribeConfigsRequestResource) ([]config.Entry, error) {
	switch r.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		return h.describeTopic(r.ResourceName)
	case kmsg.ConfigResourceTypeBroker:
		return h.describeBroker(r.ResourceName)
	case kmsg.ConfigResourceTypeBrokerLogger:
		return h.describeLogger(r.ResourceName)
	case kmsg.ConfigResourceTypeClientMetrics:
		return describeClientMetrics(r.ResourceName)
	}
	// No group has configs of its own, and there are no group coordinator settings to inherit from.
	if r.ResourceName == "" {
		return nil, kafka.Errorf(kerr.InvalidRequest, "Group name must not be empty")
	}
	return nil, nil
}

func (h *Handler) describeTopic(name string) ([]config.Entry, error) {
	if err := topic.ValidateName(name); err != nil {
		return nil, err
	}
	t, ok := h.Registry.Lookup(name)
	if !ok {
		return nil, kerr.UnknownTopicOrPartition
	}
	return config.DescribeTopic(h.Registry.Settings(), t.Overrides()), nil
}

// describeBroker lists this broker's configs. The empty name stands for the
// cluster-wide dynamic defaults.
func (h *Handler) describeBroker(name string) ([]config.Entry, error) {
	if name == "" {
		return config.DescribeCluster(h.Registry.Settings()), nil
	}
	id, err := brokerID(name)
	if err != nil {
		return nil, err
	}
	if id != h.NodeID {
		return nil, kafka.Errorf(kerr.InvalidRequest,
			"Unexpected broker id, expected %d or empty string, but received %s", h.NodeID, name)
	}
	return config.DescribeBroker(h.Registry.Settings()), nil
}

// describeLogger lists the one logger there is, under Kafka's name for it.
func (h *Handler) describeLogger(name string) ([]config.Entry, error) {
	if name == "" {
		return nil, kafka.Errorf(kerr.InvalidRequest, "Broker id must not be empty")
	}
	id, err := brokerID(name)
	if err != nil {
		return nil, err
	}
	if id != h.NodeID {
		return nil, kafka.Errorf(kerr.InvalidRequest, "Unexpected broker id, expected %d but received %s", h.NodeID, name)
	}
	level := strings.ToUpper(h.Settings.LogLevel)
	return []config.Entry{{Name: "root", Value: &level, Source: sourceLogger, Type: config.TypeUnknown}}, nil
}

// describeClientMetrics answers any name, as Kafka does, with a subscription's
// defaults (KIP-714): none exist.
func describeClientMetrics(name string) ([]config.Entry, error) {
	if name == "" {
		return nil, kafka.Errorf(kerr.InvalidRequest, "Client metrics subscription name must not be empty")
	}
	entry := func(name, value string, t config.Type, doc string) config.Entry {
		return config.Entry{Name: name, Value: &value, Source: config.SourceDefault, Type: t, Doc: doc}
	}
	return []config.Entry{
		entry("interval.ms", "300000", config.TypeInt, "How often a client pushes its metrics, in milliseconds."),
		entry("match", "", config.TypeList, "Which clients push: pairs of a selector and a regular expression."),
		entry("metrics", "", config.TypeList, "Prefixes of the names of the metrics that are pushed."),
	}, nil
}

// brokerID reads a resource name that is a broker id.
func brokerID(name string) (int32, error) {
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil {
		return 0, kafka.Errorf(kerr.InvalidRequest, "Broker id must be an integer, but it is: %s", name)
	}
	return int32(id), nil
}

// configsOf puts the entries that are asked for into the response. No names,
// null or an empty list, mean all; names that there are not are ignored.
func configsOf(entries []config.Entry, names []string, body *kmsg.DescribeConfigsRequest) []kmsg.DescribeConfigsResponseResourceConfig {
	out := make([]kmsg.DescribeConfigsResponseResourceConfig, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		if len(names) > 0 && !slices.Contains(names, e.Name) {
			continue
		}
		c := kmsg.NewDescribeConfigsResponseResourceConfig()
		c.Name, c.Value, c.ReadOnly, c.IsSensitive = e.Name, e.Value, e.ReadOnly, e.Sensitive
		c.Source, c.ConfigType = kmsg.ConfigSource(e.Source), kmsg.ConfigType(e.Type)
		if body.IncludeDocumentation && e.Doc != "" || e.Source == sourceLogger { // a logger's is "" in any case
			c.Documentation = &e.Doc
		}
		if body.IncludeSynonyms {
			for _, s := range e.Synonyms {
				synonym := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
				synonym.Name, synonym.Value, synonym.Source = s.Name, s.Value, kmsg.ConfigSource(s.Source)
				c.ConfigSynonyms = append(c.ConfigSynonyms, synonym)
			}
		}
		out = append(out, c)
	}
	return out
}
