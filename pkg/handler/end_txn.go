package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/txn"
)

// endTxn commits or aborts a transaction, and answers once that is complete.
// v5 bumps the epoch and tells it (KIP-890, KafkaApis.handleEndTxnRequest).
func (h *Handler) endTxn(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.EndTxnRequest)
	resp := kmsg.NewPtrEndTxnResponse()
	resp.SetVersion(req.Version)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	id, epoch, err := h.Transactions.End(ctx, txn.EndRequest{
		Producer: txn.Producer{ID: body.TransactionalID, ProducerID: body.ProducerID, Epoch: body.ProducerEpoch},
		Commit:   body.Commit, Bumps: req.Version >= 5,
	})
	if err != nil {
		resp.ErrorCode = h.fencedCode(req, err, 2)
		return resp
	}
	resp.ProducerID, resp.ProducerEpoch = id, epoch
	return resp
}
