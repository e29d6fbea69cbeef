package handler

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// offsetFetch reads committed offsets, of one group or, from v8 on, of several
// (KafkaApis.handleOffsetFetchRequest). What was never committed has offset -1
// and no error, also where topic or group are unknown.
func (h *Handler) offsetFetch(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.OffsetFetchRequest)
	resp := kmsg.NewPtrOffsetFetchResponse()
	resp.SetVersion(req.Version)
	if req.Version < 8 {
		h.fetchOneGroup(req, body, resp)
		return resp
	}
	resp.Groups = make([]kmsg.OffsetFetchResponseGroup, len(body.Groups))
	for i := range body.Groups {
		g := &body.Groups[i]
		out := kmsg.NewOffsetFetchResponseGroup()
		out.Group = g.Group
		var err error
		if g.Topics == nil {
			out.Topics, err = h.allOffsets(req, g.Group)
		} else {
			out.Topics, err = h.someOffsets(req, g.Group, g.Topics)
		}
		if err != nil {
			out.ErrorCode = h.code(req, err)
		}
		resp.Groups[i] = out
	}
	return resp
}

// fetchOneGroup is v1 to v7. Null is all topics; v1 can't say that, kmsg reads it as none. An error of the
// group is told of each partition in v1, which has no other place for it.
func (h *Handler) fetchOneGroup(req *server.Request, body *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse) {
	var topics []kmsg.OffsetFetchResponseGroupTopic
	var err error
	if body.Topics == nil {
		topics, err = h.allOffsets(req, body.Group)
	} else {
		asked := make([]kmsg.OffsetFetchRequestGroupTopic, len(body.Topics))
		for i, t := range body.Topics {
			asked[i] = kmsg.OffsetFetchRequestGroupTopic{Topic: t.Topic, Partitions: t.Partitions}
		}
		topics, err = h.someOffsets(req, body.Group, asked)
		if err != nil && req.Version < 2 {
			topics = noOffsets(asked, h.code(req, err))
			err = nil
		}
	}
	if err != nil {
		resp.ErrorCode = h.code(req, err)
		return
	}
	for _, t := range topics {
		out := kmsg.NewOffsetFetchResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			out.Partitions = append(out.Partitions, kmsg.OffsetFetchResponseTopicPartition{
				Partition: p.Partition, Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, Metadata: p.Metadata, ErrorCode: p.ErrorCode,
			})
		}
		resp.Topics = append(resp.Topics, out)
	}
}

// allOffsets is everything that a group has committed. v10 tells topics by
// their ids: one that is gone by now has none.
func (h *Handler) allOffsets(req *server.Request, name string) ([]kmsg.OffsetFetchResponseGroupTopic, error) {
	fetched := h.Groups.FetchOffsets(&group.FetchOffsetsRequest{Group: name, All: true, Stable: stable(req)})
	if fetched.Err != nil {
		return nil, fetched.Err
	}
	var topics []kmsg.OffsetFetchResponseGroupTopic
	for i := range fetched.Offsets {
		f := &fetched.Offsets[i]
		id := kafka.TopicID{}
		if req.Version >= 10 {
			t, ok := h.Registry.Lookup(f.Topic)
			if !ok {
				continue
			}
			id = t.ID()
		}
		if n := len(topics); n == 0 || i > 0 && fetched.Offsets[i-1].Topic != f.Topic {
			out := kmsg.NewOffsetFetchResponseGroupTopic()
			out.Topic, out.TopicID = f.Topic, id
			topics = append(topics, out)
		}
		last := &topics[len(topics)-1]
		last.Partitions = append(last.Partitions, offsetOf(f))
	}
	return topics, nil
}

// someOffsets is what a group has committed for the topics that are asked for.
func (h *Handler) someOffsets(req *server.Request, name string, asked []kmsg.OffsetFetchRequestGroupTopic) ([]kmsg.OffsetFetchResponseGroupTopic, error) {
	fetch := &group.FetchOffsetsRequest{Group: name, Stable: stable(req)}
	var known, unknown []kmsg.OffsetFetchRequestGroupTopic
	for _, t := range asked {
		of := group.OffsetOf{Topic: t.Topic}
		if req.Version >= 10 {
			found, ok := h.Registry.LookupID(t.TopicID)
			if !ok {
				unknown = append(unknown, t)
				continue
			}
			of.Topic, of.TopicID = found.Name(), found.ID()
		}
		known = append(known, t)
		for _, of.Partition = range t.Partitions {
			fetch.Partitions = append(fetch.Partitions, of)
		}
	}
	fetched := h.Groups.FetchOffsets(fetch)
	if fetched.Err != nil {
		return nil, fetched.Err
	}
	topics := make([]kmsg.OffsetFetchResponseGroupTopic, 0, len(asked))
	rest := fetched.Offsets
	for _, t := range known {
		out := kmsg.NewOffsetFetchResponseGroupTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		out.Partitions = make([]kmsg.OffsetFetchResponseGroupTopicPartition, len(t.Partitions))
		for i := range t.Partitions {
			out.Partitions[i] = offsetOf(&rest[i])
		}
		rest = rest[len(t.Partitions):]
		topics = append(topics, out)
	}
	return append(topics, noOffsets(unknown, kerr.UnknownTopicID.Code)...), nil
}

func offsetOf(f *group.FetchedOffset) kmsg.OffsetFetchResponseGroupTopicPartition {
	out := kmsg.NewOffsetFetchResponseGroupTopicPartition()
	out.Partition, out.Offset, out.LeaderEpoch, out.Metadata = f.Partition, f.Offset, f.LeaderEpoch, &f.Metadata
	out.ErrorCode = kafka.ErrorCode(f.Err)
	return out
}

// stable says whether offsets that a transaction may change are not to be told (KIP-447).
func stable(req *server.Request) bool {
	return req.Version >= 7 && req.Body.(*kmsg.OffsetFetchRequest).RequireStable
}

// noOffsets answers topics that have none for an error's sake.
func noOffsets(asked []kmsg.OffsetFetchRequestGroupTopic, code int16) []kmsg.OffsetFetchResponseGroupTopic {
	topics := make([]kmsg.OffsetFetchResponseGroupTopic, len(asked))
	for i, t := range asked {
		topics[i] = kmsg.NewOffsetFetchResponseGroupTopic()
		topics[i].Topic, topics[i].TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			out := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			out.Partition, out.Offset, out.LeaderEpoch, out.Metadata, out.ErrorCode = p, -1, -1, new(string), code
			topics[i].Partitions = append(topics[i].Partitions, out)
		}
	}
	return topics
}
