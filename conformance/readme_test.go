// Package conformance holds what is about the whole module: that the READMEs say the truth.
package conformance

import (
	"encoding/json"
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
	var npm struct{ Dependencies map[string]string }
	if err := json.Unmarshal([]byte(read(t, "clients/js/package.json")), &npm); err != nil {
		t.Fatal(err)
	}
	for name, version := range npm.Dependencies {
		if name == "kafkajs" {
			name = "KafkaJS"
		}
		rows[name] = version
	}
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

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
