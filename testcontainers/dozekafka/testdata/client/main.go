// Command client is a Kafka client that runs in a container beside the broker:
// it produces a record to a topic and reads the topic from its start with a group.
//
//	client <bootstrap> <topic> <value>
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(bootstrap, topic, value string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.RequestRetries(0), kgo.RecordRetries(0), kgo.AllowAutoTopicCreation(),
		kgo.ConsumerGroup("beside"), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return err
	}
	defer cl.Close()
	if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
		return err
	}
	for {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			return err
		}
		for _, r := range f.Records() {
			fmt.Println("consumed", string(r.Value))
			if string(r.Value) == value {
				return nil
			}
		}
	}
}
