package handler

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// offsetCommit stores offsets of a group (KafkaApis.handleOffsetCommitRequest).
// Partitions that do not exist are refused first; if none is left, the group is
// not asked. The answer comes when the offsets are on disk (ST-80).
func (h *Handler) offsetCommit(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.OffsetCommitRequest)
	c := committer{h: h, byID: req.Version >= 10, places: make(map[topicKey]int, len(body.Topics))}
	c.commit = group.CommitRequest{
		Group: body.Group, MemberID: body.MemberID, InstanceID: body.InstanceID, Generation: body.Generation, Version: req.Version,
		Retention: -1,
	}
	if ms := body.RetentionTimeMillis; ms >= 0 && req.Version <= 4 {
		c.commit.Retention = retention(ms)
	}
	for i := range body.Topics {
		c.sort(i, &body.Topics[i])
	}
	if len(c.commit.Offsets) > 0 {
		c.answerAll(req, h.Groups.CommitOffsets(ctx, &c.commit))
	}
	resp := kmsg.NewPtrOffsetCommitResponse()
	resp.SetVersion(req.Version)
	resp.Topics = c.topics
	return resp
}

// retention is a retention time of v2 to v4; one beyond what a duration can hold is as long as that.
func retention(ms int64) time.Duration {
	return time.Duration(min(ms, int64(1<<63-1)/int64(time.Millisecond))) * time.Millisecond
}

// A topicKey is what a request says of a topic: its name, or from some version on its id.
type topicKey struct {
	name string
	id   kafka.TopicID
}

// A committer takes an OffsetCommit apart: what is there goes to the group, what is not is answered.
type committer struct {
	h      *Handler
	byID   bool // the version tells topics by their ids
	commit group.CommitRequest
	keys   []topicKey // of commit.Offsets
	from   []int      // of commit.Offsets: which topic of the request
	topics []kmsg.OffsetCommitResponseTopic
	places map[topicKey]int // in topics
}

// sort takes one topic of the request, the nth.
func (c *committer) sort(n int, in *kmsg.OffsetCommitRequestTopic) {
	key := topicKey{name: in.Topic}
	t, ok := c.h.Registry.Lookup(in.Topic)
	unknown := kerr.UnknownTopicOrPartition
	if c.byID {
		key = topicKey{id: in.TopicID}
		t, ok = c.h.Registry.LookupID(in.TopicID)
		unknown = kerr.UnknownTopicID
	}
	if !ok {
		c.place(key) // also one without partitions
	}
	for i := range in.Partitions {
		p := &in.Partitions[i]
		switch {
		case !ok:
			c.answer(key, p.Partition, unknown.Code)
		case p.Partition < 0 || p.Partition >= t.Partitions():
			c.answer(key, p.Partition, kerr.UnknownTopicOrPartition.Code)
		default:
			c.keys, c.from = append(c.keys, key), append(c.from, n)
			c.commit.Offsets = append(c.commit.Offsets, group.OffsetToCommit{
				Topic: t.Name(), TopicID: t.ID(), Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: orEmpty(p.Metadata),
			})
		}
	}
}

// answerAll answers what the group was asked for. Kafka answers as the group
// does where nothing was refused before, and merges the two by topic otherwise.
func (c *committer) answerAll(req *server.Request, errs []error) {
	whole := len(c.topics) == 0
	for i, err := range errs {
		var code int16
		if err != nil {
			code = c.h.code(req, err)
		}
		if whole && (i == 0 || c.from[i] != c.from[i-1]) {
			delete(c.places, c.keys[i]) // a topic that the request has twice is answered twice
		}
		c.answer(c.keys[i], c.commit.Offsets[i].Partition, code)
	}
}

// place is where the topic is in the response.
func (c *committer) place(key topicKey) int {
	place, ok := c.places[key]
	if !ok {
		place = len(c.topics)
		c.places[key] = place
		out := kmsg.NewOffsetCommitResponseTopic()
		out.Topic, out.TopicID = key.name, key.id
		c.topics = append(c.topics, out)
	}
	return place
}

func (c *committer) answer(key topicKey, partition int32, code int16) {
	out := kmsg.NewOffsetCommitResponseTopicPartition()
	out.Partition, out.ErrorCode = partition, code
	t := &c.topics[c.place(key)]
	t.Partitions = append(t.Partitions, out)
}
