package handler

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// A produceCall is one Produce request under way. It is reused: in the steady
// state a request allocates nothing here, its response and closures included.
type produceCall struct {
	h    *Handler
	req  *server.Request
	body *kmsg.ProduceRequest

	resp    kmsg.ProduceResponse
	parts   []kmsg.ProduceResponseTopicPartition // of all topics, in the order of the request
	appends []appendJob
	flushes []flushJob
	failed  bool // some partition has an error
	empty   bool // some topic of the request has no partition

	out      server.Response
	wait     func(context.Context)
	response func() (*server.Response, error)
}

// An appendJob is a partition that passed all checks that come before the log.
type appendJob struct {
	topic *topic.Topic
	batch record.Batch
	out   *kmsg.ProduceResponseTopicPartition
	// verified is what the transaction coordinator has said of the batch; refused why it may not be appended.
	verified producer.Verified
	refused  error
}

// A flushJob is a partition whose acknowledgement waits for the disk.
type flushJob struct {
	log *commitlog.Log
	end int64
	out *kmsg.ProduceResponseTopicPartition
}

func newProduceCall(h *Handler) *produceCall {
	c := &produceCall{h: h}
	c.out.Body = &c.resp
	c.out.Release = c.recycle
	c.wait = c.awaitFlushed
	c.response = func() (*server.Response, error) { return &c.out, nil }
	return c
}

// produce appends at once, in the order of the connection, and lets the Reply
// wait for the disk where acks=all asks for it (ST-51): meanwhile the next
// request of the connection appends. acks=0 is never answered; an error closes
// the connection instead (ST-52, KafkaApis.handleProduceRequest).
// Batches of a transaction wait here for its row, if that does not name their
// partition yet: they have to be in the log before the next request of the connection is looked at (TX-4).
func (h *Handler) produce(ctx context.Context, req *server.Request) server.Reply {
	c := h.produces.Get().(*produceCall)
	c.req, c.body = req, req.Body.(*kmsg.ProduceRequest)
	c.prepareResponse()
	if err := c.check(); err != nil {
		c.refuseAll(err)
	} else {
		c.appendAll(ctx)
	}
	if c.body.Acks == 0 {
		failed := c.failed
		if failed {
			h.Logger.Info("an acks=0 produce failed: closing the connection tells the client",
				"client", req.ClientID, "remote", req.Conn.Remote, "error", c.firstError())
		}
		c.recycle()
		return server.Reply{Close: failed}
	}
	if c.empty { // Kafka collects the answers by partition (recorded: produce-requests)
		c.resp.Topics = slices.DeleteFunc(c.resp.Topics, func(t kmsg.ProduceResponseTopic) bool { return len(t.Partitions) == 0 })
	}
	reply := server.Reply{Response: c.response}
	if n := len(c.flushes); n > 0 {
		// Several logs are flushed side by side; the last, mostly the only one, by whoever waits for it.
		for _, f := range c.flushes[:n-1] {
			f.log.StartFlush(f.end)
		}
		reply.Wait = c.wait
	}
	return reply
}

// recycle forgets the request and makes the call usable for another.
func (c *produceCall) recycle() {
	clear(c.parts) // texts and record errors
	clear(c.appends)
	clear(c.flushes)
	clear(c.resp.Topics)
	c.parts, c.appends, c.flushes = c.parts[:0], c.appends[:0], c.flushes[:0]
	c.resp.Topics = c.resp.Topics[:0]
	c.req, c.body, c.failed, c.empty = nil, nil, false, false
	c.h.produces.Put(c)
}

// prepareResponse lays out the response like the request.
func (c *produceCall) prepareResponse() {
	total := 0
	for i := range c.body.Topics {
		total += len(c.body.Topics[i].Partitions)
	}
	if cap(c.parts) < total {
		c.parts = make([]kmsg.ProduceResponseTopicPartition, total)
	}
	c.parts = c.parts[:total]
	c.resp.Version = c.req.Version
	rest := c.parts
	for i := range c.body.Topics {
		in := &c.body.Topics[i]
		out := kmsg.NewProduceResponseTopic()
		out.Topic, out.TopicID = in.Topic, in.TopicID
		n := len(in.Partitions)
		c.empty = c.empty || n == 0
		out.Partitions, rest = rest[:n:n], rest[n:]
		for j := range in.Partitions {
			out.Partitions[j] = kmsg.NewProduceResponseTopicPartition()
			out.Partitions[j].Partition = in.Partitions[j].Partition
		}
		c.resp.Topics = append(c.resp.Topics, out)
	}
}

// check looks at the request as a whole, in Kafka's order, and collects what is
// to be appended. An error refuses every partition.
func (c *produceCall) check() error {
	transactional, err := c.transactional()
	if err != nil {
		return err
	}
	if transactional && c.body.TransactionID == nil {
		return kerr.TransactionalIDAuthorizationFailed
	}
	for i := range c.body.Topics {
		in := &c.body.Topics[i]
		t, err := c.topic(in)
		for j := range in.Partitions {
			out := &c.resp.Topics[i].Partitions[j]
			if err != nil || in.Partitions[j].Partition < 0 || in.Partitions[j].Partition >= t.Partitions() {
				c.refuse(out, nil, cmp.Or[error](err, kerr.UnknownTopicOrPartition))
				continue
			}
			records := in.Partitions[j].Records
			if records == nil {
				return errNullRecords
			}
			batch, err := soleBatch(records, c.body.Version)
			if errors.Is(err, kerr.UnknownServerError) {
				return err
			}
			if err != nil {
				c.refuse(out, nil, err)
				continue
			}
			c.appends = append(c.appends, appendJob{topic: t, batch: batch, out: out})
		}
	}
	return c.checkProducers()
}

// errNullRecords fails the whole request: Kafka does not expect null where it is allowed.
var errNullRecords = kerr.UnknownServerError

// transactional says whether the first batch of any partition belongs to a
// transaction. A first batch that can't be one is an error of the whole request (RequestUtils.flag).
func (c *produceCall) transactional() (bool, error) {
	for i := range c.body.Topics {
		for j := range c.body.Topics[i].Partitions {
			b, _, err := nextBatch(c.body.Topics[i].Partitions[j].Records)
			if err != nil {
				return false, err
			}
			if b != nil && b.MagicByte() == record.Magic && b.Transactional() {
				return true, nil
			}
		}
	}
	return false, nil
}

// topic finds the topic by its name, or by its id from v13 on (KIP-516). Produce never creates one.
func (c *produceCall) topic(in *kmsg.ProduceRequestTopic) (*topic.Topic, error) {
	if c.body.Version >= 13 {
		if t, ok := c.h.Registry.LookupID(in.TopicID); ok {
			return t, nil
		}
		return nil, kerr.UnknownTopicID
	}
	if t, ok := c.h.Registry.Lookup(in.Topic); ok {
		return t, nil
	}
	return nil, kerr.UnknownTopicOrPartition
}

// checkProducers wants at most one transactional producer in a request (ReplicaManager.handleProduceAppend).
func (c *produceCall) checkProducers() error {
	var first record.Batch
	for i := range c.appends {
		b := c.appends[i].batch
		switch {
		case !b.Transactional():
		case first == nil:
			first = b
		case b.ProducerID() != first.ProducerID() || b.ProducerEpoch() != first.ProducerEpoch():
			return kafka.Errorf(kerr.InvalidProducerIDMapping, "Transactional records contained more than one producer ID")
		}
	}
	return nil
}

// appendAll appends what the checks have left, within its transaction if it has one.
func (c *produceCall) appendAll(ctx context.Context) {
	// Also after a panic: the end of the transaction would wait for ever.
	defer c.enterTransaction(ctx)()
	for i := range c.appends {
		c.append(&c.appends[i])
	}
}

// append writes one batch and notes what its acknowledgement has to wait for.
func (c *produceCall) append(job *appendJob) {
	if err := c.checkAppend(job); err != nil {
		c.refuse(job.out, nil, err)
		job.out.ErrorMessage = kafka.ErrorMessage(err) // of the transaction coordinator
		return
	}
	log, err := job.topic.Log(job.out.Partition)
	if err != nil {
		c.refuse(job.out, nil, err)
		return
	}
	appended, err := appendBatch(log, job)
	if err != nil {
		c.refuse(job.out, log, err)
		return
	}
	job.out.BaseOffset = appended.BaseOffset
	job.out.LogAppendTime = appended.LogAppendTime
	job.out.LogStartOffset = appended.LogStart
	if c.body.Acks != -1 {
		return
	}
	// A duplicate waits too: its first copy may not be durable yet (ST-55).
	if !log.Flushed(appended.End) {
		c.flushes = append(c.flushes, flushJob{log: log, end: appended.End, out: job.out})
	}
}

// checkAppend is what Kafka checks between the request and the log.
func (c *produceCall) checkAppend(job *appendJob) error {
	if job.refused != nil {
		return job.refused
	}
	if c.body.Acks < -1 || c.body.Acks > 1 {
		return kerr.InvalidRequiredAcks
	}
	// Only Kafka's own tools write to Kafka's own topics, should somebody make one of their names.
	if isInternal(job.topic.Name()) && c.req.ClientID != "__admin_client" {
		return kerr.InvalidTopicException
	}
	return nil
}

// appendBatch hands a batch to the log, which wants a whole header.
func appendBatch(log *commitlog.Log, job *appendJob) (commitlog.Appended, error) {
	if len(job.batch) < record.HeaderSize {
		if job.batch.BaseOffset() != 0 {
			return commitlog.Appended{}, kerr.InvalidRecord
		}
		return commitlog.Appended{}, kerr.CorruptMessage
	}
	if job.verified != producer.Unverified {
		return log.AppendVerified(job.batch, job.verified)
	}
	return log.Append(job.batch)
}

// awaitFlushed waits until what was appended is durable (ST-51). A broker that
// stops still finishes the flush, for as long as replies may drain.
func (c *produceCall) awaitFlushed(ctx context.Context) {
	for _, f := range slices.Backward(c.flushes) {
		err := f.log.AwaitFlushed(ctx, f.end)
		if err != nil && errors.Is(context.Cause(ctx), server.ErrShutdown) {
			drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), server.ShutdownTimeout)
			err = f.log.AwaitFlushed(drain, f.end)
			cancel()
		}
		if err != nil { // also when nobody listens any more: what is not known to be durable is not acknowledged
			c.refuse(f.out, nil, err)
		}
	}
}
