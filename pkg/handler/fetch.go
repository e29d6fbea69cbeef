package handler

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// fetchMaxBytes bounds every fetch response (fetch.max.bytes, 55 MiB).
const fetchMaxBytes = 55 << 20

// A fetchCall is one Fetch request under way. It is reused, buffers, timer and
// closures included.
type fetchCall struct {
	h    *Handler
	req  *server.Request
	body *kmsg.FetchRequest

	session fetchSession
	limits  fetchLimits
	asks    []fetchAsk    // what can be read
	results []fetchResult // of asks, in their order, then of what is not there
	header  fetchHeader
	files   []fileCut // scratch

	wake    chan struct{}
	timer   *time.Timer // of the long poll; real time
	cancels []func()    // of the watches

	wait     func(context.Context)
	response func() (*server.Response, error)
}

func newFetchCall(h *Handler) *fetchCall {
	c := &fetchCall{h: h, wake: make(chan struct{}, 1)}
	c.wait = func(ctx context.Context) {
		c.await(ctx)
		c.read()
	}
	c.response = c.respond
	return c
}

// fetch reads at once what there is. If that is not enough it is a long poll:
// the Reply waits, then everything is read again (KafkaApis.handleFetchRequest,
// ReplicaManager.fetchMessages). Records stay in their files until the
// connection sends them.
func (h *Handler) fetch(_ context.Context, req *server.Request) server.Reply {
	c := h.fetches.Get().(*fetchCall)
	c.req, c.body = req, req.Body.(*kmsg.FetchRequest)
	c.header = fetchHeader{version: req.Version}
	c.limits = fetchLimits{
		isolation: kafka.Isolation(c.body.IsolationLevel),
		follower:  replicaID(c.body) >= 0,
		maxBytes:  int(min(max(c.body.MaxBytes, 0), fetchMaxBytes)),
		maxWait:   time.Duration(c.body.MaxWaitMillis) * time.Millisecond,
	}
	c.limits.minBytes = min(int(c.body.MinBytes), c.limits.maxBytes)

	reply := server.Reply{Response: c.response}
	if err := c.begin(); err != nil {
		c.header.errorCode = h.code(req, err)
		return reply
	}
	if len(c.asks) > 0 && !knownIsolation(c.body.IsolationLevel) {
		c.refuse(kerr.UnknownServerError)
		return reply
	}
	size, urgent := c.read()
	if c.limits.maxWait > 0 && len(c.asks) > 0 && size < c.limits.minBytes && !urgent {
		c.releaseRegions() // they are read again, and a segment may go in the meantime
		reply.Wait = c.wait
	}
	return reply
}

// replicaID is who fetches: -1 is a consumer.
func replicaID(body *kmsg.FetchRequest) int32 {
	if body.Version >= 15 {
		return body.ReplicaState.ID
	}
	return body.ReplicaID
}

// knownIsolation says whether there is such an isolation level; Kafka fails on any other (IsolationLevel.forId).
func knownIsolation(level int8) bool {
	return level == int8(kafka.ReadUncommitted) || level == int8(kafka.ReadCommitted)
}

// refuse makes the response one of an error (FetchRequest.getErrorResponse):
// up to v12 each partition of the request has it too. A session that has accepted the request stays as it is.
func (c *fetchCall) refuse(err *kerr.Error) {
	c.session.context = nil
	c.header.errorCode = err.Code
	clear(c.results)
	c.results = c.results[:0]
	if c.req.Version >= topicIDsFrom {
		return
	}
	for i := range c.body.Topics {
		t := &c.body.Topics[i]
		for j := range t.Partitions {
			r := fetchResult{topic: t.Topic, partition: t.Partitions[j].Partition}
			r.failUnread(err.Code)
			c.results = append(c.results, r)
		}
	}
}

// respond settles the session, hands the results to an answer, and is done.
func (c *fetchCall) respond() (*server.Response, error) {
	c.settle()
	c.header.nodeID = c.h.NodeID
	for i := range c.results {
		if c.results[i].tellLeader && !c.limits.follower { // a replica knows where its leader is
			c.header.tellNode = true
			c.header.nodeHost, c.header.nodePort = c.h.self(c.req.Conn)
			break
		}
	}
	a := c.h.answers.Get().(*fetchAnswer)
	c.files = a.take(&c.header, c.results, c.files)
	c.recycle()
	return &a.out, nil
}

func (c *fetchCall) releaseRegions() {
	for i := range c.results {
		c.results[i].release()
	}
}

// recycle forgets the request and makes the call usable for another.
func (c *fetchCall) recycle() {
	clear(c.asks)
	clear(c.results)
	c.asks, c.results = c.asks[:0], c.results[:0]
	c.session.reset()
	c.req, c.body = nil, nil
	select {
	case <-c.wake: // one that came after the last look
	default:
	}
	c.h.fetches.Put(c)
}
