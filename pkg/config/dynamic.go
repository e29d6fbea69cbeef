package config

import (
	"maps"
	"slices"
	"strings"
)

// Dynamic are configs of the broker that were altered while it ran (KIP-226),
// as they were given: those of this broker, which win, and those of the whole
// cluster. Neither map is to be changed.
type Dynamic struct{ Broker, Cluster map[string]string }

// FirstCluster are the configs that a new cluster begins with: Kafka's controller sets
// this one, as it is in server.properties, when storage is formatted, and lets it be altered but not deleted
// (ConfigurationControlManager, while ELR is enabled).
func FirstCluster(s *Settings) map[string]string {
	return map[string]string{MinInsyncReplicas: topicConfigByName[MinInsyncReplicas].defaultValue(s)}
}

// MinInsyncReplicas has rules of its own among the dynamic configs.
const MinInsyncReplicas = "min.insync.replicas"

// WithDynamic is a copy of the settings under which these configs have their
// effect: on the defaults of topics (EffectiveTopic, ValidateTopic) and on what is described.
func (s *Settings) WithDynamic(d Dynamic) *Settings {
	c := *s
	c.dynamic = d
	return &c
}

// Dynamic are the dynamic configs of these settings.
func (s *Settings) Dynamic() Dynamic { return s.dynamic }

// value is a property's value, this broker's before the cluster's.
func (d *Dynamic) value(name string) (string, bool) {
	if v, ok := d.Broker[name]; ok {
		return v, true
	}
	v, ok := d.Cluster[name]
	return v, ok
}

// synonyms are the places that give a property a value, highest precedence first.
func (d *Dynamic) synonyms(name string) []Synonym {
	var all []Synonym
	if v, ok := d.Broker[name]; ok {
		all = append(all, Synonym{name, &v, SourceDynamicBroker})
	}
	if v, ok := d.Cluster[name]; ok {
		all = append(all, Synonym{name, &v, SourceDynamicCluster})
	}
	return all
}

// dynamicProperty is the topic config whose default a property of the broker
// is, if it can be altered while the broker runs: of each the first, as in Kafka
// (ServerTopicConfigSynonyms), so log.retention.ms and not log.retention.hours.
func dynamicProperty(name string) *topicConfig {
	i := slices.IndexFunc(topicConfigs, func(c topicConfig) bool { return len(c.broker) > 0 && c.broker[0].name == name })
	if i < 0 {
		return nil
	}
	return &topicConfigs[i]
}

// DynamicList says whether a property is one of Kafka's and whether it is a
// list, and if so, Kafka's default, which appending to it starts from.
func DynamicList(name string) (value string, list, known bool) {
	_, known = kafkaProperties()[name]
	if c := dynamicProperty(name); c != nil && c.typ == TypeList {
		return c.def, true, true
	}
	return "", false, known
}

// ValidateDynamic checks all configs that this broker, or else the whole
// cluster, is to have, as DynamicBrokerConfig.validateConfigs does. Names that
// are none of Kafka's are left to plugins, and so accepted. The error is an
// *InvalidError with Kafka's text, which Kafka sends as INVALID_REQUEST (KAFKA-13609).
func ValidateDynamic(cluster bool, configs map[string]string) error {
	names := javaOrder(configs)
	refuse := func(text string, which func(string) bool) error {
		refused := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !which(name) })
		if len(refused) == 0 {
			return nil
		}
		return &InvalidError{text + ": [" + strings.Join(refused, ", ") + "]"}
	}
	const never = "Cannot update these configs dynamically"
	if err := refuse(never, func(name string) bool { p, known := kafkaProperties()[name]; return known && !p.dynamic }); err != nil {
		return err
	}
	err := refuse("These security configs can be dynamically updated only per-listener using the listener prefix", isTLS)
	if err != nil {
		return err
	}
	for i := range topicConfigs { // in the order of the table, which is about Kafka's
		c := &topicConfigs[i]
		if len(c.broker) == 0 {
			continue
		}
		if raw, ok := configs[c.broker[0].name]; ok {
			if _, err := c.parseProperty(raw); err != nil {
				return err
			}
		}
	}
	if cluster {
		if err := refuse("Cannot update these configs at default cluster level, broker id must be specified", ofOneBroker); err != nil {
			return err
		}
	}
	// What Kafka could change and this broker does not have.
	return refuse(never, func(name string) bool {
		return ofListener(name) || kafkaProperties()[name].dynamic && dynamicProperty(name) == nil
	})
}

// WithoutInvalid leaves out, and lists, the configs that ValidateDynamic
// refuses one by one: another version stored them.
func WithoutInvalid(cluster bool, configs map[string]string) (valid map[string]string, left []string) {
	valid = maps.Clone(configs)
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		if ValidateDynamic(cluster, map[string]string{name: configs[name]}) != nil {
			delete(valid, name)
			left = append(left, name)
		}
	}
	return valid, left
}

// isTLS says of a property whether it belongs to SslConfigs.RECONFIGURABLE_CONFIGS.
func isTLS(name string) bool {
	return strings.HasPrefix(name, "ssl.keystore.") || strings.HasPrefix(name, "ssl.truststore.") || name == "ssl.key.password"
}

func ofListener(name string) bool { return strings.HasPrefix(name, "listener.name.") }

// ofOneBroker says of a property whether it can be altered for one broker only.
func ofOneBroker(name string) bool {
	for _, prefix := range []string{"ssl.", "sasl."} {
		if strings.HasPrefix(name, prefix) && kafkaProperties()[name].dynamic {
			return true
		}
	}
	if ofListener(name) {
		return true
	}
	return slices.Contains([]string{"listeners", "listener.security.protocol.map", "principal.builder.class", "cordoned.log.dirs"}, name)
}

// parseProperty reads a value of the property that is the config's default. Some
// checks of Kafka's broker are not those of topics.
func (c *topicConfig) parseProperty(raw string) (value, error) {
	name := c.broker[0].name
	v, err := parse(name, raw, c.typ)
	if err != nil {
		return v, err
	}
	check := c.check
	switch name {
	case "log.retention.ms":
		check = func(string, *value) error {
			return require(v.number != 0, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
		}
	case "log.roll.ms":
		check = func(string, *value) error {
			return require(v.number >= 1, "log.roll.ms must be greater than or equal to 1")
		}
	case "log.roll.jitter.ms":
		check = func(string, *value) error {
			return require(v.number >= 0, "log.roll.jitter.ms must be greater than or equal to 0")
		}
	}
	if check == nil {
		return v, nil
	}
	given := len(v.list)
	if err := check(name, &v); err != nil {
		return v, err
	}
	if len(v.list) < given { // a topic's would be dropped
		return v, &InvalidError{"Configuration '" + name + "' values must not be duplicated."}
	}
	return v, nil
}

// require is Scala's.
func require(ok bool, text string) error {
	if ok {
		return nil
	}
	return &InvalidError{"requirement failed: " + text}
}

// dynamicDefault is the config's value where the property behind it was altered.
func (c *topicConfig) dynamicDefault(s *Settings) (string, bool) {
	if len(c.broker) == 0 {
		return "", false
	}
	raw, ok := s.dynamic.value(c.broker[0].name)
	if v, err := c.parseProperty(raw); ok && err == nil && c.name == "retention.ms" && v.number < 0 {
		return "-1", true // KafkaConfig.logRetentionTimeMillis
	}
	return raw, ok
}

// javaOrder are the names in the order in which Kafka lists some of them: that
// of Java's HashSet of up to a dozen, by the low bits of their hash codes.
func javaOrder(configs map[string]string) []string {
	bucket := func(name string) uint32 {
		var h uint32
		for _, c := range name { // names of Kafka's are ASCII
			h = 31*h + uint32(c)
		}
		return (h ^ h>>16) % 16
	}
	names := slices.Sorted(maps.Keys(configs))
	slices.SortStableFunc(names, func(a, b string) int { return int(bucket(a)) - int(bucket(b)) })
	return names
}
