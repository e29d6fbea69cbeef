package config

import (
	"cmp"
	"slices"
)

// A Source is where a value comes from, numbered as DescribeConfigs does.
type Source int8

// The sources that a config of this broker can have.
const (
	SourceTopic          Source = 1 // set on the topic
	SourceDynamicBroker  Source = 2 // altered while the broker ran, for it
	SourceDynamicCluster Source = 3 // the same, for the whole cluster
	SourceStatic         Source = 4 // a setting of the broker
	SourceDefault        Source = 5
)

// A Synonym is one place that gives, or would give, a config its value.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}

// An Entry is one config as DescribeConfigs and CreateTopics tell of it.
type Entry struct {
	Name      string
	Value     *string // nil: sensitive, or none
	Source    Source
	ReadOnly  bool
	Sensitive bool
	Type      Type
	Doc       string
	Synonyms  []Synonym // highest precedence first
}

// DescribeTopic lists every topic config, a hidden one only if it is set, by name, with the overrides of one
// topic (ConfigHelper.createTopicConfigEntry). The source of an entry is that of its first
// synonym; values are in the form of ConfigDef.convertToString.
func DescribeTopic(s *Settings, overrides map[string]string) []Entry {
	all := make([]Entry, 0, len(topicConfigs))
	for i := range topicConfigs {
		c := &topicConfigs[i]
		raw, set := overrides[c.name]
		if c.hidden && !set {
			continue
		}
		e := Entry{Name: c.name, Type: c.typ, Doc: c.doc, Source: SourceDefault}
		if !set {
			raw = c.defaultValue(s)
		}
		if v, err := c.parse(raw); err == nil {
			raw = v.String()
		}
		e.Value = &raw
		if set {
			e.Synonyms = append(e.Synonyms, Synonym{c.name, e.Value, SourceTopic})
		}
		e.Synonyms = append(e.Synonyms, c.brokerSynonyms(s)...)
		if len(e.Synonyms) > 0 {
			e.Source = e.Synonyms[0].Source
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// brokerSynonyms are the broker properties behind a topic config. Those
// before the primary one are dropped, as ConfigHelper does: with log.retention.ms unset,
// log.retention.hours is not listed although it gives the value.
func (c *topicConfig) brokerSynonyms(s *Settings) []Synonym {
	if len(c.broker) == 0 {
		return nil
	}
	return startingWith(c.broker[0].name, c.properties(s))
}

// startingWith drops the synonyms before the first of this name.
func startingWith(name string, all []Synonym) []Synonym {
	for i, y := range all {
		if y.Name == name {
			return all[i:]
		}
	}
	return nil
}

// properties are the broker properties behind a topic config as the broker
// itself lists them: what is set, then the defaults that are not null.
func (c *topicConfig) properties(s *Settings) []Synonym {
	var all []Synonym
	if len(c.broker) > 0 { // of the others none can be altered
		all = s.dynamic.synonyms(c.broker[0].name)
	}
	if c.setting != "" && s.given(c.setting) {
		v := c.canonical(c.from(s))
		all = append(all, Synonym{c.broker[0].name, &v, SourceStatic})
	}
	if raw, ok := c.propertyValue(s); ok {
		all = append(all, Synonym{c.broker[0].name, &raw, SourceStatic})
	}
	for _, b := range c.broker {
		if d := c.propertyDefault(b); d != nil {
			all = append(all, Synonym{b.name, d, SourceDefault})
		}
	}
	return all
}

// propertyDefault is a property's default: nil for none.
func (c *topicConfig) propertyDefault(b synonymDef) *string {
	d := b.def
	if len(c.broker) == 1 {
		d = c.canonical(c.defaultValue(defaults))
	}
	if d == "" && c.typ != TypeList {
		return nil
	}
	return &d
}

func (c *topicConfig) canonical(raw string) string {
	if v, err := c.parse(raw); err == nil {
		return v.String()
	}
	return raw
}
