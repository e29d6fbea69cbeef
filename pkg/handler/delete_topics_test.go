package handler

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

// deleteRequest names topics in the form of a version.
func deleteRequest(version int16, names ...string) *kmsg.DeleteTopicsRequest {
	req := kmsg.NewPtrDeleteTopicsRequest()
	if version < 6 {
		req.TopicNames = names
		return req
	}
	for _, n := range names {
		req.Topics = append(req.Topics, kmsg.DeleteTopicsRequestTopic{Topic: &n})
	}
	return req
}

// FX-21: a delete is complete when it is answered, and the name can be made again at once.
func TestDeleteTopicsByName(t *testing.T) {
	k := newKit(t)
	k.eachVersion(kmsg.DeleteTopics, func(t *testing.T, version int16) {
		made := k.create("a", 2)
		k.append("a", 0, "x")
		resp := ask[*kmsg.DeleteTopicsResponse](k, version, deleteRequest(version, "a", "missing", "twice", "twice"))
		want := map[string]*kerr.Error{"a": nil, "missing": kerr.UnknownTopicOrPartition, "twice": kerr.InvalidRequest}
		if len(resp.Topics) != len(want) {
			t.Fatalf("%+v", resp.Topics)
		}
		for _, got := range resp.Topics {
			wantCode(t, got.ErrorCode, want[*got.Topic])
			if version >= 5 && (got.ErrorMessage == nil) != (got.ErrorCode == 0) {
				t.Fatalf("%s: message %s", *got.Topic, show(got.ErrorMessage))
			}
			if version >= 6 && *got.Topic == "a" && got.TopicID != made.ID() {
				t.Fatalf("id %v, want %v", got.TopicID, made.ID())
			}
		}
		if again := k.create("a", 1); again.ID() == made.ID() {
			t.Fatal("the new topic has the old one's id")
		}
		if log, err := k.Handler.log("a", 0); err != nil || log.Offsets().End != 0 {
			t.Fatalf("the new topic has the old one's records: %v", err)
		}
		ask[*kmsg.DeleteTopicsResponse](k, version, deleteRequest(version, "a"))
	})
}

// KIP-516.
func TestDeleteTopicsByID(t *testing.T) {
	k := newKit(t)
	a, b, c, d := k.create("a", 1), k.create("b", 1), k.create("c", 1), k.create("d", 1)
	unknown := kafka.NewTopicID()
	req := kmsg.NewPtrDeleteTopicsRequest()
	add := func(name string, id kafka.TopicID) {
		t := kmsg.NewDeleteTopicsRequestTopic()
		if name != "" {
			t.Topic = &name
		}
		t.TopicID = id
		req.Topics = append(req.Topics, t)
	}
	add("", a.ID())          // deleted
	add("", unknown)         // not known
	add("", kafka.TopicID{}) // neither
	add("b", b.ID())         // both
	add("", c.ID())          // the same topic by id and by name
	add("c", kafka.TopicID{})
	add("", d.ID()) // twice
	add("", d.ID())
	add("d", kafka.TopicID{}) // and by name
	resp := ask[*kmsg.DeleteTopicsResponse](k, 6, req)
	type answer struct {
		name string
		id   kafka.TopicID
	}
	want := map[answer]struct {
		err  *kerr.Error
		text string
	}{
		{"a", a.ID()}:         {},
		{"", unknown}:         {kerr.UnknownTopicID, kerr.UnknownTopicID.Description},
		{"", kafka.TopicID{}}: {kerr.InvalidRequest, "Neither topic name nor id were specified."},
		{"b", b.ID()}:         {kerr.InvalidRequest, "You may not specify both topic name and topic id."},
		{"c", c.ID()}:         {kerr.InvalidRequest, "The provided topic name maps to an ID that was already supplied."},
		{"", d.ID()}:          {kerr.InvalidRequest, "Duplicate topic id."},
		{"d", d.ID()}:         {kerr.InvalidRequest, "The provided topic name maps to an ID that was already supplied."},
	}
	if len(resp.Topics) != len(want) {
		t.Fatalf("%d answers, want %d", len(resp.Topics), len(want))
	}
	for _, got := range resp.Topics {
		key := answer{id: got.TopicID}
		if got.Topic != nil {
			key.name = *got.Topic
		}
		w, ok := want[key]
		if !ok {
			t.Fatalf("unexpected answer %+v", key)
		}
		wantCode(t, got.ErrorCode, w.err)
		if w.err != nil {
			wantText(t, got.ErrorMessage, w.text)
		}
	}
	if all := k.Registry.All(); len(all) != 3 {
		t.Fatalf("%d topics are left, want b, c and d", len(all))
	}
}
