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
	gomod := read(t, "go.mod")
	for name, module := range map[string]string{"franz-go": "github.com/twmb/franz-go", "Sarama": "github.com/IBM/sarama"} {
		m := regexp.MustCompile(`(?m)^\t` + regexp.QuoteMeta(module) + ` (\S+)`).FindStringSubmatch(gomod)
		if m == nil {
			t.Fatalf("%s is not in go.mod", module)
		}
		rows[name] = m[1]
	}
	for _, file := range []string{"clients/js/package.json", "clients/drivers/node/package.json"} {
		npmVersions(t, file, rows)
	}
	pythonVersions(t, "clients/drivers/python/requirements.txt", rows)
	for name, version := range rows {
		if row := "| " + name + " | " + version + " |"; !strings.Contains(readme, row) {
			t.Errorf("README.md has no row %q", row)
		}
	}
	users := read(t, "../README.md")
	for client, name := range map[string]string{"Java kafka-clients": "Apache Kafka, its tools, kafka-clients", "franz-go": "franz-go", "Sarama": "Sarama", "KafkaJS": "KafkaJS"} {
		if row := "| " + client + " | " + rows[name] + " |"; !strings.Contains(users, row) {
			t.Errorf("../README.md has no row %q", row)
		}
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
