package tools

import (
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/conformance/target"
)

// replicaVerification has a test of its own: it reports for ever.
const replicaVerification = "kafka-replica-verification"

// CF-5: kafka-replica-verification reads every partition and finds that its replicas, of which there is one, are the same.
func TestReplicaVerification(t *testing.T) {
	target.Need(t, "java", "mvn")
	broker := target.Start(t, target.Options{})
	w, err := newWorld(broker.Addr(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	if err := w.topic(t.Context(), []string{"orders", "2"}); err != nil {
		t.Fatal(err)
	}
	if err := w.produce(t.Context(), []string{"orders", "0", "10"}); err != nil {
		t.Fatal(err)
	}
	v := startVerifiable(t, replicaVerification, "--broker-list", broker.Addr(), "--topics-include", "orders", "--report-interval-ms", "200")
	awaitVerifiable(t, func() bool { return strings.Contains(v.proc.LogTail(5), "max lag is 0 for partition orders-") })
	for line := range strings.SplitSeq(v.proc.LogTail(100), "\n") {
		if strings.Contains(line, "max lag is") && !strings.Contains(line, "max lag is 0") {
			t.Error(line)
		}
	}
}
