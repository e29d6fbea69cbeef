package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/txn"
)

// What a version of TxnOffsetCommit means for the transaction (AddPartitionsToTxnManager), as in Produce.
const (
	txnCommitAbortable int16 = 4
	txnCommitAdds      int16 = 5
)

// txnOffsetCommit stages offsets that are committed with a transaction
// (KafkaApis.handleTxnOffsetCommitRequest). Partitions that do not exist are
// refused first; if none is left, neither transaction nor group are asked.
func (h *Handler) txnOffsetCommit(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.TxnOffsetCommitRequest)
	c := committer{h: h, byID: req.Version >= 6, places: make(map[topicKey]int, len(body.Topics))}
	c.commit = group.CommitRequest{Group: body.Group, Generation: -1, Version: req.Version}
	if req.Version >= 3 {
		c.commit.MemberID, c.commit.InstanceID, c.commit.Generation = body.MemberID, body.InstanceID, body.Generation
	}
	for i := range body.Topics {
		c.sort(i, offsetCommitTopic(&body.Topics[i]))
	}
	if len(c.commit.Offsets) > 0 {
		c.answerAll(req, h.stage(ctx, body, &c.commit))
	}
	resp := kmsg.NewPtrTxnOffsetCommitResponse()
	resp.SetVersion(req.Version)
	for _, t := range c.topics {
		out := kmsg.NewTxnOffsetCommitResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			out.Partitions = append(out.Partitions, kmsg.TxnOffsetCommitResponseTopicPartition{Partition: p.Partition, ErrorCode: p.ErrorCode})
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// offsetCommitTopic is a topic of the request as OffsetCommit has it.
func offsetCommitTopic(in *kmsg.TxnOffsetCommitRequestTopic) *kmsg.OffsetCommitRequestTopic {
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = in.Topic, in.TopicID
	for _, p := range in.Partitions {
		out := kmsg.NewOffsetCommitRequestTopicPartition()
		out.Partition, out.Offset, out.LeaderEpoch, out.Metadata = p.Partition, p.Offset, p.LeaderEpoch, p.Metadata
		t.Partitions = append(t.Partitions, out)
	}
	return &t
}

// stage is within the transaction: that does not end before the offsets are on the disk.
func (h *Handler) stage(ctx context.Context, body *kmsg.TxnOffsetCommitRequest, commit *group.CommitRequest) []error {
	refuse := func(err error) []error {
		errs := make([]error, len(commit.Offsets))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	if body.Group == "" {
		return refuse(kerr.InvalidGroupID)
	}
	p := txn.Producer{ID: body.TransactionalID, ProducerID: body.ProducerID, Epoch: body.ProducerEpoch}
	leave, err := h.Transactions.EnterGroup(ctx, p, body.Group, body.Version >= txnCommitAdds)
	if err != nil {
		return refuse(stagingRefused(body.Version, err))
	}
	defer leave()
	return h.Groups.StageOffsets(ctx, body.ProducerID, commit)
}

// stagingRefused is what a TxnOffsetCommit tells of an error of the coordinator (AddPartitionsToTxnManager).
func stagingRefused(version int16, err error) error {
	switch code := kafka.ErrorCode(err); {
	case code == kerr.ProducerFenced.Code:
		return kerr.InvalidProducerEpoch
	case code == kerr.TransactionAbortable.Code && version < txnCommitAbortable:
		return kerr.InvalidTxnState
	}
	return err
}
