package dozekafka_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// between is the part of README.md from one line up to another.
func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, part, ok := strings.Cut(text, from)
	part, _, ok2 := strings.Cut(part, to)
	if !ok || !ok2 {
		t.Fatalf("README.md has no part from %q to %q", from, to)
	}
	return part
}

// An outside is a module of its own outside the repository.
type outside struct{ dir string }

// run runs a command in the module, and returns what it printed.
func (o outside) run(t *testing.T, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = o.dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%q: %v\n%s", command, err, &out)
	}
	return out.String()
}

func (o outside) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// FX-40, FX-46, FX-47: README's Go example, pasted into a module outside of
// the repository, with README's commands; then an image built out of that module's graph, also one with a vendor directory.
func TestReadmesExampleRunsInAModuleOfItsOwn(t *testing.T) {
	if !required() {
		t.Skip("it builds a module of its own, which takes a minute and downloads modules: set DOZE_KAFKA_REQUIRE=docker")
	}
	needDocker(t)
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(checkout, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	o := outside{t.TempDir()}
	o.write(t, "mine_test.go", between(t, string(readme), "```go\n", "```\n"))
	o.run(t, "go", "mod", "init", "mine")
	commands := between(t, string(readme), "In a module of your own, with this repository checked out beside it:\n\n```sh\n", "```\n")
	for line := range strings.Lines(commands) {
		command := strings.Fields(strings.ReplaceAll(line, "../doze-kafka", checkout))
		if command[1] != "test" {
			o.run(t, command...)
			continue
		}
		out := o.run(t, append(command, "-v", "-count=1")...)
		for _, w := range []string{"--- PASS: TestWithKafka", "--- PASS: TestOverACrash"} {
			if !strings.Contains(out, w) {
				t.Errorf("no %q in:\n%s", w, out)
			}
		}
	}
	o.write(t, "source_test.go", `package mine

import (
	"testing"

	"github.com/testcontainers/testcontainers-go"

	"github.com/dozekafka/doze-kafka/testcontainers/dozekafka"
)

func TestFromSource(t *testing.T) {
	kafka, err := dozekafka.Run(t.Context(), dozekafka.WithBuildFromSource())
	testcontainers.CleanupContainer(t, kafka)
	if err != nil {
		t.Fatal(err)
	}
}
`)
	sum, err := os.ReadFile(filepath.Join(o.dir, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for _, vendored := range []bool{false, true} {
		if vendored {
			o.run(t, "go", "mod", "vendor")
		}
		if out := o.run(t, "go", "test", "-trimpath", "-vet=off", "-v", "-count=1", "-run", "TestFromSource", "./..."); !strings.Contains(out, "--- PASS: TestFromSource") || !strings.Contains(out, "localhost/doze-kafka-from-source:") {
			t.Errorf("vendored %v:\n%s", vendored, out)
		}
	}
	now, err := os.ReadFile(filepath.Join(o.dir, "go.sum"))
	if err != nil || !bytes.Equal(now, sum) {
		t.Errorf("the build has changed go.sum (%v)", err)
	}
}
