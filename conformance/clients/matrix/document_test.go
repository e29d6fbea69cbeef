package matrix

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/clients.md")

const documentPath = "../../../docs/clients.md"

// checkDocument compares docs/clients.md with what ran, or writes it.
func checkDocument(t *testing.T, results map[string]*result) {
	t.Helper()
	if *update {
		for _, d := range Drivers {
			if results[d.Name] == nil {
				t.Fatalf("%s was not run: docs/clients.md is written from a run with every client", d.Name)
			}
		}
		if err := os.WriteFile(documentPath, []byte(document(results)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(documentPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range differences(string(have), results) {
		t.Errorf("docs/clients.md: %s\n(make clients-doc writes it)", d)
	}
}

// everything is a run in which each client did each step.
func everything() map[string]*result {
	results := map[string]*result{}
	for _, d := range Drivers {
		r := &result{codecs: codecNames, steps: []string{"create", "idempotent", "eager", "cooperative", "commit", "rebalance", "restart", "resume"}}
		r.info.Client, r.info.Version, r.info.Language = d.Name, "1.0", "Go"
		results[d.Name] = r
	}
	return results
}

func TestDocumentEqualsItsRun(t *testing.T) {
	if d := differences(document(everything()), everything()); len(d) > 0 {
		t.Error(d)
	}
}

func TestDocumentFailsForAnotherVersionOrStep(t *testing.T) {
	for name, change := range map[string]func(*result){
		"version":   func(r *result) { r.info.Version = "1.1" },
		"codec":     func(r *result) { r.codecs = codecNames[:4] },
		"a step":    func(r *result) { r.steps = r.steps[:7] },
		"assignor":  func(r *result) { r.steps = strings.Fields("create idempotent eager commit rebalance restart resume") },
		"no create": func(r *result) { r.steps = r.steps[1:] },
	} {
		results := everything()
		change(results["Sarama"])
		if d := differences(document(everything()), results); len(d) != 1 {
			t.Errorf("%s: %q", name, d)
		}
	}
	if d := differences(document(everything())+"more\n", everything()); len(d) == 0 {
		t.Error("a line that the run does not write is not told")
	}
}

func TestDocumentIsNotComparedWhereTheMachineDecides(t *testing.T) {
	results := everything()
	results["kcat"].info.Version = "1.8"
	delete(results, "aiokafka") // not installed
	if d := differences(document(everything()), results); len(d) > 0 {
		t.Error(d)
	}
}
