package brokertest_test

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// versions are the two ways in which clients do transactions: up to
// transaction.version 1, and 2, where the epoch changes with each end.
var txnVersions = map[string][]kgo.Opt{
	"transaction.version 1": {kgo.MaxVersions(kversion.V3_8_0())},
	"transaction.version 2": nil,
}

func transactional(b *brokertest.Broker, id string, opts ...kgo.Opt) *kgo.Client {
	return b.Client(append([]kgo.Opt{kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0)}, opts...)...)
}

// transact makes one transaction: a record to each of some partitions of the topic demo.
func transact(t *testing.T, cl *kgo.Client, commit bool, value string, partitions ...int32) error {
	t.Helper()
	noError(t, cl.BeginTransaction())
	var records []*kgo.Record
	for _, p := range partitions {
		records = append(records, &kgo.Record{Topic: "demo", Partition: p, Value: []byte(value)})
	}
	if err := cl.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		return err
	}
	settle(cl)
	return cl.EndTransaction(t.Context(), kgo.TransactionEndTry(commit))
}

// settle waits until the client has finished its update of metadata. franz-go 1.22.3 sends the first records for a topic before it has stored
// the topic's partitions, and a transaction that is ended in between counts as one without records: nothing is sent, and no error comes.
func settle(cl *kgo.Client) { cl.PurgeTopicsFromProducing("no topic") }

// visible are the values of a partition of the topic demo that a read_committed consumer sees, to its last stable offset.
func visible(t *testing.T, b *brokertest.Broker, partition int32) (values []string) {
	t.Helper()
	p := newPeer(t, b)
	id, _, _ := p.find("demo")
	stable := offsetOf(t, b, partition, 1)
	for at := int64(0); at < stable; {
		req := kmsg.NewPtrFetchRequest()
		req.MaxBytes, req.SessionEpoch, req.IsolationLevel = 1<<20, -1, 1
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes = partition, at, 1<<20
		req.Topics = []kmsg.FetchRequestTopic{{Topic: "demo", TopicID: id, Partitions: []kmsg.FetchRequestTopicPartition{part}}}
		got := ask[*kmsg.FetchResponse](p, req).Topics[0].Partitions[0]
		noError(t, kerr.ErrorForCode(got.ErrorCode))
		next, more := committedIn(t, &got)
		if next <= at {
			t.Fatalf("demo-%d: nothing at %d, and it is stable to %d", partition, at, stable)
		}
		at, values = next, append(values, more...)
	}
	return values
}

// committedIn reads a response as consumers do: a producer's batches are left
// out from the first offset of its aborted transaction to the marker.
func committedIn(t *testing.T, got *kmsg.FetchResponseTopicPartition) (next int64, values []string) {
	t.Helper()
	aborts := slices.Clone(got.AbortedTransactions)
	slices.SortFunc(aborts, func(x, y kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return cmp.Compare(x.FirstOffset, y.FirstOffset)
	})
	aborted := map[int64]bool{}
	for rest := got.RecordBatches; len(rest) > 0; {
		b, after, err := record.Parse(rest)
		noError(t, err)
		for len(aborts) > 0 && aborts[0].FirstOffset <= b.LastOffset() {
			aborted[aborts[0].ProducerID] = true
			aborts = aborts[1:]
		}
		switch {
		case b.Control():
			m, err := b.Marker()
			noError(t, err)
			if m.Type == record.Abort {
				delete(aborted, b.ProducerID())
			}
		case b.Transactional() && aborted[b.ProducerID()]:
		default:
			for r, err := range b.Records() {
				noError(t, err)
				values = append(values, string(r.Value))
			}
		}
		next, rest = b.LastOffset()+1, after
	}
	return next, values
}

// TX-5, TX-8: what is committed is seen at once, what is aborted never.
func TestTransactionsCommitAndAbort(t *testing.T) {
	for name, opts := range txnVersions {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := brokertest.Start(t)
				_, err := newPeer(t, b).create("demo", 3)
				noError(t, err)
				cl := transactional(b, "tx", opts...)
				for i := range 4 {
					noError(t, transact(t, cl, i%2 == 0, strconv.Itoa(i), 0, int32(1+i%2)))
				}
				for p, want := range [][]string{{"0", "2"}, {"0", "2"}, nil} {
					if got := visible(t, b, int32(p)); !slices.Equal(got, want) {
						t.Errorf("partition %d has %q, want %q", p, got, want)
					}
				}
			})
		})
	}
}

// TX-3: a second instance fences the first, whose open transaction is aborted.
func TestASecondInstanceFencesTheFirst(t *testing.T) {
	for name, opts := range txnVersions {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := brokertest.Start(t)
				_, err := newPeer(t, b).create("demo", 1)
				noError(t, err)
				first := transactional(b, "tx", opts...)
				noError(t, transact(t, first, true, "a", 0))
				noError(t, first.BeginTransaction())
				noError(t, first.ProduceSync(t.Context(), &kgo.Record{Topic: "demo", Value: []byte("b")}).FirstErr())
				second := transactional(b, "tx", opts...)
				noError(t, transact(t, second, true, "c", 0))
				err = first.ProduceSync(t.Context(), &kgo.Record{Topic: "demo", Value: []byte("d")}).FirstErr()
				if !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.ProducerFenced) {
					t.Errorf("the first instance produces: %v", err)
				}
				if err := first.EndTransaction(t.Context(), kgo.TryCommit); err == nil {
					t.Error("the first instance commits")
				}
				if got := visible(t, b, 0); !slices.Equal(got, []string{"a", "c"}) {
					t.Errorf("%q", got)
				}
			})
		})
	}
}

// TX-7: an open transaction is aborted when its time is over, also after a restart of the broker.
func TestATransactionTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := brokertest.Start(t)
		_, err := newPeer(t, b).create("demo", 1)
		noError(t, err)
		for i, next := range []func() *brokertest.Broker{
			func() *brokertest.Broker { return b },
			func() *brokertest.Broker { return b.Restart() },
			func() *brokertest.Broker { return b.PowerCut(crashfs.Random(1)) },
		} {
			cl := transactional(b, "tx", kgo.TransactionTimeout(10*time.Second))
			noError(t, cl.BeginTransaction())
			noError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "demo", Value: []byte("x")}).FirstErr())
			b = next()
			<-time.After(9 * time.Second)
			if start := openTransaction(t, b); start < 0 {
				t.Error("aborted too early")
			}
			<-time.After(2 * time.Second)
			if start := openTransaction(t, b); start >= 0 {
				t.Errorf("%d: open since %d", i, start)
			}
			if got := visible(t, b, 0); len(got) > 0 {
				t.Errorf("%q", got)
			}
			cl.Close()
		}
	})
}

// openTransaction is where the earliest open transaction of demo-0 begins, -1 if there is none.
func openTransaction(t *testing.T, b *brokertest.Broker) int64 {
	t.Helper()
	req := kmsg.NewPtrDescribeProducersRequest()
	req.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "demo", Partitions: []int32{0}}}
	start := int64(-1)
	for _, p := range ask[*kmsg.DescribeProducersResponse](newPeer(t, b), req).Topics[0].Partitions[0].ActiveProducers {
		start = max(start, p.CurrentTxnStartOffset)
	}
	return start
}

// TX-9: offsets that are sent to a transaction are seen exactly if it is committed, and are unstable until then.
func TestOffsetsAreCommittedWithTheTransaction(t *testing.T) {
	for name, opts := range txnVersions {
		for _, commit := range []bool{true, false} {
			t.Run(name+" commit "+strconv.FormatBool(commit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := brokertest.Start(t)
					_, err := newPeer(t, b).create("demo", 1)
					noError(t, err)
					produceTo(t, b, "in", 10)
					s, err := kgo.NewGroupTransactSession(append([]kgo.Opt{kgo.SeedBrokers(b.Addr()), kgo.Dialer(b.Net.Dial), kgo.TransactionalID("tx"),
						kgo.ConsumerGroup("g"), kgo.ConsumeTopics("in"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
						kgo.DefaultProduceTopic("demo")}, opts...)...)
					noError(t, err)
					defer s.Close()
					read := 0
					for read < 10 {
						f := s.PollFetches(t.Context())
						noError(t, f.Err())
						read += f.NumRecords()
					}
					noError(t, s.Begin())
					noError(t, s.ProduceSync(t.Context(), kgo.StringRecord("out")).FirstErr())
					settle(s.Client())
					ended, err := s.End(t.Context(), kgo.TransactionEndTry(commit))
					noError(t, err)
					want := int64(-1)
					if commit {
						want = 10
					}
					if ended != commit {
						t.Errorf("committed: %v", ended)
					}
					if got := committedOf(t, b, "g", "in"); got != want {
						t.Errorf("offset %d, want %d", got, want)
					}
				})
			})
		}
	}
}

func produceTo(t *testing.T, b *brokertest.Broker, topic string, n int) {
	t.Helper()
	cl := b.Client(kgo.AllowAutoTopicCreation())
	defer cl.Close()
	for i := range n {
		noError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(strconv.Itoa(i))}).FirstErr())
	}
}

// committedOf is a group's offset of partition 0 of a topic, -1 for none, and -2 if it is unstable.
func committedOf(t *testing.T, b *brokertest.Broker, group, topic string) int64 {
	t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.RequireStable = true
	req.Groups = []kmsg.OffsetFetchRequestGroup{{Group: group, MemberEpoch: -1, Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: topic, Partitions: []int32{0}}}}}
	resp, err := req.RequestWith(t.Context(), b.Client(byName))
	noError(t, err)
	noError(t, kerr.ErrorForCode(resp.Groups[0].ErrorCode))
	p := resp.Groups[0].Topics[0].Partitions[0]
	if errors.Is(kerr.ErrorForCode(p.ErrorCode), kerr.UnstableOffsetCommit) {
		return -2
	}
	noError(t, kerr.ErrorForCode(p.ErrorCode))
	return p.Offset
}

// TX-7: a transactional id that nobody uses is forgotten (transactional.id.expiration.ms), also over a restart, and may come back.
func TestATransactionalIDExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := brokertest.Start(t, func(s *config.Settings) { s.TransactionalIDExpirationMs = 3 * 3600 * 1000 })
		_, err := newPeer(t, b).create("demo", 1)
		noError(t, err)
		noError(t, transact(t, transactional(b, "tx"), true, "a", 0))
		described := func() error {
			req := kmsg.NewPtrDescribeTransactionsRequest()
			req.TransactionalIDs = []string{"tx"}
			return kerr.ErrorForCode(ask[*kmsg.DescribeTransactionsResponse](newPeer(t, b), req).TransactionStates[0].ErrorCode)
		}
		<-time.After(2 * time.Hour)
		noError(t, described())
		<-time.After(150 * time.Minute)
		if err := described(); !errors.Is(err, kerr.TransactionalIDNotFound) {
			t.Errorf("described after its time: %v", err)
		}
		b = b.Restart()
		if err := described(); !errors.Is(err, kerr.TransactionalIDNotFound) {
			t.Errorf("described after a restart: %v", err)
		}
		noError(t, transact(t, transactional(b, "tx"), true, "b", 0))
		if got := visible(t, b, 0); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("%q", got)
		}
	})
}
