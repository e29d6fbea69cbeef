package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// dump prints the files of a running broker, and of one that was killed; it
// exits 0 for what is whole, 1 for what is broken or no segment's, 2 for a command line that can't be.
func TestDumpExitCodes(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, localArgs(dir)...)
	client, err := kgo.NewClient(kgo.SeedBrokers(p.addr), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("demo"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), kgo.StringRecord("hello"), kgo.StringRecord("again")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "demo-0", "00000000000000000000.log")
	whole := func(when string) {
		t.Helper()
		code, stdout, stderr := runCommand([]string{"dump", log, "--records"}, nil)
		if code != exitOK || !strings.Contains(stdout, `value "again"`) || !strings.Contains(stdout, "offsets 0 to 1, no fault") || stderr != "" {
			t.Errorf("%s: %d %s%s", when, code, stdout, stderr)
		}
	}
	whole("running")
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.exit(t)
	whole("killed")
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, content[:len(content)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{log}, exitFailed, "half written", ""},
		{[]string{"--bytes=3", filepath.Join(dir, "meta.db"), log}, exitFailed, "half written", "meta.db: not a file of a segment"},
		{[]string{filepath.Join(dir, "none", "00000000000000000000.log")}, exitFailed, "", "no such file"},
		{[]string{"--help"}, exitOK, "Usage: broker dump", ""},
		{nil, exitUsage, "", "no file is named"},
		{[]string{log, "--bytes", "-1"}, exitUsage, "", "--bytes is below 0"},
		{[]string{"--record", log}, exitUsage, "", "-record"},
		{[]string{"--", "--records"}, exitFailed, "", "--records: not a file of a segment"},
	} {
		code, stdout, stderr := runCommand(append([]string{"dump"}, c.args...), nil)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) || strings.Count(stderr, "\n") > 1 || c.stderr == "" && stderr != "" {
			t.Errorf("%q: %d\n%s%s", c.args, code, stdout, stderr)
		}
	}
}
