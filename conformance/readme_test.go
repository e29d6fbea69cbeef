// Package conformance holds what is about the whole module: that the READMEs say the truth.
package conformance

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
)

func TestReadmeNamesThePinnedVersions(t *testing.T) {
	readme := read(t, "README.md")
	rows := map[string]string{"Apache Kafka, its tools, kafka-clients": kafka.Version()}
	for name, at := range map[string][2]string{
		"franz-go": {"go.mod", "github.com/twmb/franz-go"}, "Sarama": {"go.mod", "github.com/IBM/sarama"}, "kafka-go": {"go.mod", "github.com/segmentio/kafka-go"},
		"confluent-kafka-go, with librdkafka": {"clients/drivers/confluent-go/go.mod", "github.com/confluentinc/confluent-kafka-go/v2"},
	} {
		m := regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(at[1]) + ` (\S+)`).FindStringSubmatch(read(t, at[0]))
		if m == nil {
			t.Fatalf("%s is not in %s", at[1], at[0])
		}
		rows[name] = m[1]
	}
	for _, file := range []string{"clients/js/package.json", "clients/drivers/node/package.json"} {
		npmVersions(t, file, rows)
	}
	pythonVersions(t, "clients/drivers/python/requirements.txt", rows)
	for name, file := range map[string]string{"kafka-streams": "streams/pom.xml", "connect-runtime, connect-file": "connect/pom.xml"} {
		m := regexp.MustCompile(`<kafka.version>(.+)</kafka.version>`).FindStringSubmatch(read(t, file))
		if m == nil {
			t.Fatalf("%s pins no kafka.version", file)
		}
		rows[name] = m[1]
	}
	for name, version := range rows {
		if row := "| " + name + " | " + version + " |"; !strings.Contains(readme, row) {
			t.Errorf("README.md has no row %q", row)
		}
	}
}

// The table of clients in README.md at the root is that of docs/clients.md, which a run wrote.
func TestRootReadmeNamesTheClientsThatWereRun(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "../README.md"), "<!-- clients -->")
	table, _, _ = strings.Cut(table, "<!-- /clients -->")
	want := map[string]bool{}
	for line := range strings.Lines(read(t, "../docs/clients.md")) {
		if cells := strings.Split(line, " | "); len(cells) > 5 {
			want[cells[0]+" | "+cells[1]+" |"] = true
		}
	}
	for line := range strings.Lines(strings.ReplaceAll(table, ", Debian's", "")) {
		if line = strings.TrimSpace(line); line != "" && !want[line] && !strings.HasPrefix(line, "|---") {
			t.Errorf("../README.md has the row %q, docs/clients.md has not", line)
		}
		delete(want, line)
	}
	for row := range want {
		t.Errorf("docs/clients.md has the row %q, ../README.md has not", row)
	}
}

// npmVersions adds what a package.json pins. Two of them pin the same version of a package.
func npmVersions(t *testing.T, file string, rows map[string]string) {
	t.Helper()
	var npm struct{ Dependencies, OptionalDependencies map[string]string }
	if err := json.Unmarshal([]byte(read(t, file)), &npm); err != nil {
		t.Fatal(err)
	}
	maps.Copy(npm.Dependencies, npm.OptionalDependencies)
	for name, version := range npm.Dependencies {
		if name == "kafkajs" {
			name = "KafkaJS"
		}
		if other, ok := rows[name]; ok && other != version {
			t.Errorf("%s pins %s %s, another file %s", file, name, version, other)
		}
		rows[name] = version
	}
}

// pythonVersions adds what a requirements.txt pins, up to what only its packages need.
func pythonVersions(t *testing.T, file string, rows map[string]string) {
	t.Helper()
	direct, _, found := strings.Cut(read(t, file), "# Of aiokafka.")
	if !found {
		t.Fatalf("%s does not say where what aiokafka needs begins", file)
	}
	for line := range strings.Lines(direct) {
		if name, version, ok := strings.Cut(strings.TrimSpace(line), "=="); ok {
			rows[name] = version
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
