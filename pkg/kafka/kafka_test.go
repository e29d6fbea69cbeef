package kafka

import "testing"

func TestTopicPartitionIsNamedAsItsDirectory(t *testing.T) {
	for want, tp := range map[string]TopicPartition{
		"demo-0":       {Topic: "demo"},
		"a-b.c_d-2147": {Topic: "a-b.c_d", Partition: 2147},
	} {
		if got := tp.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
