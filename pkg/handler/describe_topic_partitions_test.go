package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// partitionsRequest asks for so many partitions of topics.
func partitionsRequest(limit int32, names ...string) *kmsg.DescribeTopicPartitionsRequest {
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = limit
	for _, n := range names {
		req.Topics = append(req.Topics, kmsg.DescribeTopicPartitionsRequestTopic{Topic: n})
	}
	return req
}

// Whatever the limit, a client that follows the cursor sees every partition once, in order (KIP-966).
func TestDescribeTopicPartitionsInPieces(t *testing.T) {
	k := newKit(t)
	k.create("b", 3)
	k.create("a", 2)
	k.create("c", 1)
	type place struct {
		topic     string
		partition int32
	}
	want := []place{{"a", 0}, {"a", 1}, {"b", 0}, {"b", 1}, {"b", 2}, {"c", 0}}
	for _, names := range [][]string{nil, {"c", "b", "a", "b"}} {
		for limit := range int32(8) {
			var got []place
			req := partitionsRequest(limit, names...)
			for requests := 0; ; requests++ {
				resp := ask[*kmsg.DescribeTopicPartitionsResponse](k, 0, req)
				for _, out := range resp.Topics {
					wantCode(t, out.ErrorCode, nil)
					for _, p := range out.Partitions {
						got = append(got, place{*out.Topic, p.Partition})
						if p.LeaderID != testNode || p.LeaderEpoch != testEpoch || len(p.Replicas) != 1 || len(p.ISR) != 1 || p.EligibleLeaderReplicas == nil {
							t.Fatalf("%+v", p)
						}
					}
				}
				if resp.NextCursor == nil || requests > 10 {
					break
				}
				req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: resp.NextCursor.Topic, Partition: resp.NextCursor.Partition}
			}
			if len(got) != len(want) {
				t.Fatalf("limit %d: %v", limit, got)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("limit %d: %v", limit, got)
				}
			}
		}
	}
}

func TestDescribeTopicPartitionsOfNoTopic(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	got := ask[*kmsg.DescribeTopicPartitionsResponse](k, 0, partitionsRequest(2000, "none", "a b", "a")).Topics
	want := []*kerr.Error{nil, kerr.InvalidTopicException, kerr.UnknownTopicOrPartition}
	for i, w := range want {
		wantCode(t, got[i].ErrorCode, w)
		if got[i].AuthorizedOperations != topicOperations {
			t.Fatalf("%+v", got[i])
		}
	}
	if _, made := k.Registry.Lookup("none"); made {
		t.Fatal("it was made")
	}
}

// A cursor has to be in the list, if there is one, and at a partition.
func TestDescribeTopicPartitionsRefusesCursors(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	k.create("b", 1)
	for _, x := range []struct {
		topic     string
		partition int32
		names     []string
		topics    int
		want      *kerr.Error
	}{
		{"b", 0, []string{"a"}, 1, kerr.InvalidRequest},
		{"a", -1, []string{"a", "b"}, 2, kerr.InvalidRequest},
		{"a", -1, nil, 0, nil},
		{"a", 7, nil, 2, nil}, // partitions beyond the end are none
		{"aa", 0, nil, 1, nil},
	} {
		req := partitionsRequest(2000, x.names...)
		req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: x.topic, Partition: x.partition}
		got := ask[*kmsg.DescribeTopicPartitionsResponse](k, 0, req).Topics
		if len(got) != x.topics {
			t.Fatalf("%+v: %+v", x, got)
		}
		for i := range got {
			wantCode(t, got[i].ErrorCode, x.want)
		}
	}
	for _, out := range ask[*kmsg.DescribeTopicPartitionsResponse](k, 0, partitionsRequest(2000, "a", "")).Topics {
		wantCode(t, out.ErrorCode, kerr.UnknownServerError)
	}
}
