package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/txn"
)

// initProducerID gives a producer its id and epoch (KIP-98, KIP-360; KafkaApis.handleInitProducerIdRequest).
func (h *Handler) initProducerID(ctx context.Context, req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.InitProducerIDRequest)
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.SetVersion(req.Version)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	init := txn.InitRequest{ID: body.TransactionalID, TimeoutMs: body.TransactionTimeoutMillis}
	if req.Version >= 3 {
		if (body.ProducerID == -1) != (body.ProducerEpoch == -1) {
			// Invalid even where neither is looked at.
			resp.ErrorCode = kerr.InvalidRequest.Code
			return resp
		}
		if body.ProducerID != -1 {
			init.Expected = &txn.Expected{ProducerID: body.ProducerID, Epoch: body.ProducerEpoch}
		}
	}
	id, epoch, err := h.Transactions.InitProducerID(ctx, init)
	if err != nil {
		resp.ErrorCode = h.fencedCode(req, err, 4)
		return resp
	}
	resp.ProducerID, resp.ProducerEpoch = id, epoch
	return resp
}

// fencedCode is code, but that versions before since know a fenced producer as INVALID_PRODUCER_EPOCH only.
func (h *Handler) fencedCode(req *server.Request, err error, since int16) int16 {
	if req.Version < since && kafka.ErrorCode(err) == kerr.ProducerFenced.Code {
		return kerr.InvalidProducerEpoch.Code
	}
	return h.code(req, err)
}
