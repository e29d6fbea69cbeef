package config

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the settings table into README.md")

// FX-1: --help lists every setting with both names, type, default and one line, and every command.
func TestHelpListsEverySetting(t *testing.T) {
	_, help, err := Parse([]string{"--node-id", "x", "--help"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"[", "healthcheck", "dump", "version"} {
		if !strings.Contains(help, "\n  broker "+command) {
			t.Errorf("--help lacks the command %q", command)
		}
	}
	for _, s := range settings {
		for _, part := range []string{"  " + s.flag() + ",", s.variable() + "\n", s.kind(), "default " + s.shownDefault(), s.doc} {
			if !strings.Contains(help, part) {
				t.Errorf("%s: --help lacks %q", s.name, part)
			}
		}
	}
}

// FX-1: the README's table is generated: go generate ./pkg/config.
func TestReadmeHasTheSettings(t *testing.T) {
	const file, begin, end = "../../README.md", "<!-- settings -->\n", "<!-- /settings -->"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md lacks the markers %s and %s", strings.TrimSpace(begin), end)
	}
	if table == Markdown() {
		return
	}
	if !*update {
		t.Fatal("README.md's table of settings is not that of Settings: go generate ./pkg/config")
	}
	if err := os.WriteFile(file, []byte(before+begin+Markdown()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
