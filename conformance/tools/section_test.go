package tools

import (
	"strings"
	"testing"
)

func TestSectionTellsCallsAndDifferencesOfEachTool(t *testing.T) {
	d := load(t, someDifferences)
	got := section("4.4.0", map[string]*tally{"kafka-topics": {calls: 3, same: 2, differs: []string{"internal topics", "internal topics"}}, "kafka-acls": {calls: 1, same: 1}}, d)
	for _, want := range []string{
		"Apache Kafka 4.4.0", "| `kafka-acls` | 1 | 1 |  |\n| `kafka-topics` | 3 | 2 | internal topics |\n", "| internal topics | has them | none | not needed |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
