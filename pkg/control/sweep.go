package control

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Compacted is the answer of POST /v1/topics/{topic}/compact.
type Compacted struct {
	Partitions     int   `json:"partitions"`     // that were gone through
	Segments       int   `json:"segments"`       // that were rewritten
	ReclaimedBytes int64 `json:"reclaimedBytes"` // by which they are shorter
	RemovedRecords int64 `json:"removedRecords"` // that they have no more, markers of transactions among them
}

// Retained is the answer of POST /v1/topics/{topic}/retain.
type Retained struct {
	Partitions int `json:"partitions"` // that begin at a later offset now
}

// Rolled is the answer of POST /v1/topics/{topic}/roll.
type Rolled struct {
	Partitions int `json:"partitions"` // of the topic; one whose active segment was empty stays as it is
}

// sweep answers once what it does to a topic is done, however long that takes, so that a test need not wait for it.
// A client that goes ends it, and so does the broker's stop.
func sweep[T any](do func(ctx context.Context, topic string) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := decode(w, r, &struct{}{}); err != nil && !errors.Is(err, errEmpty) {
			refuse(w, err)
			return
		}
		// Where there is no deadline to be lifted none has been set.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		done, err := do(r.Context(), r.PathValue("topic"))
		switch {
		case err == nil:
			reply(w, http.StatusOK, done)
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			failed(w, http.StatusNotFound, err)
		case errors.Is(err, kerr.PolicyViolation):
			refuse(w, err)
		case r.Context().Err() != nil:
			failed(w, http.StatusServiceUnavailable, errors.New("the broker is stopping; what was done stays done"))
		default:
			failed(w, http.StatusInternalServerError, err)
		}
	}
}
