package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// listRequest asks for one offset.
func listRequest(name string, partition int32, ts int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = name
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, ts
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// appendAt puts one batch into a partition, with a record for each timestamp.
func (k *kit) appendAt(name string, timestamps ...int64) {
	k.t.Helper()
	log, err := k.Handler.log(name, 0)
	check(k.t, err)
	b := record.NewBuilder(record.Options{})
	for _, ts := range timestamps {
		check(k.t, b.Append(ts, []byte("k"), []byte("v")))
	}
	built, err := b.Batch()
	check(k.t, err)
	_, err = log.Append(built)
	check(k.t, err)
}

func TestListOffsetsSpecialTimestamps(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	k.appendAt("a", 100, 300, 200)
	k.appendAt("a", 150)
	k.create("empty", 1)
	k.eachVersion(kmsg.ListOffsets, func(t *testing.T, version int16) {
		for _, c := range []struct {
			topic      string
			ts         int64
			since      int16
			offset, at int64
			epoch      int32
		}{
			{"a", -1, 1, 4, -1, testEpoch},
			{"a", -2, 1, 0, -1, testEpoch},
			{"a", -3, 7, 1, 300, testEpoch},
			{"a", -4, 8, 0, -1, testEpoch},
			{"a", -5, 9, -1, -1, -1},
			{"a", -6, 11, -1, -1, -1},
			{"a", -7, 99, -1, -1, -1},
			{"a", 0, 1, 0, 100, testEpoch},
			{"a", 101, 1, 1, 300, testEpoch},
			{"a", 300, 1, 1, 300, testEpoch},
			{"a", 301, 1, -1, -1, -1},
			{"empty", -1, 1, 0, -1, testEpoch},
			{"empty", -3, 7, -1, -1, -1},
			{"empty", 5, 1, -1, -1, -1},
		} {
			resp := ask[*kmsg.ListOffsetsResponse](k, version, listRequest(c.topic, 0, c.ts))
			got := resp.Topics[0].Partitions[0]
			if version < c.since {
				wantCode(t, got.ErrorCode, kerr.UnsupportedVersion)
				if got.Offset != -1 || got.Timestamp != -1 {
					t.Fatalf("%+v", got)
				}
				continue
			}
			wantCode(t, got.ErrorCode, nil)
			if version < 4 {
				c.epoch = -1
			}
			if got.Offset != c.offset || got.Timestamp != c.at || got.LeaderEpoch != c.epoch {
				t.Fatalf("%s at %d: offset %d, timestamp %d, epoch %d; want %+v", c.topic, c.ts, got.Offset, got.Timestamp, got.LeaderEpoch, c)
			}
		}
	})
}

func TestListOffsetsErrors(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	k.eachVersion(kmsg.ListOffsets, func(t *testing.T, version int16) {
		one := func(name string, partition int32, epoch int32) int16 {
			req := listRequest(name, partition, -1)
			req.Topics[0].Partitions[0].CurrentLeaderEpoch = epoch
			return ask[*kmsg.ListOffsetsResponse](k, version, req).Topics[0].Partitions[0].ErrorCode
		}
		wantCode(t, one("missing", 0, -1), kerr.UnknownTopicOrPartition)
		wantCode(t, one("a", 1, -1), kerr.UnknownTopicOrPartition)
		wantCode(t, one("a", -1, -1), kerr.UnknownTopicOrPartition)
		if version >= 4 {
			wantCode(t, one("a", 0, testEpoch), nil)
			wantCode(t, one("a", 0, testEpoch-1), kerr.FencedLeaderEpoch)
			wantCode(t, one("a", 0, testEpoch+1), kerr.UnknownLeaderEpoch)
		}
		if _, ok := k.Registry.Lookup("missing"); ok {
			t.Fatal("ListOffsets made a topic")
		}
	})
}

func TestListOffsetsRefusesDuplicates(t *testing.T) {
	k := newKit(t)
	k.create("a", 2)
	req := listRequest("a", 0, -1)
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, listRequest("a", 1, -1).Topics[0].Partitions[0], req.Topics[0].Partitions[0])
	got := ask[*kmsg.ListOffsetsResponse](k, 7, req).Topics[0].Partitions
	if len(got) != 2 {
		t.Fatalf("%+v", got)
	}
	wantCode(t, got[0].ErrorCode, kerr.InvalidRequest)
	wantCode(t, got[1].ErrorCode, nil)
	if got[0].Offset != -1 || got[1].Offset != 0 {
		t.Fatalf("%+v", got)
	}
}

// The answers of a topic are together, and one without partitions has none.
func TestListOffsetsAnswersATopicOnce(t *testing.T) {
	k := newKit(t)
	k.create("a", 2)
	k.create("b", 1)
	req := listRequest("a", 0, -1)
	req.Topics = append(req.Topics, listRequest("b", 0, -1).Topics[0], listRequest("a", 1, -1).Topics[0], listRequest("c", 0, -1).Topics[0])
	req.Topics[3].Partitions = nil
	got := ask[*kmsg.ListOffsetsResponse](k, 7, req).Topics
	if len(got) != 2 || got[0].Topic != "a" || len(got[0].Partitions) != 2 || got[1].Topic != "b" || len(got[1].Partitions) != 1 {
		t.Fatalf("%+v", got)
	}
}

func TestListOffsetsWithAnUnknownIsolationLevel(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	req := listRequest("a", 0, -1)
	req.IsolationLevel = 2
	got := ask[*kmsg.ListOffsetsResponse](k, 7, req).Topics[0].Partitions[0]
	wantCode(t, got.ErrorCode, kerr.UnknownServerError)
	if got.Offset != -1 || got.LeaderEpoch != -1 {
		t.Fatalf("%+v", got)
	}
}
