package tools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDiffTellsTheLinesOfOneSideAlone(t *testing.T) {
	a, b := diff(strings.Fields("h a b c e"), strings.Fields("h b x c d"))
	if !slices.Equal(a, []string{"a", "e"}) || !slices.Equal(b, []string{"x", "d"}) {
		t.Errorf("only in a %q, only in b %q", a, b)
	}
	if a, b := diff(strings.Fields("a a"), strings.Fields("a")); len(a) != 1 || len(b) != 0 {
		t.Errorf("a line that is there twice: %q, %q", a, b)
	}
}

const someDifferences = `[{"what": "internal topics", "kafka": "has them", "here": "none", "why": "not needed",
	"matches": [{"script": "topics", "command": "kafka-topics --list*", "kafka": ["| __consumer_offsets"], "ours": ["| never"]}]}]`

func load(t *testing.T, text string) differences {
	t.Helper()
	path := filepath.Join(t.TempDir(), "d.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := loadDifferences(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOnlyListedDifferencesAreAllowed(t *testing.T) {
	d := load(t, someDifferences)
	kafka, ours := []string{"| __consumer_offsets", "| a"}, []string{"| a"}
	if v := d.judge("topics", "$ kafka-topics --list --x", kafka, ours); len(v.unwanted) != 0 || !slices.Equal(v.wanted, []string{"internal topics"}) {
		t.Errorf("a listed one: %+v", v)
	}
	for _, c := range []struct {
		script, command string
		kafka, ours     []string
	}{
		{"other", "$ kafka-topics --list", kafka, ours},
		{"topics", "$ kafka-groups --list", kafka, ours},
		{"topics", "$ kafka-topics --list", ours, kafka}, // the other way around
		{"topics", "$ kafka-topics --list", []string{"| b"}, nil},
	} {
		if v := d.judge(c.script, c.command, c.kafka, c.ours); len(v.unwanted) != 1 {
			t.Errorf("%+v: %+v", c, v)
		}
	}
	if v := d.judge("topics", "$ kafka-topics --list", ours, ours); len(v.wanted)+len(v.unwanted) != 0 {
		t.Errorf("no difference: %+v", v)
	}
	if stale := d.stale(); len(stale) != 1 || !strings.Contains(stale[0], "| never") {
		t.Errorf("stale: %q", stale)
	}
}

func TestDifferencesWithAnUnknownFieldAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.json")
	if err := os.WriteFile(path, []byte(`[{"wat": "x"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := loadDifferences(path); err == nil {
		t.Errorf("read %+v", d)
	}
}
