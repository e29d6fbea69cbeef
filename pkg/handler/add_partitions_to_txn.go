package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/txn"
)

// addPartitionsToTxn puts partitions into a transaction; of one that does not
// exist none is added (KafkaApis.handleAddPartitionsToTxnRequest). v4 and later
// are what Kafka's brokers say to each other: of several transactions, and to verify only.
func (h *Handler) addPartitionsToTxn(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.AddPartitionsToTxnRequest)
	resp := kmsg.NewPtrAddPartitionsToTxnResponse()
	resp.SetVersion(req.Version)
	if req.Version < 4 {
		asked := make([]kmsg.AddPartitionsToTxnRequestTransactionTopic, len(body.Topics))
		for i, t := range body.Topics {
			asked[i] = kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: t.Topic, Partitions: t.Partitions}
		}
		p := txn.Producer{ID: body.TransactionalID, ProducerID: body.ProducerID, Epoch: body.ProducerEpoch}
		for _, t := range h.addToTransaction(ctx, req, p, false, asked) {
			out := kmsg.NewAddPartitionsToTxnResponseTopic()
			out.Topic = t.Topic
			for _, part := range t.Partitions {
				out.Partitions = append(out.Partitions, kmsg.AddPartitionsToTxnResponseTopicPartition{Partition: part.Partition, ErrorCode: part.ErrorCode})
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp
	}
	for i := range body.Transactions {
		in := &body.Transactions[i]
		out := kmsg.NewAddPartitionsToTxnResponseTransaction()
		out.TransactionalID = in.TransactionalID
		p := txn.Producer{ID: in.TransactionalID, ProducerID: in.ProducerID, Epoch: in.ProducerEpoch}
		out.Topics = h.addToTransaction(ctx, req, p, in.VerifyOnly, in.Topics)
		resp.Transactions = append(resp.Transactions, out)
	}
	return resp
}

// addToTransaction is one transaction of a request. The answer has the request's order.
func (h *Handler) addToTransaction(ctx context.Context, req *server.Request, p txn.Producer, verify bool, asked []kmsg.AddPartitionsToTxnRequestTransactionTopic) []kmsg.AddPartitionsToTxnResponseTransactionTopic {
	var partitions []txn.Partition
	missing := false
	topics := make([]kmsg.AddPartitionsToTxnResponseTransactionTopic, len(asked))
	for i, in := range asked {
		topics[i] = kmsg.NewAddPartitionsToTxnResponseTransactionTopic()
		topics[i].Topic = in.Topic
		t, ok := h.Registry.Lookup(in.Topic)
		for _, n := range in.Partitions {
			out := kmsg.NewAddPartitionsToTxnResponseTransactionTopicPartition()
			out.Partition, out.ErrorCode = n, kerr.OperationNotAttempted.Code
			if ok && n >= 0 && n < t.Partitions() {
				partitions = append(partitions, txn.Partition{Topic: t.Name(), TopicID: t.ID(), Partition: n})
			} else {
				out.ErrorCode, missing = kerr.UnknownTopicOrPartition.Code, true
			}
			topics[i].Partitions = append(topics[i].Partitions, out)
		}
	}
	if missing {
		return topics
	}
	var errs []error
	var err error
	if verify {
		errs, err = h.Transactions.Verify(ctx, p, partitions)
	} else {
		err = h.Transactions.AddPartitions(ctx, p, partitions, false)
	}
	next := 0
	for i := range topics {
		for j := range topics[i].Partitions {
			out := &topics[i].Partitions[j]
			out.ErrorCode = 0
			if err != nil {
				out.ErrorCode = h.fencedCode(req, err, 2)
			} else if errs != nil && errs[next] != nil {
				out.ErrorCode = h.code(req, errs[next])
			}
			next++
		}
	}
	return topics
}
