package dozekafka_test

import (
	"context"
	"fmt"
	"log"

	"github.com/testcontainers/testcontainers-go"

	"github.com/dozekafka/doze-kafka/testcontainers/dozekafka"
)

func ExampleRun() {
	// runDozekafkaContainer {
	ctx := context.Background()

	container, err := dozekafka.Run(ctx,
		dozekafka.WithTopics("orders:3", "audit:1:cleanup.policy=compact"),
		dozekafka.WithAutoCreateTopics(false),
	)
	defer func() {
		if err := testcontainers.TerminateContainer(container); err != nil {
			log.Printf("failed to terminate container: %s", err)
		}
	}()
	if err != nil {
		log.Printf("failed to start container: %s", err)
		return
	}
	// }

	state, err := container.State(ctx)
	if err != nil {
		log.Printf("failed to get container state: %s", err)
		return
	}
	fmt.Println(state.Running)

	// Output: true
}
