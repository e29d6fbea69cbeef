package handler

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/server"
)

// code is the error code that the client of req gets for err. An error that is
// not one of Kafka's is a fault of the broker's own: it is logged here, once,
// with its chain. A wait that the end of the connection or of the broker cut
// short is REQUEST_TIMED_OUT, which a client repeats.
func (h *Handler) code(req *server.Request, err error) int16 {
	code := kafka.ErrorCode(err)
	if code != kerr.UnknownServerError.Code || errors.Is(err, kerr.UnknownServerError) {
		return code // the second is an answer that Kafka gives too
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return kerr.RequestTimedOut.Code
	}
	h.Logger.Error("a request failed for a reason that has no Kafka error code", "api", kmsg.NameForKey(req.Key),
		"version", req.Version, "client", req.ClientID, "err", err)
	return code
}

// text is the message for err of an API that always sends one (Errors.message
// where the error has none of its own).
func text(err error) *string {
	if m := kafka.ErrorMessage(err); m != nil {
		return m
	}
	ke := kerr.TypedErrorForCode(kafka.ErrorCode(err))
	if ke == nil {
		return nil
	}
	return &ke.Description
}
