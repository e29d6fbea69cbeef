package image

import (
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/conformance/image/client"
)

// FX-3, FX-12: Apache Kafka's own single-node compose examples, with only the image swapped.
func TestApachesComposeExamplesStartWithThisImage(t *testing.T) {
	needEngine(t)
	needClients(t)
	for _, example := range []string{"apache-plaintext", "apache-file-input"} {
		t.Run(example, func(t *testing.T) {
			p := newCompose(t, filepath.Join("testdata", example+".yml"))
			p.must("up", "--detach", "--wait")
			const host, beside = "localhost:9092", "broker:19092"
			if told, err := client.Ask(t.Context(), host); err != nil || told != host {
				t.Errorf("the host is told %q, %v", told, err)
			}
			network := p.name + "_default"
			if told := sibling(t, network, "client", "ask", beside); told != beside {
				t.Errorf("a sibling is told %q", told)
			}
			if err := client.Produce(t.Context(), host, "demo", "hello"); err != nil {
				t.Error(err)
			}
			if got := sibling(t, network, "client", "consume", beside, "demo", "group", "1"); got != "hello" {
				t.Errorf("the sibling consumed %q", got)
			}
			cl, err := kgo.NewClient(kgo.SeedBrokers(host))
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			if m, err := kadm.NewClient(cl).BrokerMetadata(t.Context()); err != nil || m.Cluster != "4L6g3nShT-eMCtK--X86sw" {
				t.Errorf("cluster id %q, %v", m.Cluster, err)
			}
			t.Log(p.must("logs", "--no-log-prefix"))
		})
	}
}
