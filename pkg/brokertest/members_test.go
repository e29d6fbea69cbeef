package brokertest_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
)

// A wire is the network as clients see it whose broker is killed and comes back
// at its address: it dials the broker of the day, and cuts what is connected.
type wire struct {
	mu     sync.Mutex
	broker *brokertest.Broker
	down   bool
	conns  []net.Conn
}

func (w *wire) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	w.mu.Lock()
	b, down := w.broker, w.down
	w.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	conn, err := b.Net.Dial(ctx, network, b.Addr())
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.conns = append(w.conns, conn)
	}
	return conn, err
}

// kill goes on with a broker that finds what this one had written, after a while.
func (w *wire) kill(t *testing.T, down time.Duration) {
	t.Helper()
	s, err := w.broker.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.down = true
	for _, c := range w.conns {
		_ = c.Close() // the client may have closed it
	}
	w.conns = nil
	w.mu.Unlock()
	<-time.After(down) // of a bubble, where a held mutex would stop the time
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broker, w.down = s.Kill(t), false
}

// requests counts what a client sends, by API.
type requests [100]atomic.Int32

func (r *requests) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	r[key].Add(1)
}

// members starts consumers of the topic demo, and waits until each has partitions.
func (w *wire) members(t *testing.T, n int, sent *requests, opts ...kgo.Opt) []*kgo.Client {
	t.Helper()
	var clients []*kgo.Client
	assigned := make(chan struct{}, 10*n)
	for i := range n {
		cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(w.broker.Addr()), kgo.Dialer(w.dial), kgo.WithHooks(sent), kgo.ClientID(fmt.Sprint("member-", i)),
			kgo.ConsumerGroup("g"), kgo.ConsumeTopics("demo"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) {
				if len(got["demo"]) > 0 {
					assigned <- struct{}{}
				}
			})}, opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cl.Close)
		clients = append(clients, cl)
	}
	for range n {
		<-assigned
	}
	return clients
}

func makeDemo(t *testing.T, b *brokertest.Broker, partitions int) {
	t.Helper()
	_, err := newPeer(t, b).create("demo", partitions)
	noError(t, err)
}

// GR-8: fifty real consumers that start at once are in one generation within
// 500 ms; no one of them joins again.
func TestFiftyConsumersFormOneGeneration(t *testing.T) {
	const n = 50
	synctest.Test(t, func(t *testing.T) {
		w := &wire{broker: brokertest.Start(t)}
		makeDemo(t, w.broker, n)
		var sent requests
		begin := time.Now()
		clients := w.members(t, n, &sent)
		if took := time.Since(begin); took > 500*time.Millisecond {
			t.Errorf("assigned after %v", took)
		}
		<-time.After(10 * time.Second)
		for _, cl := range clients {
			if _, generation := cl.GroupMetadata(); generation != 1 {
				t.Errorf("generation %d", generation)
			}
		}
		if joins := sent[kmsg.JoinGroup].Load(); joins != 2*n { // the first is answered MEMBER_ID_REQUIRED
			t.Errorf("%d JoinGroups of %d members", joins, n)
		}
	})
}

// GR-8, PF-11: a lone consumer of a fresh group has its first record within 60 ms.
func TestALoneConsumerHasItsFirstRecordSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{broker: brokertest.Start(t)}
		produce(t, w.broker, 0, 1)
		var sent requests
		begin := time.Now()
		f := w.members(t, 1, &sent)[0].PollFetches(t.Context())
		noError(t, f.Err())
		if took := time.Since(begin); took >= 60*time.Millisecond || f.NumRecords() != 1 {
			t.Errorf("%d records after %v", f.NumRecords(), took)
		}
	})
}

// GR-6: consumers go on after a SIGKILL of the broker without a rebalance: the
// same generation, not one JoinGroup more, and each still consumes and commits its
// partitions. Their sessions start anew when the broker is back.
func TestConsumersGoOnAfterAKillWithoutARebalance(t *testing.T) {
	for name, c := range map[string]struct {
		down time.Duration
		opts []kgo.Opt
	}{
		"cooperative":                     {time.Second, nil},
		"eager":                           {time.Second, []kgo.Opt{kgo.Balancers(kgo.RangeBalancer())}},
		"once more before they are heard": {0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 3
				w := &wire{broker: brokertest.Start(t)}
				makeDemo(t, w.broker, n)
				var sent requests
				clients := w.members(t, n, &sent, append(c.opts, kgo.DisableAutoCommit(), kgo.MetadataMinAge(100*time.Millisecond),
					kgo.RequestRetries(1000), kgo.RetryTimeout(time.Minute))...)
				<-time.After(5 * time.Second)
				joins := sent[kmsg.JoinGroup].Load()
				_, generation := clients[0].GroupMetadata()
				w.kill(t, c.down)
				if c.down == 0 {
					w.kill(t, 0)
				}
				cl := w.broker.Client(kgo.RecordPartitioner(kgo.ManualPartitioner()))
				for p := range int32(n) {
					noError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "demo", Partition: p, Value: []byte("after")}).FirstErr())
				}
				for _, cl := range clients {
					f := cl.PollFetches(t.Context())
					for f.NumRecords() == 0 {
						f = cl.PollFetches(t.Context())
					}
					noError(t, cl.CommitRecords(t.Context(), f.Records()...))
				}
				<-time.After(2 * time.Minute)
				for _, cl := range clients {
					if _, now := cl.GroupMetadata(); now != generation {
						t.Errorf("generation %d, it was %d", now, generation)
					}
				}
				if more := sent[kmsg.JoinGroup].Load() - joins; more > 0 {
					t.Errorf("%d JoinGroups after the kill", more)
				}
				for p := range n {
					if at := newPeer(t, w.broker).fact(fmt.Sprint("offset g demo ", p)); at != "1" {
						t.Errorf("partition %d is committed at %s", p, at)
					}
				}
			})
		})
	}
}
