package broker_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/pkg/broker"
	"github.com/dozekafka/doze-kafka/pkg/config"
)

func TestWithKafka(t *testing.T) {
	settings := config.Default()
	settings.DataDir = t.TempDir()
	settings.Listeners = "PLAINTEXT://127.0.0.1:0" // a free port
	settings.HTTPListen = "off"
	b, err := broker.Start(t.Context(), settings)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()

	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.AllowAutoTopicCreation(),
		kgo.ConsumeTopics("demo"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "demo", Value: []byte("hello")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	records := client.PollFetches(t.Context()).Records()
	if len(records) != 1 || string(records[0].Value) != "hello" {
		t.Fatalf("consumed %v", records)
	}
}
