package config

import "testing"

func TestDescribeBrokerUsesKafkasNames(t *testing.T) {
	s, _, err := Parse([]string{"--node-id=7"}, []string{"DOZE_KAFKA_SEGMENT_MS=5000", "DOZE_KAFKA_OFFSETS_RETENTION_MINUTES=60", "DOZE_KAFKA_LISTENERS=IN://:1,OUT://h:2"})
	if err != nil {
		t.Fatal(err)
	}
	got := DescribeBroker(s)
	for name, want := range map[string]string{
		"node.id":                          "7 4 [node.id=7 4] [node.id=1 5]",
		"listener.security.protocol.map":   "IN:PLAINTEXT,OUT:PLAINTEXT 4 [listener.security.protocol.map=IN:PLAINTEXT,OUT:PLAINTEXT 4] [listener.security.protocol.map=PLAINTEXT:PLAINTEXT 5]",
		"num.partitions":                   "1 5 [num.partitions=1 5]",
		"log.roll.ms":                      "5000 4 [log.roll.ms=5000 4] [log.roll.hours=168 5]",
		"log.roll.hours":                   "168 5 [log.roll.hours=168 5]",
		"log.retention.ms":                 "null 5",
		"log.retention.minutes":            "null 5",
		"log.retention.hours":              "-1 5 [log.retention.hours=-1 5]",
		"message.max.bytes":                "1048588 5 [message.max.bytes=1048588 5]",
		"group.initial.rebalance.delay.ms": "20 5 [group.initial.rebalance.delay.ms=20 5]", // FX-4
		"group.min.session.timeout.ms":     "100 5 [group.min.session.timeout.ms=100 5]",
		"group.max.session.timeout.ms":     "1800000 5 [group.max.session.timeout.ms=1800000 5]",
		"group.max.size":                   "2147483647 5 [group.max.size=2147483647 5]",
		"offsets.retention.minutes":        "60 4 [offsets.retention.minutes=60 4] [offsets.retention.minutes=10080 5]",
		"offset.metadata.max.bytes":        "4096 5 [offset.metadata.max.bytes=4096 5]",
		"delete.topic.enable":              "true 5 [delete.topic.enable=true 5]",
	} {
		if show(got, name) != want {
			t.Errorf("%s: %s, want %s", name, show(got, name), want)
		}
	}
	for i, e := range got {
		if e.ReadOnly != (dynamicProperty(e.Name) == nil) || e.Doc == "" || e.Type == TypeUnknown || i > 0 && got[i-1].Name >= e.Name {
			t.Errorf("%+v", e)
		}
	}
}
