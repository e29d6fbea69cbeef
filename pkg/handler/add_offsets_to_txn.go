package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/txn"
)

// addOffsetsToTxn puts a group into a transaction, which TxnOffsetCommit from
// v5 on does by itself (KafkaApis.handleAddOffsetsToTxnRequest).
func (h *Handler) addOffsetsToTxn(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.AddOffsetsToTxnRequest)
	resp := kmsg.NewPtrAddOffsetsToTxnResponse()
	resp.SetVersion(req.Version)
	p := txn.Producer{ID: body.TransactionalID, ProducerID: body.ProducerID, Epoch: body.ProducerEpoch}
	if err := h.Transactions.AddGroup(ctx, p, body.Group); err != nil {
		resp.ErrorCode = h.fencedCode(req, err, 2)
	}
	return resp
}
