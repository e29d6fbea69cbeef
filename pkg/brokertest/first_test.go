package brokertest_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
)

// atOnce are the options of a client that neither asks again nor waits for more to send.
var atOnce = []kgo.Opt{kgo.RequestRetries(0), kgo.RecordRetries(0), kgo.ProducerLinger(0)}

func once(b *brokertest.Broker, opts ...kgo.Opt) *kgo.Client {
	return b.Client(append(opts, atOnce...)...)
}

// FX-21: whatever a client asks for first, it has it at once: each of these is the first operation on a broker of its own.
func TestFirstOperationsNeedNoRetry(t *testing.T) {
	for name, operation := range map[string]func(t *testing.T, b *brokertest.Broker){
		"produce to a topic that makes itself": func(t *testing.T, b *brokertest.Broker) {
			want := produce(t, b, 0, 1, atOnce...)
			same(t, consume(t, b, 1), want)
		},
		"produce without acks": func(t *testing.T, b *brokertest.Broker) {
			cl := once(b, kgo.AllowAutoTopicCreation(), kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
			noError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "demo", Value: []byte("0")}).FirstErr())
			same(t, consume(t, b, 1), []string{"0"})
		},
		"consume a topic that makes itself": func(t *testing.T, b *brokertest.Broker) {
			cl := once(b, kgo.AllowAutoTopicCreation(), kgo.ConsumeTopics("demo"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			produce(t, b, 0, 1, atOnce...)
			f := cl.PollFetches(t.Context())
			noError(t, f.Err())
			if f.NumRecords() != 1 {
				t.Errorf("%d records", f.NumRecords())
			}
		},
		"create, then produce, list offsets, describe": func(t *testing.T, b *brokertest.Broker) {
			p := newPeer(t, b)
			id, err := p.create("demo", 3)
			noError(t, err)
			cl := once(b, kgo.RecordPartitioner(kgo.ManualPartitioner()))
			for i := range int32(3) {
				noError(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: "demo", Partition: i, Value: []byte("x")}).FirstErr())
				if end := p.end("demo", i); end != 1 {
					t.Errorf("partition %d ends at %d", i, end)
				}
				same(t, p.values("demo", id, i), []string{"x"})
			}
			if got, partitions, ok := p.find("demo"); got != id || partitions != 3 || !ok {
				t.Errorf("found %x with %d partitions, made %x", got, partitions, id)
			}
			if p.retention("demo") == "" {
				t.Error("no configs")
			}
		},
		"delete, then create and produce at once": func(t *testing.T, b *brokertest.Broker) {
			p := newPeer(t, b)
			old := produce(t, b, 0, 3, atOnce...)
			same(t, consume(t, b, len(old)), old)
			before, _, _ := p.find("demo")
			noError(t, p.remove("demo"))
			id, err := p.create("demo", 1)
			noError(t, err)
			if id == before {
				t.Error("the topic made anew has the id of the one before")
			}
			want := produce(t, b, 7, 1, atOnce...)
			same(t, p.values("demo", id, 0), want)
		},
		"producer id": func(t *testing.T, b *brokertest.Broker) {
			got := ask[*kmsg.InitProducerIDResponse](newPeer(t, b), kmsg.NewPtrInitProducerIDRequest())
			noError(t, kerr.ErrorForCode(got.ErrorCode))
		},
		"find a coordinator": func(t *testing.T, b *brokertest.Broker) {
			for kind := range int8(2) {
				req := kmsg.NewPtrFindCoordinatorRequest()
				req.CoordinatorType, req.CoordinatorKeys = kind, []string{"g"}
				if c := ask[*kmsg.FindCoordinatorResponse](newPeer(t, b), req).Coordinators[0]; c.ErrorCode != 0 || c.NodeID != 1 || c.Host+":"+strconv.Itoa(int(c.Port)) != b.Addr() {
					t.Errorf("%+v", c)
				}
			}
		},
		"describe the cluster": func(t *testing.T, b *brokertest.Broker) {
			got := ask[*kmsg.DescribeClusterResponse](newPeer(t, b), kmsg.NewPtrDescribeClusterRequest())
			if len(got.Brokers) != 1 || got.ControllerID != 1 || got.ErrorCode != 0 {
				t.Errorf("%+v", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := brokertest.Start(t)
				began := time.Now()
				operation(t, b)
				if waited := time.Since(began); waited > 0 { // of the bubble's time, which only a wait moves
					t.Errorf("somebody waited %v", waited)
				}
			})
		})
	}
}

// end is the offset behind the last record.
func (p peer) end(topic string, partition int32) int64 {
	p.t.Helper()
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.CurrentLeaderEpoch, part.Timestamp = partition, -1, -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, part)
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.Topics = -1, append(req.Topics, t)
	got := ask[*kmsg.ListOffsetsResponse](p, req).Topics[0].Partitions[0]
	noError(p.t, kerr.ErrorForCode(got.ErrorCode))
	return got.Offset
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
