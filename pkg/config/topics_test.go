package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func showSeeds(seeds []Seed, err error) string {
	if err != nil {
		return err.Error()
	}
	var b []string
	for _, s := range seeds {
		t := fmt.Sprintf("%s:%d", s.Name, s.Partitions)
		for _, k := range slices.Sorted(maps.Keys(s.Configs)) {
			t += " " + k + "=" + s.Configs[k]
		}
		b = append(b, t)
	}
	return strings.Join(b, "; ")
}

// FX-5: the grammar of TOPICS.
func TestParseTopics(t *testing.T) {
	for in, want := range map[string]string{
		"": "",
		"orders:3,audit:1:cleanup.policy=compact":                "orders:3; audit:1 cleanup.policy=compact",
		"audit:1:cleanup.policy=compact,delete":                  "audit:1 cleanup.policy=compact,delete",
		"audit:1:cleanup.policy=compact,delete;retention.ms=5,b": `topic "audit": Invalid value 5,b for configuration retention.ms: Not a number of type LONG`,
		"a::retention.ms=5,b:2":                                  "a:-1 retention.ms=5; b:2",
		" a , b:2 ,,c":                                           "a:-1; b:2; c:-1",
		"a:1:":                                                   "a:1",
		"a,a:2":                                                  `topic "a:2": is there twice`,
		"a:x":                                                    `topic "a:x": partitions "x": want a number from 1 to 10000`,
		"a:1:b":                                                  `topic "a:1:b": config "b" is not name=value`,
		"a/b":                                                    `topic "a/b": 'a/b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'`,
		"..:1,x:0":                                               `topic "..:1": '..' is not allowed; topic "x:0": partitions "0": want a number from 1 to 10000`,
		":3":                                                     `topic ":3": the empty string is not allowed`,
		"a:1:foo=bar":                                            `topic "a": Unknown topic config name: foo`,
	} {
		s := Default()
		s.Topics = in
		if got := showSeeds(ParseTopics(s)); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", in, got, want)
		}
	}
}

// FX-5: KAFKA_CREATE_TOPICS, name:partitions:replicas[:policy].
func TestParseCreateTopics(t *testing.T) {
	for in, want := range map[string]string{
		"Topic1:1:3,Topic2:1:1:compact": "Topic1:1; Topic2:1 cleanup.policy=compact",
		"a:1:1\n b:2:1\n":               "a:1; b:2",
		"a:1:1:compact,delete,b:2:1":    "a:1 cleanup.policy=compact,delete; b:2",
		"a:1:1,delete":                  `topic "delete": want name:partitions:replicas[:policy]`,
		"a":                             `topic "a": want name:partitions:replicas[:policy]`,
		"a:1:0":                         `topic "a:1:0": replicas "0": want a number of at least 1`,
		"a:1:1:shrink":                  `topic "a:1:1:shrink": Invalid value shrink for configuration cleanup.policy: String must be one of: compact, delete`,
	} {
		if got := showSeeds(ParseCreateTopics(in)); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", in, got, want)
		}
	}
}

func FuzzParseTopics(f *testing.F) {
	f.Add("orders:3,audit:1:cleanup.policy=compact,delete")
	f.Fuzz(func(t *testing.T, v string) {
		s := Default()
		s.Topics = v
		seeds, err := ParseTopics(s)
		if err != nil && len(seeds) > 0 {
			t.Fatal("seeds beside an error")
		}
		for _, seed := range seeds {
			if TopicNameProblem(seed.Name) != "" {
				t.Fatalf("%q: name %q", v, seed.Name)
			}
		}
		_, _ = ParseCreateTopics(v)
	})
}

// FX-5: KAFKA_CREATE_TOPICS makes topics as TOPICS does; a topic that both name is as TOPICS says.
func TestCreateTopicsVariableIsRead(t *testing.T) {
	s, _, err := Parse(nil, []string{"KAFKA_CREATE_TOPICS=a:2:1,b:3:1:compact", "DOZE_KAFKA_TOPICS=a:5"})
	if err != nil {
		t.Fatal(err)
	}
	seeds, err := ParseTopics(s)
	if err != nil {
		t.Fatal(err)
	}
	want := []Seed{{Name: "a", Partitions: 5}, {Name: "b", Partitions: 3, Configs: map[string]string{"cleanup.policy": "compact"}}}
	if !reflect.DeepEqual(seeds, want) {
		t.Errorf("%+v", seeds)
	}
	if _, err := ParseCreateTopics("a:1:1,a:2:1"); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
	_, _, err = Parse(nil, []string{"KAFKA_CREATE_TOPICS=a:none:1"})
	if err == nil || !strings.Contains(err.Error(), "KAFKA_CREATE_TOPICS=a:none:1") {
		t.Error(err)
	}
}
