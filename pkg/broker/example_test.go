package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/pkg/broker"
	"github.com/dozekafka/doze-kafka/pkg/config"
)

// A broker in the same process, on a free port.
func ExampleStart() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	settings := config.Default()
	settings.DataDir = dir
	settings.Listeners = "PLAINTEXT://127.0.0.1:0"
	settings.HTTPListen = "off"
	b, err := broker.Start(ctx, settings, broker.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		panic(err)
	}
	defer b.Stop()

	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.AllowAutoTopicCreation(), kgo.ConsumeTopics("demo"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: "demo", Value: []byte("hello")}).FirstErr(); err != nil {
		panic(err)
	}
	for _, r := range client.PollFetches(ctx).Records() {
		fmt.Println(r.Offset, string(r.Value))
	}
	// Output: 0 hello
}
