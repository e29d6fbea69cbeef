package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ST-57: the epoch of this start is the leader epoch of every partition.
func TestOffsetForLeaderEpoch(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	k.append("a", 0, "x", "y")
	k.eachVersion(kmsg.OffsetForLeaderEpoch, func(t *testing.T, version int16) {
		for _, c := range []struct {
			topic          string
			current, epoch int32
			want           *kerr.Error
			found          int32
			end            int64
		}{
			{"a", -1, testEpoch, nil, testEpoch, 2},
			{"a", testEpoch, testEpoch, nil, testEpoch, 2},
			{"a", -1, testEpoch + 1, nil, -1, -1},
			{"a", -1, -1, nil, -1, -1},
			{"a", -1, -2, nil, -2, 0},
			{"a", -1, testEpoch - 1, nil, testEpoch - 1, 0},
			{"a", testEpoch - 1, testEpoch, kerr.FencedLeaderEpoch, -1, -1},
			{"a", testEpoch + 1, testEpoch, kerr.UnknownLeaderEpoch, -1, -1},
			{"missing", -1, testEpoch, kerr.UnknownTopicOrPartition, -1, -1},
		} {
			req := kmsg.NewPtrOffsetForLeaderEpochRequest()
			topic := kmsg.NewOffsetForLeaderEpochRequestTopic()
			topic.Topic = c.topic
			p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
			p.CurrentLeaderEpoch, p.LeaderEpoch = c.current, c.epoch
			topic.Partitions = append(topic.Partitions, p)
			req.Topics = append(req.Topics, topic)
			got := ask[*kmsg.OffsetForLeaderEpochResponse](k, version, req).Topics[0]
			wantCode(t, got.Partitions[0].ErrorCode, c.want)
			if got.Topic != c.topic || got.Partitions[0].LeaderEpoch != c.found || got.Partitions[0].EndOffset != c.end {
				t.Fatalf("%+v: %+v", c, got)
			}
		}
	})
}
