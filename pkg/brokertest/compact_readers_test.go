package brokertest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

var swaps = flag.Int("swaps", 12, "of rewritten segments that readers scan beside")

// A scanner reads a partition from a position to its end, over and over, by raw fetches.
type scanner struct {
	peer
	name      string
	id        [16]byte
	isolation int8
	rng       *rand.Rand
	scans     atomic.Int64
}

// scan fails for an error, and for an offset that does not follow.
func (s *scanner) scan(ctx context.Context, from int64) error {
	for next := from; ctx.Err() == nil; {
		req := kmsg.NewPtrFetchRequest()
		req.MaxBytes, req.SessionEpoch, req.IsolationLevel = 1<<20, -1, s.isolation
		part := kmsg.NewFetchRequestTopicPartition()
		part.FetchOffset, part.PartitionMaxBytes = next, 700
		req.Topics = []kmsg.FetchRequestTopic{{Topic: s.name, TopicID: s.id, Partitions: []kmsg.FetchRequestTopicPartition{part}}}
		resp, err := s.to.Request(ctx, req)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		got := resp.(*kmsg.FetchResponse).Topics[0].Partitions[0]
		if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
			return fmt.Errorf("fetch at %d: %w", next, err)
		}
		after, rows, err := rowsIn(&got, next) // it wants offsets in order, and checksums
		if err != nil {
			return err
		}
		for _, r := range rows {
			if s.isolation == 1 && strings.HasPrefix(r.value, "aborted") {
				return fmt.Errorf("%v is seen", r)
			}
		}
		if after == next {
			return nil // the end
		}
		next = after
	}
	return nil
}

// run scans from the start, or from anywhere, until ctx ends.
func (s *scanner) run(ctx context.Context) error {
	for ctx.Err() == nil {
		from := int64(0)
		if s.rng != nil {
			from = s.rng.Int64N(60)
		}
		if err := s.scan(ctx, from); err != nil {
			return err
		}
		s.scans.Add(1)
	}
	return nil
}

// consumeOn is a consumer that gets every record that is appended to the end, while what is before it is compacted.
func consumeOn(ctx context.Context, cl *kgo.Client, seen *atomic.Int64) error {
	last := int64(-1)
	for ctx.Err() == nil {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil && ctx.Err() == nil {
			return err
		}
		for _, r := range fetches.Records() {
			if r.Offset <= last {
				return fmt.Errorf("offset %d after %d", r.Offset, last)
			}
			if strings.HasPrefix(string(r.Value), "aborted") {
				return fmt.Errorf("%s is seen at %d", r.Value, r.Offset)
			}
			last = r.Offset
			seen.Add(1)
		}
	}
	return nil
}

// writeUntil has records with few keys written in small segments, transactions among them, until it is done, and segments are swapped.
func writeUntil(t *testing.T, b *brokertest.Broker, swapped *atomic.Int64, done func() bool) (written int) {
	t.Helper()
	tx := b.Client(kgo.TransactionalID("swaps"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	defer tx.Close()
	stalled := time.Now()
	for begin, last := 0, int64(0); !done(); begin++ {
		if now := swapped.Load(); now > last {
			last, stalled = now, time.Now()
		} else if time.Since(stalled) > time.Minute {
			t.Fatal("nothing is compacted")
		}
		commit := begin%3 > 0
		value := fmt.Sprint(map[bool]string{true: "committed", false: "aborted"}[commit], begin)
		noError(t, tx.BeginTransaction())
		var records []*kgo.Record
		for i := range 4 {
			records = append(records, &kgo.Record{Topic: "table", Key: fmt.Append(nil, "k", (begin+i)%7), Value: []byte(value)})
		}
		noError(t, tx.ProduceSync(t.Context(), records...).FirstErr())
		noError(t, tx.EndTransaction(t.Context(), kgo.TransactionEndTry(commit)))
		written += len(records) + 1
	}
	return written
}

// ST-48, issue 8, Show 3: readers that scan without pause, by consumers and by raw fetches, from the start and from anywhere, of all records and of committed
// ones, see no error and no offset out of order while segments are rewritten and swapped. The log is killed once in between, and goes on.
//
//	go test ./pkg/brokertest -race -run TestReadersOfABrokerGoOn -v -swaps 100
func TestReadersOfABrokerGoOnDuringSwaps(t *testing.T) {
	b := brokertest.Start(t)
	w := createTables(t, newPeer(t, b))
	total := 0
	for _, part := range []int64{int64(*swaps+1) / 2, int64(*swaps) / 2} {
		total += readDuring(t, b, w, part)
		s, err := b.Snapshot()
		noError(t, err)
		b = s.Kill(t)
	}
	rows, _ := newPeer(t, b).rows("table", w.ids["table"], 0, 1)
	latest := map[string]bool{}
	for _, r := range rows {
		latest[r.key] = true
	}
	if len(latest) != 7 {
		t.Errorf("after the kill there are %d keys of 7", len(latest))
	}
	t.Logf("%d swaps", total)
}

// readDuring reads beside so many swaps, and returns how many there were.
func readDuring(t *testing.T, b *brokertest.Broker, w *tableWorld, want int64) int {
	t.Helper()
	var swapped, consumed atomic.Int64
	b.Fault.OnOp(func(op vfs.Op) {
		if op.Kind == vfs.OpRename && strings.HasSuffix(op.Name, ".log.cleaned") {
			swapped.Add(1)
		}
	})
	writeUntil(t, b, &swapped, func() bool { return swapped.Load() > 0 }) // there are offsets to begin at
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var readers sync.WaitGroup
	var scanners []*scanner
	for i := range 4 {
		s := &scanner{peer: newPeer(t, b), name: "table", id: w.ids["table"], isolation: int8(i % 2)}
		if i > 1 {
			s.rng = rand.New(rand.NewPCG(uint64(i), 3))
		}
		scanners = append(scanners, s)
		readers.Go(func() {
			if err := s.run(ctx); err != nil {
				t.Error(err)
				stop()
			}
		})
	}
	for _, at := range []kgo.Offset{kgo.NewOffset().AtStart(), kgo.NewOffset().At(5)} {
		cl := b.Client(kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"table": {0: at}}))
		readers.Go(func() {
			if err := consumeOn(ctx, cl, &consumed); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
				stop()
			}
		})
	}
	before := swapped.Load()
	written := writeUntil(t, b, &swapped, func() bool {
		slow := slices.ContainsFunc(scanners, func(s *scanner) bool { return s.scans.Load() < 2 })
		return ctx.Err() != nil || swapped.Load()-before >= want && !slow && consumed.Load() > 0
	})
	stop()
	readers.Wait()
	b.Fault.OnOp(nil)
	scans := int64(0)
	for _, s := range scanners {
		scans += s.scans.Load()
	}
	during := swapped.Load() - before
	t.Logf("%d swaps beside %d scans of 4 readers and 2 consumers with %d records; %d offsets were written meanwhile", during, scans, consumed.Load(), written)
	return int(during)
}
