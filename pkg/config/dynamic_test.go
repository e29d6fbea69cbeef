package config

import (
	"maps"
	"slices"
	"testing"
)

// Recorded from Kafka: the broker's own value wins over the cluster's, over a static one, over the default.
func TestDynamicConfigsAreDefaultsOfTopics(t *testing.T) {
	static, _, err := Parse([]string{"--retention-ms=9"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := static.WithDynamic(Dynamic{
		Broker:  map[string]string{"log.retention.ms": "-5", "log.roll.ms": " 77 ", "x.custom": "secret"},
		Cluster: map[string]string{"log.retention.ms": "8", "log.cleanup.policy": " compact , delete ", "min.insync.replicas": "1", "x.custom": "secret"},
	})
	topic, broker, cluster := DescribeTopic(s, map[string]string{"segment.ms": "1"}), DescribeBroker(s), DescribeCluster(s)
	for _, x := range []struct {
		all        []Entry
		name, want string
	}{
		{topic, "retention.ms", "-1 2 [log.retention.ms=-5 2] [log.retention.ms=8 3] [log.retention.ms=9 4] [log.retention.hours=-1 5]"},
		{topic, "segment.ms", "1 1 [segment.ms=1 1] [log.roll.ms= 77  2] [log.roll.hours=168 5]"},
		{topic, "cleanup.policy", "compact,delete 3 [log.cleanup.policy= compact , delete  3] [log.cleanup.policy=delete 5]"},
		{topic, "min.insync.replicas", "1 3 [min.insync.replicas=1 3] [min.insync.replicas=1 5]"},
		{broker, "log.retention.ms", "-5 2 [log.retention.ms=-5 2] [log.retention.ms=8 3] [log.retention.ms=9 4] [log.retention.hours=-1 5]"},
		{broker, "log.roll.ms", "77 2 [log.roll.ms= 77  2] [log.roll.hours=168 5]"},
		{broker, "log.roll.hours", "168 5 [log.roll.hours=168 5]"},
		{broker, "x.custom", "null 2 [x.custom=null 2] [x.custom=null 3]"},
		{cluster, "log.retention.ms", "8 3 [log.retention.ms=8 3]"},
		{cluster, "x.custom", "null 3 [x.custom=null 3]"},
		{cluster, "log.roll.ms", "none"},
	} {
		if got := show(x.all, x.name); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
	c, err := EffectiveTopic(s, nil)
	if err != nil || c.RetentionMs != -1 || c.SegmentMs != 77 || !c.CleanupCompact || !c.CleanupDelete {
		t.Errorf("%+v, %v", c, err)
	}
	if c, _ := EffectiveTopic(static, nil); c.RetentionMs != 9 || c.CleanupCompact {
		t.Errorf("the settings they were made of changed: %+v", c)
	}
	if len(cluster) != 4 {
		t.Errorf("%d configs of the cluster", len(cluster))
	}
}

// Recorded from Kafka: alter-configs-broker.
func TestValidateDynamic(t *testing.T) {
	for _, x := range []struct {
		cluster bool
		configs map[string]string
		want    string
	}{
		{true, map[string]string{"log.retention.ms": "1", "x.custom": "2", "min.insync.replicas": "2"}, ""},
		{false, map[string]string{"num.partitions": "5", "node.id": "1", "log.dirs": "/x", "message.max.bytes": "x"}, "Cannot update these configs dynamically: [node.id, num.partitions, log.dirs]"},
		{true, map[string]string{"log.retention.hours": "1"}, "Cannot update these configs dynamically: [log.retention.hours]"},
		{true, map[string]string{"listeners": "A://:1"}, "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"},
		{false, map[string]string{"listeners": "A://:1"}, "Cannot update these configs dynamically: [listeners]"},
		{false, map[string]string{"listener.name.a.max.connections": "1"}, "Cannot update these configs dynamically: [listener.name.a.max.connections]"},
		{false, map[string]string{"max.connections": "1"}, "Cannot update these configs dynamically: [max.connections]"},
		{true, map[string]string{"ssl.keystore.location": "/x", "message.max.bytes": "x"},
			"These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.location]"},
		{false, map[string]string{"log.retention.ms": "0"}, "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"},
		{false, map[string]string{"log.roll.ms": "0"}, "requirement failed: log.roll.ms must be greater than or equal to 1"},
		{false, map[string]string{"log.roll.jitter.ms": "-1"}, "requirement failed: log.roll.jitter.ms must be greater than or equal to 0"},
		{false, map[string]string{"log.segment.bytes": "5"}, "Invalid value 5 for configuration log.segment.bytes: Value must be at least 1048576"},
		{false, map[string]string{"log.cleanup.policy": "delete,delete"}, "Configuration 'log.cleanup.policy' values must not be duplicated."},
	} {
		got := ""
		if err := ValidateDynamic(x.cluster, x.configs); err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%v: %s, want %s", x.configs, got, x.want)
		}
	}
}

// What another version stored fails no start.
func TestWithoutInvalid(t *testing.T) {
	stored := map[string]string{"log.retention.ms": "5", "message.max.bytes": "x", "node.id": "1", "listeners": "A://:1", "x.custom": ""}
	valid, left := WithoutInvalid(true, stored)
	if !maps.Equal(valid, map[string]string{"log.retention.ms": "5", "x.custom": ""}) || !slices.Equal(left, []string{"listeners", "message.max.bytes", "node.id"}) || len(stored) != 5 {
		t.Errorf("%v, left %v", valid, left)
	}
}

func TestDynamicList(t *testing.T) {
	for name, want := range map[string]struct {
		value       string
		list, known bool
	}{"log.cleanup.policy": {"delete", true, true}, "message.max.bytes": {"", false, true}, "num.partitions": {"", false, true}, "x": {"", false, false}} {
		if value, list, known := DynamicList(name); value != want.value || list != want.list || known != want.known {
			t.Errorf("%s: %q %v %v", name, value, list, known)
		}
	}
}

// Every property that topics take a default of is one of Kafka's, and dynamic there too.
func TestDefaultsOfTopicsAreDynamicInKafka(t *testing.T) {
	if n := len(kafkaProperties()); n < 340 {
		t.Errorf("%d properties", n)
	}
	for i := range topicConfigs {
		for k, b := range topicConfigs[i].broker {
			if p, known := kafkaProperties()[b.name]; !known || p.dynamic != (k == 0) {
				t.Errorf("%s: %+v, %v", b.name, p, known)
			}
		}
	}
}
