package tools

import (
	"os"
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

// docs/clients.md ends with the section; -update, after a run of TestTranscripts, writes it there.
func TestClientsPageEndsWithTheSection(t *testing.T) {
	const path = "../../docs/clients.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile("section.md") // which this run may have written
	if err != nil {
		t.Fatal(err)
	}
	want := insert(string(page), string(written))
	if want == string(page) {
		return
	}
	if !*update {
		t.Fatal("docs/clients.md does not end with conformance/tools/section.md: go test ./tools -run ClientsPage -update")
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSectionIsInsertedOnce(t *testing.T) {
	once := insert("# Clients\n", sectionTitle+"one\n")
	if twice := insert(once, sectionTitle+"two\n"); twice != "# Clients\n\n"+sectionTitle+"two\n" {
		t.Errorf("%q", twice)
	}
}
