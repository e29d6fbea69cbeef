package clients

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

// Show 2: Apache Kafka's own producer (idempotent, acks=all), consumer with assigned partitions, and Admin client.
func TestJava(t *testing.T) {
	target.Need(t, "java", "javac", "mvn")
	broker := target.Start(t, target.Options{})
	classpath, err := kafka.Classpath(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path, want := textFile(t, *someLines)
	dir := t.TempDir()
	argv := []string{"java", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classpath, filepath.Join("java", "Workload.java"), broker.Addr(), path, dir, strconv.Itoa(partitions)}
	out := run(t, 4*time.Minute, nil, append(argv, codecs...)...)
	t.Logf("%s; kafka-clients %s\n%s", broker.Name(), kafka.Version(), bytes.TrimSpace(out))
	for _, codec := range codecs {
		t.Run(codec, func(t *testing.T) {
			consumed, err := os.ReadFile(filepath.Join(dir, codec+".tsv"))
			if err != nil {
				t.Fatal(err)
			}
			checkConsumed(t, want, "\t", partitions, consumed)
		})
	}
}
