package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

// What franz-go's consumer makes of the broker's answers, of partitions that it was assigned.
var (
	_ = judge.Register("client-consume", clientConsume)
	_ = judge.Register("client-consume-limits", clientConsumeLimits)
)

// startAt has the consumer start at these offsets.
func startAt(topic string, offsets map[int32]kgo.Offset) kgo.Opt {
	return kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets})
}

// consumed is what a consumer got.
type consumed struct {
	Records []judge.ClientRecord
	Errors  []fetchError
}

type fetchError struct {
	Topic     string
	Partition int32
	Error     string
}

// consuming polls until there were so many records, or an error.
func consuming(e *judge.Env, step string, want int, opts ...kgo.Opt) {
	poll(e, step, want, e.Client(append([]kgo.Opt{kgo.FetchMaxWait(100 * time.Millisecond)}, opts...)...))
}

func poll(e *judge.Env, step string, want int, client *kgo.Client) {
	e.Call(step, "kgo.PollFetches", judge.Args{"Until": want}, func(ctx context.Context) (any, error) {
		var got consumed
		for len(got.Records) < want && len(got.Errors) == 0 && ctx.Err() == nil {
			fetches := client.PollFetches(ctx)
			for r := range fetches.RecordsAll() {
				got.Records = append(got.Records, e.ClientRecordOf(r, nil))
			}
			for _, err := range fetches.Errors() {
				if !errors.Is(err.Err, context.DeadlineExceeded) {
					got.Errors = append(got.Errors, fetchError{err.Topic, err.Partition, judge.ErrorText(err.Err)})
				}
			}
		}
		// Stable: within a partition the order is the one in which they came.
		slices.SortStableFunc(got.Records, func(a, b judge.ClientRecord) int {
			return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
		})
		return got, ctx.Err()
	})
}

// firstFetch is a hook that tells when a consumer has found its offsets: it sends its first Fetch then.
type firstFetch struct {
	once sync.Once
	sent chan struct{}
}

// OnBrokerWrite is called by the client for each request.
func (f *firstFetch) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == kmsg.Fetch.Int16() {
		f.once.Do(func() { close(f.sent) })
	}
}

// clientConsume: every place that a consumer can start at.
func clientConsume(e *judge.Env) {
	topic := e.CreateTopic("t", 2)
	produced(e, topic, 0, judge.Values("a", "b"), judge.Values("c", "d").At(judge.Base+100).Codec(4), judge.Values("e").At(judge.Base+50), judge.Values("f", "g").At(judge.Base+200))
	produced(e, topic, 1, judge.Values("h"), judge.Values("i", "j"))
	start := kgo.NewOffset()
	zero := func(o kgo.Offset) kgo.Opt { return startAt(topic.Name, map[int32]kgo.Offset{0: o}) }
	for _, x := range []struct {
		step   string
		offset kgo.Offset
		want   int
	}{{"at start", start.AtStart(), 7}, {"at 2", start.At(2), 5}, {"at 3, within a batch", start.At(3), 4}, {"at the last", start.At(6), 1},
		{"one after start", start.AtStart().Relative(1), 6}, {"two before the end", start.AtEnd().Relative(-2), 2}, {"ten before the end", start.AtEnd().Relative(-10), 7},
		{"at 2 of epoch 0", start.At(2).WithEpoch(0), 5}, {"after 0", start.AfterMilli(0), 7}, {"after the second", start.AfterMilli(judge.Base + 2), 5},
		{"after 101", start.AfterMilli(judge.Base + 101), 4}, {"after 102", start.AfterMilli(judge.Base + 102), 2}} {
		consuming(e, x.step, x.want, zero(x.offset))
	}
	consuming(e, "two partitions", 5, startAt(topic.Name, map[int32]kgo.Offset{0: start.At(4), 1: start.At(1)}))
	consuming(e, "without a session", 7, zero(start.AtStart()), kgo.DisableFetchSessions())
	consuming(e, "read_committed", 7, zero(start.AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	consuming(e, "after the end, no reset", 1, zero(start.At(8)), kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	consuming(e, "after the end, reset to the start", 7, zero(start.At(8)), kgo.ConsumeResetOffset(start.AtStart()))
	consuming(e, "after the end, reset by default", 7, zero(start.At(100)))
	consuming(e, "unknown topic", 1, startAt(e.Name("none"), map[int32]kgo.Offset{0: start.AtStart()}), kgo.KeepRetryableFetchErrors())
	for _, x := range []struct {
		step   string
		offset kgo.Offset
	}{{"at the end", start.AtEnd()}, {"at 8, the end", start.At(8)}, {"after all", start.AfterMilli(judge.Base + 1000)}} {
		hook := &firstFetch{sent: make(chan struct{})}
		client := e.Client(zero(x.offset), kgo.WithHooks(hook), kgo.FetchMaxWait(100*time.Millisecond))
		select {
		case <-hook.sent:
		case <-time.After(20 * time.Second):
			e.Fatalf("%s: no Fetch was sent", x.step)
		}
		produced(e, topic, 0, judge.Values("new").At(judge.Base+300))
		poll(e, x.step, 1, client)
	}
}

// clientConsumeLimits: how many records a fetch gives under limits of bytes.
func clientConsumeLimits(e *judge.Env) {
	topic := e.CreateTopic("t", 1)
	produced(e, topic, 0, judge.Values("a", "b"), judge.Values("c"), judge.Values("d", "e", "f").Codec(1), judge.Values(strings.Repeat("x", 3000)), judge.Values("g"), judge.Values("h", "i"))
	for _, n := range []int32{1, 100, 200, 500, 3200, 1 << 20} {
		for _, kind := range []struct {
			name string
			opts []kgo.Opt
		}{{"FetchMaxBytes", []kgo.Opt{kgo.FetchMaxBytes(n), kgo.FetchMaxPartitionBytes(min(n, 1<<20))}}, {"FetchMaxPartitionBytes", []kgo.Opt{kgo.FetchMaxPartitionBytes(n)}}} {
			polls(e, fmt.Sprintf("%s %d", kind.name, n), 10, append(kind.opts, startAt(topic.Name, map[int32]kgo.Offset{0: kgo.NewOffset().AtStart()}))...)
		}
	}
}

// polls records how many records each poll gave, until there were so many.
func polls(e *judge.Env, step string, want int, opts ...kgo.Opt) {
	client := e.Client(opts...)
	e.Call(step, "kgo.PollFetches", judge.Args{"Until": want}, func(ctx context.Context) (any, error) {
		var sizes []int
		for total := 0; total < want; {
			fetches := client.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				return sizes, err
			}
			if n := fetches.NumRecords(); n > 0 {
				sizes = append(sizes, n)
				total += n
			}
		}
		return sizes, nil
	})
}
