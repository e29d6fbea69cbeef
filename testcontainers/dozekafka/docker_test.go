package dozekafka_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/testcontainers/dozekafka"
)

// TestMain leaves examples out where there is no Docker engine: they can't skip themselves.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := dozekafka.DockerUnusable(context.Background()); err != nil && !required() {
		fmt.Fprintln(os.Stderr, "examples are skipped: there is no Docker engine:", err)
		if err := flag.Set("test.skip", "^Example"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// required says whether a missing engine is a failure.
func required() bool {
	all := strings.Split(os.Getenv("DOZE_KAFKA_REQUIRE"), ",")
	return slices.Contains(all, "all") || slices.Contains(all, "docker")
}

// needDocker skips a test where there is no engine; where one is required, its
// absence is a failure (DOZE_KAFKA_REQUIRE).
func needDocker(t *testing.T) {
	t.Helper()
	err := dozekafka.DockerUnusable(t.Context())
	if err == nil {
		return
	}
	if required() {
		t.Fatalf("DOZE_KAFKA_REQUIRE=%s, and there is no Docker engine: %v", os.Getenv("DOZE_KAFKA_REQUIRE"), err)
	}
	t.Skipf("there is no Docker engine: %v", err)
}

// run starts a broker in a container for the time of a test: from
// DOZE_KAFKA_IMAGE, the image of the Dockerfile, if it is set, and otherwise from source.
func run(t *testing.T, opts ...testcontainers.ContainerCustomizer) *dozekafka.Container {
	t.Helper()
	needDocker(t)
	c, err := start(t.Context(), opts...)
	if c != nil {
		testcontainers.CleanupContainer(t, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func start(ctx context.Context, opts ...testcontainers.ContainerCustomizer) (*dozekafka.Container, error) {
	if img := os.Getenv("DOZE_KAFKA_IMAGE"); img != "" {
		return dozekafka.RunImage(ctx, img, opts...)
	}
	return dozekafka.Run(ctx, opts...)
}

func brokers(t *testing.T, c interface {
	Brokers(context.Context) ([]string, error)
}) []string {
	t.Helper()
	b, err := c.Brokers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// newClient is a client that gets no second chance at anything: the first
// operation of any client succeeds (FX-21).
func newClient(t *testing.T, addrs []string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	opts = append([]kgo.Opt{
		kgo.SeedBrokers(addrs...), kgo.RequestRetries(0), kgo.RecordRetries(0), kgo.AllowAutoTopicCreation(),
	}, opts...)
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func produce(t *testing.T, addrs []string, topic string, values ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cl := newClient(t, addrs, kgo.DefaultProduceTopic(topic))
	for _, v := range values {
		if err := cl.ProduceSync(ctx, kgo.StringRecord(v)).FirstErr(); err != nil {
			t.Fatalf("produce %s: %v", v, err)
		}
	}
}

// consume reads with a group from where it has committed, and commits.
func consume(t *testing.T, addrs []string, group, topic string, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cl := newClient(t, addrs, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer cl.Close()
	var got []string
	for len(got) < len(want) {
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatalf("%v, after %q", err, got)
		}
		for _, r := range f.Records() {
			got = append(got, string(r.Value))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("group %s consumed %q, want %q", group, got, want)
	}
	if err := cl.CommitUncommittedOffsets(ctx); err != nil {
		t.Error(err)
	}
}
