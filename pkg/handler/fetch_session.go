package handler

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/fetchsession"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// A fetchSession is the part of a fetch that knows sessions (KIP-227). Its
// lists are in the session's order, which the response's results refer to.
type fetchSession struct {
	context    *fetchsession.Context // nil: there is none, or the request was refused
	request    fetchsession.Request
	partitions []fetchsession.Partition
	told       []fetchsession.Result
	seen       map[fetchsession.Name]struct{} // see repeats
}

// reset forgets the request and keeps the memory.
func (s *fetchSession) reset() {
	clear(s.request.Partitions)
	clear(s.request.Forgotten)
	clear(s.partitions)
	s.request.Partitions, s.request.Forgotten = s.request.Partitions[:0], s.request.Forgotten[:0]
	s.partitions, s.context = s.partitions[:0], nil
}

// accept has the request accepted, and lists the partitions to read.
func (s *fetchSession) accept(cache *fetchsession.Cache, now time.Time) error {
	r := &s.request
	if r.SessionID == 0 && r.Epoch == fetchsession.FinalEpoch && !s.repeats() {
		// There is nothing to account to, and all is told. librdkafka, which
		// knows no sessions, fetches like this each time.
		s.partitions = append(s.partitions, r.Partitions...)
		return nil
	}
	ctx, err := cache.Begin(now, r)
	if err != nil {
		return err
	}
	s.context = ctx
	s.partitions = ctx.Append(s.partitions)
	return nil
}

// repeats says whether the request names a partition more than once.
func (s *fetchSession) repeats() bool {
	if len(s.request.Partitions) < 2 {
		return false
	}
	if s.seen == nil {
		s.seen = make(map[fetchsession.Name]struct{})
	}
	defer clear(s.seen)
	for i := range s.request.Partitions {
		s.seen[s.request.Partitions[i].Name] = struct{}{}
	}
	return len(s.seen) < len(s.request.Partitions)
}

// begin has the session accept the request, and looks up what it fetches:
// what is there becomes asks, and the results of what is not follow theirs.
func (c *fetchCall) begin() error {
	s := &c.session
	c.sessionRequest(&s.request)
	if err := s.accept(c.h.Sessions, c.h.Clock.Now()); err != nil {
		return err
	}
	missing := 0
	for i := range s.partitions {
		p := &s.partitions[i]
		t, err := c.lookup(p)
		if err != nil {
			missing++
			continue
		}
		log, err := t.Log(p.Partition)
		c.asks = append(c.asks, fetchAsk{
			topic: t, log: log, err: err, partition: p.Partition,
			offset: p.FetchOffset, maxBytes: p.MaxBytes,
			leaderEpoch: max(p.CurrentLeaderEpoch, noEpoch), lastFetchedEpoch: max(p.LastFetchedEpoch, noEpoch), // FetchRequest.optionalEpoch
		})
		c.results = append(c.results, fetchResult{at: i, topic: p.Topic, topicID: p.ID, partition: p.Partition})
	}
	if missing > 0 {
		c.addMissing(kerr.UnknownTopicID) // Kafka finds these first
		c.addMissing(kerr.UnknownTopicOrPartition)
	}
	return nil
}

// sessionRequest takes out of the request what concerns the session. Before v7 there are none.
func (c *fetchCall) sessionRequest(r *fetchsession.Request) {
	r.SessionID, r.Epoch = 0, fetchsession.FinalEpoch
	if c.req.Version >= 7 {
		r.SessionID, r.Epoch = c.body.SessionID, c.body.SessionEpoch
	}
	r.UsesTopicIDs = c.req.Version >= topicIDsFrom
	for i := range c.body.Topics {
		t := &c.body.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			r.Partitions = append(r.Partitions, fetchsession.Partition{
				Name:        fetchsession.Name{ID: t.TopicID, Topic: t.Topic, Partition: p.Partition},
				FetchOffset: p.FetchOffset, LogStart: p.LogStartOffset, MaxBytes: p.PartitionMaxBytes,
				CurrentLeaderEpoch: p.CurrentLeaderEpoch, LastFetchedEpoch: p.LastFetchedEpoch,
			})
		}
	}
	for i := range c.body.ForgottenTopics {
		t := &c.body.ForgottenTopics[i]
		for _, p := range t.Partitions {
			r.Forgotten = append(r.Forgotten, fetchsession.Name{ID: t.TopicID, Topic: t.Topic, Partition: p})
		}
	}
}

// lookup finds a partition's topic, by name or from v13 on by id. Fetch never creates one.
func (c *fetchCall) lookup(p *fetchsession.Partition) (*topic.Topic, error) {
	var t *topic.Topic
	var ok bool
	if c.req.Version >= topicIDsFrom {
		if t, ok = c.h.Registry.LookupID(p.ID); !ok {
			return nil, kerr.UnknownTopicID
		}
	} else {
		t, ok = c.h.Registry.Lookup(p.Topic)
	}
	if !ok || p.Partition < 0 || p.Partition >= t.Partitions() {
		return nil, kerr.UnknownTopicOrPartition
	}
	return t, nil
}

// addMissing adds the results of what is not there for this reason. They do not end the wait for the others.
func (c *fetchCall) addMissing(reason *kerr.Error) {
	for i := range c.session.partitions {
		p := &c.session.partitions[i]
		if _, err := c.lookup(p); errors.Is(err, reason) {
			r := fetchResult{at: i, topic: p.Topic, topicID: p.ID, partition: p.Partition}
			r.failUnread(reason.Code)
			c.results = append(c.results, r)
		}
	}
}

// settle accounts for the results in the session and keeps those that the response tells.
func (c *fetchCall) settle() {
	s := &c.session
	if s.context == nil {
		return
	}
	if cap(s.told) < len(s.partitions) {
		s.told = make([]fetchsession.Result, len(s.partitions))
	}
	s.told = s.told[:len(s.partitions)]
	for i := range c.results {
		r := &c.results[i]
		s.told[r.at] = fetchsession.Result{
			HighWatermark: r.highWatermark, LogStart: r.logStart, Bytes: r.region.Length,
			Error: r.errorCode != 0, Diverging: r.diverges,
		}
	}
	id, err := s.context.Respond(c.h.Clock.Now(), s.told)
	c.header.sessionID = id
	if err != nil {
		c.header.errorCode = c.h.code(c.req, err)
		c.dropResults(func(*fetchResult) bool { return true })
		return
	}
	c.dropResults(func(r *fetchResult) bool { return !s.told[r.at].Include })
}

// dropResults leaves results out of the response.
func (c *fetchCall) dropResults(drop func(*fetchResult) bool) {
	kept := c.results[:0]
	for i := range c.results {
		if r := &c.results[i]; drop(r) {
			r.release()
		} else {
			kept = append(kept, *r)
		}
	}
	clear(c.results[len(kept):]) // their regions are in what was kept, or let go
	c.results = kept
}
