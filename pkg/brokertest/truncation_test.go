package brokertest_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// ST-57: a power cut takes records that a consumer has had, and others come to their offsets. The consumer learns of it: by
// OffsetForLeaderEpoch, by the diverging epoch of a fetch, and as franz-go's own detection tells its user.
func TestConsumersLearnOfAnUncleanCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := brokertest.Start(t, func(s *config.Settings) { s.FsyncInterval = 0 })
		produce(t, b, 0, 3) // acks=all
		lost := produce(t, b, 3, 5, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
		cl := b.Client()
		old := consumed(t, b, 3+len(lost))
		if old.LeaderEpoch != 0 || old.Offset != 7 {
			t.Fatalf("the last record has offset %d of epoch %d", old.Offset, old.LeaderEpoch)
		}
		cl.Close()

		b = b.PowerCut(crashfs.LoseUnsynced)
		produce(t, b, 100, 9)
		if got := consumed(t, b, 12); got.LeaderEpoch != 1 || got.Offset != 11 {
			t.Fatalf("the last record has offset %d of epoch %d", got.Offset, got.LeaderEpoch)
		}
		if epoch, end := endOf(t, b, 0); epoch != 0 || end != 3 {
			t.Errorf("epoch 0 ends at %d, of epoch %d; want 3", end, epoch)
		}
		if d := diverging(t, b, old.Offset+1, 0); d.Epoch != 0 || d.EndOffset != 3 {
			t.Errorf("a fetch at %d after epoch 0 diverges at %+v, want epoch 0 up to 3", old.Offset+1, d)
		}
		if d := diverging(t, b, 12, 1); d.EndOffset != -1 {
			t.Errorf("a fetch at the end after epoch 1 diverges at %+v", d)
		}
		at := kgo.NewOffset().At(old.Offset + 1).WithEpoch(old.LeaderEpoch)
		f := b.Client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"demo": {0: at}})).PollFetches(t.Context())
		loss, ok := errors.AsType[*kgo.ErrDataLoss](f.Err())
		if !ok || loss.ConsumedTo != old.Offset+1 || loss.ResetTo != 3 {
			t.Errorf("franz-go was told of %v (%+v)", f.Err(), loss)
		}
	})
}

// consumed is the last of the first n records.
func consumed(t *testing.T, b *brokertest.Broker, n int) *kgo.Record {
	t.Helper()
	cl := b.Client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"demo": {0: kgo.NewOffset().AtStart()}}))
	defer cl.Close()
	for {
		f := cl.PollFetches(t.Context())
		noError(t, f.Err())
		for r := range f.RecordsAll() {
			if r.Offset == int64(n-1) {
				return r
			}
		}
	}
}

// endOf asks where a leader epoch ended.
func endOf(t *testing.T, b *brokertest.Broker, epoch int32) (of int32, end int64) {
	t.Helper()
	part := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
	part.CurrentLeaderEpoch, part.LeaderEpoch = -1, epoch
	topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
	topic.Topic, topic.Partitions = "demo", append(topic.Partitions, part)
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID, req.Topics = -1, append(req.Topics, topic)
	got := ask[*kmsg.OffsetForLeaderEpochResponse](newPeer(t, b), req).Topics[0].Partitions[0]
	noError(t, kerr.ErrorForCode(got.ErrorCode))
	return got.LeaderEpoch, got.EndOffset
}

// diverging fetches as a consumer that has last had a record of an epoch.
func diverging(t *testing.T, b *brokertest.Broker, offset int64, lastFetched int32) kmsg.FetchResponseTopicPartitionDivergingEpoch {
	t.Helper()
	part := kmsg.NewFetchRequestTopicPartition()
	part.FetchOffset, part.LastFetchedEpoch, part.CurrentLeaderEpoch, part.PartitionMaxBytes = offset, lastFetched, -1, 1<<20
	p := newPeer(t, b)
	topic := kmsg.NewFetchRequestTopic()
	topic.TopicID, _, _ = p.find("demo")
	topic.Partitions = append(topic.Partitions, part)
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch, req.Topics = 1<<20, -1, append(req.Topics, topic)
	got := ask[*kmsg.FetchResponse](p, req).Topics[0].Partitions[0]
	noError(t, kerr.ErrorForCode(got.ErrorCode))
	return got.DivergingEpoch
}
