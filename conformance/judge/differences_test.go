package judge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func differencesOf(t *testing.T, text string) (*Differences, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "d.json")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return LoadDifferences(path)
}

// CF-3: what is listed passes, anything else fails, and an entry that is of no use any more is found.
func TestListedDifferencesPassAndStaleEntriesAreFound(t *testing.T) {
	d, err := differencesOf(t, `[{"what":"w","kafka":"k","here":"h","why":"y","matches":[
		{"scenario":"s*","path":"response.Topics[*].ErrorCode","ours":"NONE"}, {"step":"never"}]}]`)
	if err != nil {
		t.Fatal(err)
	}
	wanted := Difference{Scenario: "s1", Step: "x", Path: "response.Topics[0].ErrorCode", Kafka: "A (1)", Ours: "NONE"}
	another := wanted
	another.Ours = "B (2)"
	if rest := d.Unwanted([]Difference{wanted, another}); len(rest) != 1 || rest[0] != another {
		t.Errorf("unwanted: %v", rest)
	}
	if stale := d.Stale(); len(stale) != 1 || !strings.Contains(stale[0], "never") {
		t.Errorf("stale: %q", stale)
	}
}

func TestDifferenceNeedsItsReason(t *testing.T) {
	for _, text := range []string{`[{"what":"w","kafka":"k","here":"h","matches":[{}]}]`, `[{"what":"w","kafka":"k","here":"h","why":"y"}]`, `[{"reason":"w"}]`} {
		if _, err := differencesOf(t, text); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestTableGoesBetweenTheMarkers(t *testing.T) {
	d := &Differences{Wanted: []Wanted{{What: "w", Kafka: "k", Here: "h", Why: "y"}}}
	got, err := d.Insert("before\n" + tableBegin + "old\n" + tableEnd + "after\n")
	want := "before\n" + tableBegin + "| what | Kafka | here | why |\n|---|---|---|---|\n| w | k | h | y |\n" + tableEnd + "after\n"
	if got != want || err != nil {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := d.Insert("no markers"); err == nil {
		t.Error("a page without markers is accepted")
	}
}
