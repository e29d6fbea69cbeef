package handler

import (
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/server"
	"github.com/dozekafka/doze-kafka/pkg/txn"
)

// listTransactions tells of the transactional ids that its filters pick (KafkaApis.handleListTransactionsRequest).
func (h *Handler) listTransactions(req *server.Request) kmsg.Response {
	body := req.Body.(*kmsg.ListTransactionsRequest)
	resp := kmsg.NewPtrListTransactionsResponse()
	resp.SetVersion(req.Version)
	f := txn.Filter{ProducerIDs: body.ProducerIDFilters, States: body.StateFilters, DurationMs: -1}
	if req.Version >= 1 {
		f.DurationMs = body.DurationFilterMillis
	}
	if pattern := body.TransactionalIDPattern; req.Version >= 2 && pattern != nil && *pattern != "" {
		re, err := regexp.Compile(`^(?:` + *pattern + `)$`)
		if err != nil {
			resp.ErrorCode = kerr.InvalidRegularExpression.Code
			return resp
		}
		f.Match = re.MatchString
	}
	listed, unknown, err := h.Transactions.List(f)
	if err != nil {
		resp.ErrorCode = h.code(req, err)
		return resp
	}
	resp.UnknownStateFilters = unknown
	for _, s := range listed {
		out := kmsg.NewListTransactionsResponseTransactionState()
		out.TransactionalID, out.ProducerID, out.TransactionState = s.ID, s.ProducerID, s.Phase.String()
		resp.TransactionStates = append(resp.TransactionStates, out)
	}
	return resp
}
