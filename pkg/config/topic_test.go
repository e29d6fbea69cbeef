package config

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// The transcript was recorded from LogConfig of Kafka 4.4.0: overrides, then
// the error's text, or the values as they are described.
func TestTopicConfigsAreCheckedAsKafkaDoes(t *testing.T) {
	transcript, err := os.ReadFile("testdata/logconfig-4.4.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	s, cases := Default(), 0
	for line := range strings.Lines(string(transcript)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " | ", 3)
		overrides := parseJavaMap(strings.TrimSuffix(strings.TrimPrefix(fields[1], "{"), "}"))
		cases++
		err := ValidateTopic(s, overrides)
		if fields[0] != "OK" {
			if err == nil || err.Error() != fields[2] || !errors.Is(err, kerr.InvalidConfig) {
				t.Errorf("%s:\ngot  %v\nwant %s", fields[1], err, fields[2])
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", fields[1], err)
			continue
		}
		for name, raw := range overrides {
			if v, _ := topicConfigByName[name].parse(raw); v.String() != fields[2] {
				t.Errorf("%s: described as %q, want %q", fields[1], v, fields[2])
			}
		}
	}
	if cases < 600 {
		t.Errorf("only %d cases", cases)
	}
}

// parseJavaMap reads the text of a HashMap. Values may hold ", " and no "=".
func parseJavaMap(text string) map[string]string {
	m := map[string]string{}
	name := ""
	for piece := range strings.SplitSeq(text, ", ") {
		if k, v, ok := strings.Cut(piece, "="); ok {
			name, m[k] = k, v
		} else {
			m[name] += ", " + piece
		}
	}
	return m
}

func TestTopicTakesOverridesThenSettingsThenDefaults(t *testing.T) {
	s := Default()
	s.SegmentBytes, s.RetentionMs, s.MessageMaxBytes = 2<<20, 1000, 77
	got, err := EffectiveTopic(s, map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "5", "message.timestamp.type": "LogAppendTime",
		"compression.type": "zstd", "compression.zstd.level": "-7", "internal.segment.bytes": "100"})
	if err != nil {
		t.Fatal(err)
	}
	if !got.CleanupCompact || !got.CleanupDelete || got.RetentionMs != 5 || got.SegmentBytes != 100 || got.MaxMessageBytes != 77 ||
		!got.LogAppendTime || got.CompressionType != "zstd" || got.CompressionZstdLevel != -7 || got.FlushMs != Forever ||
		got.MinCleanableDirtyRatio != 0 || got.SegmentMs != 604800000 || got.MessageTimestampAfterMaxMs != 3600000 {
		t.Errorf("%+v", got)
	}
	if got, _ = EffectiveTopic(s, map[string]string{"cleanup.policy": ""}); got.CleanupCompact || got.CleanupDelete {
		t.Error("an empty cleanup.policy deletes or compacts")
	}
	if got, _ = EffectiveTopic(s, nil); got.SegmentBytes != 2<<20 || got.RetentionMs != 1000 || !got.CleanupDelete {
		t.Errorf("%+v", got)
	}
}

func FuzzValidateTopic(f *testing.F) {
	f.Add("min.cleanable.dirty.ratio", "0x1p-2d")
	f.Add("cleanup.policy", "compact,,")
	f.Fuzz(func(t *testing.T, name, v string) {
		s := Default()
		err := ValidateTopic(s, map[string]string{name: v})
		if err != nil {
			if !errors.Is(err, kerr.InvalidConfig) {
				t.Fatalf("%v", err)
			}
			return
		}
		for _, e := range DescribeTopic(s, map[string]string{name: v}) {
			if e.Name == name { // what is described can be set again
				if err := ValidateTopic(s, map[string]string{name: *e.Value}); err != nil {
					t.Fatalf("%s=%q is described as %q: %v", name, v, *e.Value, err)
				}
			}
		}
	})
}

func BenchmarkEffectiveTopic(b *testing.B) {
	s, o := Default(), map[string]string{"cleanup.policy": "compact"}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = EffectiveTopic(s, o)
	}
}

// Integer.parseInt and Long.parseLong read the digits of every script.
func TestNumbersAreReadInEveryScript(t *testing.T) {
	for raw, want := range map[string]int64{"٥": 5, "-٤٢": -42, "१०": 10, "9": 9} {
		topic, err := EffectiveTopic(Default(), map[string]string{"retention.bytes": raw})
		if err != nil || topic.RetentionBytes != want {
			t.Errorf("%q: %v, %v", raw, topic, err)
		}
	}
	for _, raw := range []string{"²", "Ⅴ", "五", "𝟓"} { // no decimal digits, or not in one UTF-16 unit
		if err := ValidateTopic(Default(), map[string]string{"retention.bytes": raw}); err == nil {
			t.Errorf("%q is taken for a number", raw)
		}
	}
}

// A list starts from Kafka's default, whatever the broker's is.
func TestTopicListDefault(t *testing.T) {
	for name, want := range map[string]string{"cleanup.policy": "delete", "leader.replication.throttled.replicas": ""} {
		if v, ok := TopicListDefault(name); !ok || v != want {
			t.Errorf("%s: %q %v", name, v, ok)
		}
	}
	for _, name := range []string{"flush.ms", "compression.type", "nonsense"} {
		if _, ok := TopicListDefault(name); ok {
			t.Errorf("%s is no list", name)
		}
	}
}
