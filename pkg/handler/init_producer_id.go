package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
)

// initProducerID gives an idempotent producer its id (KIP-98). Transactions do
// not exist: a transactional id is UNSUPPORTED_VERSION.
func (h *Handler) initProducerID(ctx context.Context, req *server.Request) kmsg.Response {
	resp := kmsg.NewPtrInitProducerIDResponse()
	resp.SetVersion(req.Version)
	id, err := h.newProducerID(ctx, req.Body.(*kmsg.InitProducerIDRequest))
	if err != nil {
		resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = h.code(req, err), -1, -1
		return resp
	}
	resp.ProducerID, resp.ProducerEpoch = id, 0
	return resp
}

// newProducerID checks in Kafka's order (KafkaApis.handleInitProducerIdRequest,
// TransactionCoordinator.handleInitProducerId): an id without an epoch or the
// other way round is invalid even where neither is looked at.
func (h *Handler) newProducerID(ctx context.Context, body *kmsg.InitProducerIDRequest) (int64, error) {
	switch {
	case body.Version >= 3 && (body.ProducerID == -1) != (body.ProducerEpoch == -1):
		return 0, kerr.InvalidRequest
	case body.TransactionalID == nil:
		return h.ProducerIDs.Next(ctx)
	case *body.TransactionalID == "":
		return 0, kerr.InvalidRequest
	}
	return 0, kerr.UnsupportedVersion
}
