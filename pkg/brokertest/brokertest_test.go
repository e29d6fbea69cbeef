package brokertest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// produce writes n records with acks=all and returns their values.
func produce(t *testing.T, b *brokertest.Broker, from, n int, opts ...kgo.Opt) []string {
	t.Helper()
	cl := b.Client(append([]kgo.Opt{kgo.AllowAutoTopicCreation()}, opts...)...)
	defer cl.Close()
	var values []string
	for i := range n {
		v := fmt.Sprint(from + i)
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "demo", Value: []byte(v)}).FirstErr(); err != nil {
			t.Fatalf("produce: %v", err)
		}
		values = append(values, v)
	}
	return values
}

// consume reads n records from the start and checks that offsets are contiguous.
func consume(t *testing.T, b *brokertest.Broker, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	cl := b.Client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"demo": {0: kgo.NewOffset().AtStart()}}))
	defer cl.Close()
	var values []string
	for len(values) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("consume: %v", err)
		}
		for _, r := range fetches.Records() {
			if r.Offset != int64(len(values)) {
				t.Fatalf("offset %d where %d was due", r.Offset, len(values))
			}
			values = append(values, string(r.Value))
		}
	}
	return values
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("consumed %v, acknowledged were %v", got, want)
	}
}

// ST-50: records, topics and offsets are exactly there after a clean stop.
// The whole broker, client and all, runs in virtual time.
func TestRecordsOutliveACleanRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := brokertest.Start(t)
		want := produce(t, b, 0, 20)
		b = b.Restart()
		want = append(want, produce(t, b, 20, 20)...)
		same(t, consume(t, b, len(want)), want)
	})
}

// ST-51, ST-54: what acks=all acknowledged is there after a power cut, whatever
// else survives, and after a second one right behind it.
func TestAcknowledgedRecordsOutlivePowerCuts(t *testing.T) {
	seed := rand.Uint64()
	for i, s := range crashfs.Survivals(seed, 12) {
		t.Run(s.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := brokertest.Start(t)
				want := produce(t, b, 0, 10)
				b = b.PowerCut(s)
				want = append(want, produce(t, b, 10, 10)...)
				b = b.PowerCut(crashfs.Random(seed + uint64(i)))
				same(t, consume(t, b, len(want)), want)
			})
		})
	}
	t.Logf("seed %d", seed)
}

// ST-54: the clean-shutdown mark must not come back after a power cut: its removal is durable
// before anything is accepted.
func TestMarkDoesNotComeBackAfterAPowerCut(t *testing.T) {
	for _, s := range crashfs.Survivals(1, 12) {
		synctest.Test(t, func(t *testing.T) {
			b := brokertest.Start(t)
			want := produce(t, b, 0, 1)
			b = b.Restart() // takes the mark away
			want = append(want, produce(t, b, 1, 5)...)
			b = b.PowerCut(s)
			if b.StartedClean() {
				t.Fatalf("%v: the start after a power cut trusts a mark of the stop before", s)
			}
			same(t, consume(t, b, len(want)), want)
		})
	}
}
