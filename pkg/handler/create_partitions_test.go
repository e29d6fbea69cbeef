package handler

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// growRequest asks for topics to have so many partitions.
func growRequest(count int32, names ...string) *kmsg.CreatePartitionsRequest {
	req := kmsg.NewPtrCreatePartitionsRequest()
	for _, n := range names {
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = n, count
		req.Topics = append(req.Topics, t)
	}
	return req
}

// FX-21: a new partition takes records once CreatePartitions is answered, and
// those of the old ones stay, also over a restart.
func TestCreatePartitionsAddsThem(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	k.append("a", 0, "x")
	k.eachVersion(kmsg.CreatePartitions, func(t *testing.T, version int16) {
		n := int32(version) + 2
		for _, only := range []bool{true, false} { // what is only validated is not made
			req := growRequest(n, "a")
			req.ValidateOnly = only
			got := ask[*kmsg.CreatePartitionsResponse](k, version, req).Topics
			if len(got) != 1 || got[0].Topic != "a" || got[0].ErrorMessage != nil {
				t.Fatalf("%+v", got)
			}
			wantCode(t, got[0].ErrorCode, nil)
		}
		k.append("a", n-1, "y")
	})
	k.restart()
	made, _ := k.Registry.Lookup("a")
	if made.Partitions() != 5 {
		t.Fatalf("%d partitions", made.Partitions())
	}
	if log, err := k.Handler.log("a", 0); err != nil || log.Offsets().End != 1 {
		t.Fatalf("the old partition: %v", err)
	}
}

func TestCreatePartitionsRefuses(t *testing.T) {
	k := newKit(t)
	k.create("a", 3)
	k.create("b", 3)
	req := growRequest(4, "missing", "twice", "a", "twice", "b")
	req.Topics[2].Count = 2
	req.Topics[4].Assignment = []kmsg.CreatePartitionsRequestTopicAssignment{{Replicas: []int32{testNode, 9}}}
	got := ask[*kmsg.CreatePartitionsResponse](k, 3, req).Topics
	want := []struct {
		name, text string
		err        *kerr.Error
	}{
		{"missing", "", kerr.UnknownTopicOrPartition},
		{"a", "The topic a currently has 3 partition(s); 2 would not be an increase.", kerr.InvalidPartitions},
		{"b", "The manual partition assignment includes broker 9, but no such broker is registered.", kerr.InvalidReplicaAssignment},
		{"twice", "Duplicate topic name.", kerr.InvalidRequest},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i, w := range want {
		wantCode(t, got[i].ErrorCode, w.err)
		if got[i].Topic != w.name || w.text == "" && got[i].ErrorMessage != nil {
			t.Fatalf("%s: %s", got[i].Topic, show(got[i].ErrorMessage))
		}
		if w.text != "" {
			wantText(t, got[i].ErrorMessage, w.text)
		}
	}
}

// An empty list of assignments is none for a new partition; null leaves them to the broker.
func TestCreatePartitionsWantsAnAssignmentForEach(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	for n, want := range map[int]*kerr.Error{0: kerr.InvalidReplicaAssignment, 1: kerr.InvalidReplicaAssignment, 2: nil} {
		req := growRequest(3, "a")
		req.ValidateOnly = true
		req.Topics[0].Assignment = make([]kmsg.CreatePartitionsRequestTopicAssignment, n)
		for i := range n {
			req.Topics[0].Assignment[i].Replicas = []int32{testNode}
		}
		wantCode(t, ask[*kmsg.CreatePartitionsResponse](k, 2, req).Topics[0].ErrorCode, want)
	}
}

// Partitions of topics that are not there do not count; too many refuse everything in the request.
func TestCreatePartitionsHasALimitPerRequest(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	wantCode(t, ask[*kmsg.CreatePartitionsResponse](k, 3, growRequest(10002, "missing")).Topics[0].ErrorCode, kerr.UnknownTopicOrPartition)
	got := ask[*kmsg.CreatePartitionsResponse](k, 3, growRequest(10002, "a", "b", "b")).Topics
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	for i := range got {
		wantCode(t, got[i].ErrorCode, kerr.PolicyViolation)
		wantText(t, got[i].ErrorMessage, "Excessively large number of additional partitions per request.")
	}
	req := growRequest(10001, "a")
	req.ValidateOnly = true
	wantCode(t, ask[*kmsg.CreatePartitionsResponse](k, 3, req).Topics[0].ErrorCode, nil)
}

// What could not be committed is not there.
func TestCreatePartitionsFailsWithTheCommit(t *testing.T) {
	var broken atomic.Bool
	k := newKitOn(t, crashfs.New(), func() error {
		if broken.Load() {
			return errors.New("no space left")
		}
		return nil
	})
	k.create("a", 1)
	broken.Store(true)
	got := ask[*kmsg.CreatePartitionsResponse](k, 3, growRequest(2, "a", "missing")).Topics
	wantCode(t, got[0].ErrorCode, kerr.KafkaStorageError)
	wantCode(t, got[1].ErrorCode, kerr.UnknownTopicOrPartition)
	if a, _ := k.Registry.Lookup("a"); a.Partitions() != 1 {
		t.Fatalf("%d partitions", a.Partitions())
	}
}
