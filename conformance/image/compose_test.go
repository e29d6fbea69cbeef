package image

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/image/client"
)

// compose is a project of docker compose, with the image under test.
type compose struct {
	t    *testing.T
	file string
	name string
}

func newCompose(t *testing.T, file string) compose {
	t.Helper()
	if _, err := docker("compose", "version"); err != nil {
		t.Fatal(err)
	}
	p := compose{t, file, name("project")}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := p.run("logs", "--tail", "40") // as far as there are any
			t.Log(out)
		}
		if _, err := p.run("down", "--volumes", "--timeout", "5"); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p compose) run(args ...string) (string, error) {
	args = slices.Concat([]string{"compose", "--progress", "quiet", "--project-name", p.name, "--file", p.file}, args)
	return command([]string{"DOZE_KAFKA_TAG=" + tag, "CLIENTS=" + clients}, "docker", args...)
}

func (p compose) must(args ...string) string {
	p.t.Helper()
	out, err := p.run(args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// kcat runs Debian's kcat on this machine.
func kcat(t *testing.T, input string, args ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := command(nil, "sh", append([]string{"-c", `file=$1; shift; exec kcat "$@" <"$file"`, "kcat", file}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Show 1. FX-33: the checkout's own file is healthy in seconds; one port serves the host and a container beside it; records and committed
// offsets outlive down and up.
func TestComposeKeepsRecordsAndOffsets(t *testing.T) {
	needEngine(t)
	needClients(t)
	p := newCompose(t, filepath.Join(root(), "docker-compose.yml"))
	up := func() {
		began := time.Now()
		p.must("up", "--detach", "--wait", "--no-build")
		took := time.Since(began)
		c := &container{t, p.must("ps", "--quiet", "kafka")}
		t.Logf("docker compose up --detach --wait: %v; started %s, first health check %s", took.Round(time.Millisecond),
			c.inspect("{{.State.StartedAt}}"), c.inspect("{{(index .State.Health.Log 0).End}}"))
		if took > 10*time.Second {
			t.Errorf("healthy after %v", took)
		}
	}
	const fromHost, fromSibling = "localhost:9092", "kafka:9092"
	network := p.name + "_default"
	up()
	kcat(t, "from the host\n", "-P", "-b", fromHost, "-t", "demo")
	if got := sibling(t, network, "kcat", "-C", "-b", fromSibling, "-t", "demo", "-e", "-q"); got != "from the host" {
		t.Errorf("the sibling consumed %q", got)
	}
	sibling(t, network, "client", "produce", fromSibling, "demo", "from a sibling")
	if got := kcat(t, "", "-C", "-b", fromHost, "-t", "demo", "-e", "-q"); got != "from the host\nfrom a sibling" {
		t.Errorf("the host consumed %q", got)
	}
	if got := sibling(t, network, "client", "consume", fromSibling, "demo", "group", "1"); got != "from the host" {
		t.Errorf("the group consumed %q", got)
	}

	p.must("down")
	up()
	if at, err := client.Committed(t.Context(), fromHost, "demo", "group"); err != nil || at != 1 {
		t.Errorf("committed offset %d, %v", at, err)
	}
	if got := kcat(t, "", "-G", "group", "-b", fromHost, "-c", "1", "-q", "demo"); got != "from a sibling" {
		t.Errorf("the group went on with %q", got)
	}
	if got := sibling(t, network, "kcat", "-C", "-b", fromSibling, "-t", "demo", "-e", "-q"); got != "from the host\nfrom a sibling" {
		t.Errorf("after down and up: %q", got)
	}
}

// FX-33: docker compose up builds the image where there is none.
func TestComposeBuilds(t *testing.T) {
	needEngine(t)
	p := newCompose(t, filepath.Join(root(), "docker-compose.yml"))
	p.must("build", "--quiet")
}

// FX-33: a service that depends on the broker's health starts when its first produce, and its first join of a group, need no retry (FX-21).
func TestComposeDependsOnHealth(t *testing.T) {
	needEngine(t)
	needClients(t)
	p := newCompose(t, filepath.Join("testdata", "depends-on.yml"))
	began := time.Now()
	out := p.must("up", "--exit-code-from", "app", "--no-log-prefix", "--attach", "app")
	t.Logf("two services, in order, to the exit of the second: %v", time.Since(began).Round(time.Millisecond))
	if !strings.Contains(out, "first value") {
		t.Errorf("the service printed %q", out)
	}
}

// The compose file that docs/docker.md shows is one.
func TestDocumentedComposeFile(t *testing.T) {
	needEngine(t)
	doc, err := os.ReadFile(filepath.Join(root(), "docs", "docker.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no example")
	}
	file := filepath.Join(t.TempDir(), "compose.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := must(t, "compose", "--file", file, "config"); !strings.Contains(out, "condition: service_healthy") || !strings.Contains(out, repository) {
		t.Error(out)
	}
}
