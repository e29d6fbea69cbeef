package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// FX-32: the image's health check knows the flags of its broker, with and without an init before it.
func TestHealthcheckTakesTheFlagsOfItsContainer(t *testing.T) {
	in := []string{"DOZE_KAFKA_CONTAINER=true"}
	for _, c := range []struct {
		name    string
		environ []string
		line    string
		want    string
	}{
		{"flags", in, "/usr/local/bin/broker|--listeners|PLAINTEXT://:1", "--listeners PLAINTEXT://:1"},
		{"run", in, "broker|run|--listeners=PLAINTEXT://:1", "--listeners=PLAINTEXT://:1"},
		{"an init", in, "/sbin/docker-init|--|/usr/local/bin/broker|--log-level|debug", "--log-level debug"},
		{"none", in, "/usr/local/bin/broker", ""},
		{"another program", in, "/sbin/init|splash", ""},
		{"no container", nil, "/usr/local/bin/broker|--listeners|PLAINTEXT://:1", ""},
	} {
		file := filepath.Join(t.TempDir(), "cmdline")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(c.line, "|", "\x00")+"\x00"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := flagsOfContainer(c.environ, "/usr/local/bin/broker", file); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := flagsOfContainer(in, "broker", filepath.Join(t.TempDir(), "none")); got != nil {
		t.Errorf("without /proc: %q", got)
	}
}
