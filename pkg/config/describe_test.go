package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// show renders an entry: name=value source, then its synonyms.
func show(all []Entry, name string) string {
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return "none"
	}
	text := func(v *string) string {
		if v == nil {
			return "null"
		}
		return *v
	}
	e := all[i]
	b := fmt.Sprintf("%s %d", text(e.Value), e.Source)
	for _, y := range e.Synonyms {
		b += fmt.Sprintf(" [%s=%s %d]", y.Name, text(y.Value), y.Source)
	}
	return b
}

// The rules of ConfigHelper, reference 5.5.
func TestDescribeTopicTellsSourcesAndSynonyms(t *testing.T) {
	s, _, err := Parse([]string{"--segment-bytes=128MiB", "--retention-ms=9"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := DescribeTopic(s, map[string]string{"cleanup.policy": " compact , delete", "retention.ms": "+7", "preallocate": "TRUE"})
	for name, want := range map[string]string{
		"cleanup.policy":                        "compact,delete 1 [cleanup.policy=compact,delete 1] [log.cleanup.policy=delete 5]",
		"retention.ms":                          "7 1 [retention.ms=7 1] [log.retention.ms=9 4] [log.retention.hours=-1 5]",
		"preallocate":                           "true 1 [preallocate=true 1] [log.preallocate=false 5]",
		"segment.bytes":                         "134217728 4 [log.segment.bytes=134217728 4] [log.segment.bytes=134217728 5]",
		"segment.ms":                            "604800000 5",
		"segment.jitter.ms":                     "0 5",
		"flush.ms":                              "9223372036854775807 5",
		"min.cleanable.dirty.ratio":             "0.0 5 [log.cleaner.min.cleanable.ratio=0.0 5]",
		"remote.storage.enable":                 "false 5",
		"leader.replication.throttled.replicas": " 5",
		"internal.segment.bytes":                "none",
	} {
		if show(got, name) != want {
			t.Errorf("%s: %s, want %s", name, show(got, name), want)
		}
	}
	if hidden := show(DescribeTopic(s, map[string]string{"internal.segment.bytes": "5"}), "internal.segment.bytes"); hidden != "5 1 [internal.segment.bytes=5 1]" {
		t.Errorf("internal.segment.bytes: %s", hidden)
	}
	if len(got) != 37 || !slices.IsSortedFunc(got, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d configs", len(got))
	}
	for _, e := range got {
		if e.Doc == "" || e.Type == TypeUnknown || e.Value == nil || e.ReadOnly {
			t.Errorf("%+v", e)
		}
	}
}
