package kafka_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// CF-2: a real Apache Kafka starts from Maven artifacts, and is there again after a kill.
func TestKafkaStartsServesAndStops(t *testing.T) {
	target.Need(t, "java", "mvn")
	server, err := kafka.New(t.Context(), t.TempDir(), map[string]string{"num.partitions": "3"})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if err := server.Start(t.Context()); err != nil {
		t.Fatalf("after a kill: %v", err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(server.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	created, err := kadm.NewClient(client).CreateTopic(t.Context(), -1, -1, nil, "t")
	if err != nil || created.NumPartitions != 3 {
		t.Errorf("created topic %+v, error %v", created, err)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}

func TestToolsAreThoseOfThePinnedVersion(t *testing.T) {
	target.Need(t, "java", "mvn")
	out, err := kafka.Tool(t.Context(), kafka.DumpLogSegments, "--version")
	if err != nil || !strings.HasPrefix(out.Stdout, kafka.Version()) || out.Stderr != "" {
		t.Errorf("tool says %+v (%v), pom.xml says %s", out, err, kafka.Version())
	}
}

// A port that a broker keeps over restarts is none that systems give to others meanwhile, nor one that was returned before.
func TestFreePortsAreNobodyElses(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		ports, err := kafka.FreePorts(2)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range ports {
			if p >= 32768 || seen[p] {
				t.Errorf("port %d, after %d others", p, len(seen))
			}
			seen[p] = true
		}
	}
}
