package handler

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// transact puts a batch of a producer's transaction into partition 0, as if the coordinator vouched for it.
func (k *kit) transact(name string, id int64, epoch int16, sequence int32, values ...string) int64 {
	k.t.Helper()
	log, err := k.Handler.log(name, 0)
	check(k.t, err)
	o := record.Options{Transactional: true, Producer: &record.Producer{ID: id, Epoch: epoch, BaseSequence: sequence}}
	a, err := log.AppendVerified(batch(k.t, o, values...), producer.VerifiedInTxn)
	check(k.t, err)
	return a.BaseOffset
}

// end ends a producer's transaction on partition 0.
func (k *kit) end(name string, m commitlog.Marker) {
	k.t.Helper()
	log, err := k.Handler.log(name, 0)
	check(k.t, err)
	_, err = log.AppendMarker(m)
	check(k.t, err)
}

func describeProducersRequest(topic string, partitions ...int32) *kmsg.DescribeProducersRequest {
	req := kmsg.NewPtrDescribeProducersRequest()
	t := kmsg.NewDescribeProducersRequestTopic()
	t.Topic, t.Partitions = topic, partitions
	req.Topics = append(req.Topics, t)
	return req
}

// TX-10: every producer of a partition, with its open transaction.
func TestDescribeProducers(t *testing.T) {
	k := newKit(t)
	k.create("a", 2)
	before := time.Now().UnixMilli()
	k.append("a", 0, "plain")
	k.transact("a", 7, 3, 0, "x", "y")
	k.transact("a", 5, 0, 4, "z")
	k.end("a", commitlog.Marker{ProducerID: 5, Epoch: 1, Bumped: true, CoordinatorEpoch: 2})
	resp := ask[*kmsg.DescribeProducersResponse](k, 0, describeProducersRequest("a", 1, 0))
	parts := resp.Topics[0].Partitions
	if resp.Topics[0].Topic != "a" || len(parts) != 2 || parts[0].Partition != 1 || len(parts[0].ActiveProducers) != 0 {
		t.Fatalf("%+v", resp)
	}
	got := parts[1].ActiveProducers
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	for _, p := range got {
		if p.LastTimestamp < before || p.LastTimestamp > time.Now().UnixMilli() {
			t.Errorf("last timestamp %d", p.LastTimestamp)
		}
	}
	ended, open := got[0], got[1]
	if ended.ProducerID != 5 || ended.ProducerEpoch != 1 || ended.LastSequence != -1 || ended.CoordinatorEpoch != 2 || ended.CurrentTxnStartOffset != -1 {
		t.Errorf("%+v", ended)
	}
	if open.ProducerID != 7 || open.ProducerEpoch != 3 || open.LastSequence != 1 || open.CoordinatorEpoch != -1 || open.CurrentTxnStartOffset != 1 {
		t.Errorf("%+v", open)
	}
}

// Kafka has a text for a topic that is none or not there, and no text for a partition.
func TestDescribeProducersOfWhatIsNotThere(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	for _, c := range []struct {
		topic     string
		partition int32
		want      *kerr.Error
		text      string
	}{
		{"a b", 0, kerr.InvalidTopicException, "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"},
		{"missing", 0, kerr.UnknownTopicOrPartition, "This server does not host this topic-partition."},
		{"a", 1, kerr.UnknownTopicOrPartition, ""},
	} {
		got := ask[*kmsg.DescribeProducersResponse](k, 0, describeProducersRequest(c.topic, c.partition)).Topics[0].Partitions[0]
		wantCode(t, got.ErrorCode, c.want)
		if c.text == "" {
			if got.ErrorMessage != nil {
				t.Errorf("%+v: message %q", c, *got.ErrorMessage)
			}
			continue
		}
		wantText(t, got.ErrorMessage, c.text)
	}
}
