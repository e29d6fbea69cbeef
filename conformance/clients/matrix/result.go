package matrix

import (
	"slices"
	"strings"

	"github.com/dozekafka/doze-kafka/conformance/clients/drivers/wire"
)

// result is what a client did, for docs/clients.md.
type result struct {
	info   wire.Line
	codecs []string // stored with, as read from outside
	steps  []string // that succeeded
}

func (r *result) did(step string) {
	if !slices.Contains(r.steps, step) {
		r.steps = append(r.steps, step)
	}
}

func (r *result) cell(step string) string {
	if slices.Contains(r.steps, step) {
		return "yes"
	}
	return "no"
}

// row is the client's line of the table.
func (r *result) row() string {
	codecs := strings.Join(r.codecs, ", ")
	if slices.Equal(r.codecs, codecNames) {
		codecs = "all five"
	}
	cells := []string{r.info.Client, r.info.Version, r.info.Language, r.cell("create"), codecs, r.cell("idempotent")}
	for _, s := range lastSteps {
		cells = append(cells, r.cell(s))
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// groupSteps are the columns about the group.
var groupSteps = []string{"eager", "cooperative", "commit", "rebalance", "restart", "resume"}

// lastSteps are the columns behind the codecs'.
var lastSteps = append(slices.Clone(groupSteps), "transactions", "read committed")

// features are what a client may have, or the table of drivers says why not.
var features = []string{"admin", "idempotent", "range", "cooperative", "commit", "headers", "transactions"}
