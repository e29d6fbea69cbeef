package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// deleteTopics removes topics by name or, from v6 on, by id (KIP-516). A delete is
// complete when it is answered (FX-21). The order of the answers means nothing:
// Kafka shuffles them, so that they do not tell a hidden topic from a missing one.
func (h *Handler) deleteTopics(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.DeleteTopicsRequest)
	resp := kmsg.NewPtrDeleteTopicsResponse()
	resp.SetVersion(req.Version)
	d := deleter{h: h, chosen: make(map[kafka.TopicID]*topic.Topic)}
	names, ids := d.collect(body)
	for _, id := range ids {
		d.chooseID(id)
	}
	for _, name := range names {
		d.chooseName(name)
	}
	var gone []kafka.TopicImage
	for _, id := range d.order {
		if t := d.chosen[id]; t != nil {
			err := h.Registry.Delete(ctx, t)
			d.answer(kmsg.StringPtr(t.Name()), id, h.code(req, err), err)
			if err == nil {
				gone = append(gone, kafka.TopicImage{Name: t.Name(), ID: id, Partitions: t.Partitions()})
			}
		}
	}
	h.dropOffsets(ctx, gone)
	resp.Topics = d.answers
	return resp
}

// dropOffsets removes the offsets of deleted topics (GR-7). The topics are gone
// whether or not it succeeds: offsets that are left are those of an id that no
// topic has any more, and go at the next start.
func (h *Handler) dropOffsets(ctx context.Context, gone []kafka.TopicImage) {
	if len(gone) == 0 {
		return
	}
	if err := h.Groups.TopicsDeleted(ctx, gone); err != nil {
		h.Logger.Warn("the offsets of deleted topics are left until the next start", "err", err)
	}
}

// A deleter sorts out which topics a DeleteTopics request means (ControllerApis.deleteTopics).
type deleter struct {
	h       *Handler
	answers []kmsg.DeleteTopicsResponseTopic
	chosen  map[kafka.TopicID]*topic.Topic // nil for one that was named twice over
	order   []kafka.TopicID
}

// collect returns the names and ids that are given once, and answers what is
// wrong by itself: both of them, neither, the same twice.
func (d *deleter) collect(body *kmsg.DeleteTopicsRequest) (names []string, ids []kafka.TopicID) {
	nameCount, idCount := make(map[string]int), make(map[kafka.TopicID]int)
	addName := func(name string) {
		if nameCount[name]++; nameCount[name] == 1 {
			names = append(names, name)
		}
	}
	for _, name := range body.TopicNames {
		addName(name)
	}
	for i := range body.Topics {
		name, id := body.Topics[i].Topic, kafka.TopicID(body.Topics[i].TopicID)
		switch {
		case name == nil && id.IsZero():
			d.refuse(nil, id, kafka.Errorf(kerr.InvalidRequest, "Neither topic name nor id were specified."))
		case name != nil && !id.IsZero():
			d.refuse(name, id, kafka.Errorf(kerr.InvalidRequest, "You may not specify both topic name and topic id."))
		case name != nil:
			addName(*name)
		default:
			if idCount[id]++; idCount[id] == 1 {
				ids = append(ids, id)
			}
		}
	}
	names = keep(names, func(name string) bool {
		if nameCount[name] == 1 {
			return true
		}
		d.refuse(&name, kafka.TopicID{}, kafka.Errorf(kerr.InvalidRequest, "Duplicate topic name."))
		return false
	})
	ids = keep(ids, func(id kafka.TopicID) bool {
		if idCount[id] == 1 {
			return true
		}
		d.chosen[id] = nil // a name for it is one too many
		d.refuse(nil, id, kafka.Errorf(kerr.InvalidRequest, "Duplicate topic id."))
		return false
	})
	return names, ids
}

// keep filters s in place.
func keep[T any](s []T, want func(T) bool) []T {
	out := s[:0]
	for _, v := range s {
		if want(v) {
			out = append(out, v)
		}
	}
	return out
}

func (d *deleter) chooseID(id kafka.TopicID) {
	t, ok := d.h.Registry.LookupID(id)
	if !ok {
		d.refuse(nil, id, kerr.UnknownTopicID)
		return
	}
	d.chosen[id] = t
	d.order = append(d.order, id)
}

// chooseName takes a topic by its name, unless its id was given too: then neither is deleted.
func (d *deleter) chooseName(name string) {
	t, ok := d.h.Registry.Lookup(name)
	if !ok {
		d.refuse(&name, kafka.TopicID{}, kerr.UnknownTopicOrPartition)
		return
	}
	id := t.ID()
	if _, given := d.chosen[id]; given {
		d.chosen[id] = nil
		d.refuse(&name, id, kafka.Errorf(kerr.InvalidRequest, "The provided topic name maps to an ID that was already supplied."))
		return
	}
	d.chosen[id] = t
	d.order = append(d.order, id)
}

func (d *deleter) refuse(name *string, id kafka.TopicID, err error) {
	d.answer(name, id, kafka.ErrorCode(err), err)
}

// answer adds the answer for one topic. err nil is a success, without a text.
func (d *deleter) answer(name *string, id kafka.TopicID, code int16, err error) {
	a := kmsg.NewDeleteTopicsResponseTopic()
	a.Topic, a.TopicID, a.ErrorCode = name, id, code
	if err != nil {
		a.ErrorMessage = text(err)
	}
	d.answers = append(d.answers, a)
}
