package txn

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A Filter picks transactional ids (ListTransactions); what is empty picks all.
type Filter struct {
	ProducerIDs []int64
	States      []string          // names of phases; one that does not exist matches nothing
	DurationMs  int64             // only what began longer ago; below 0: any
	Match       func(string) bool // v2: of the transactional id; nil: any
}

// phaseNames are the states that a filter may name (TransactionState).
var phaseNames = []string{empty.String(), ongoing.String(), prepareCommit.String(), prepareAbort.String(),
	completeCommit.String(), completeAbort.String(), "PrepareEpochFence", "Dead"}

// List tells of the transactional ids that the filter picks, by id, and which
// of its states do not exist. COORDINATOR_NOT_AVAILABLE after Close.
func (c *Coordinator) List(f Filter) (listed []State, unknown []string, err error) {
	if c.closed.Load() {
		return nil, nil, kerr.CoordinatorNotAvailable
	}
	for _, name := range f.States {
		if !slices.Contains(phaseNames, name) && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	now := c.nowMs()
	for _, t := range c.all() {
		s := t.now()
		switch {
		case s.Epoch == noEpoch, // its first InitProducerId is under way, or has failed
			len(f.ProducerIDs) > 0 && !slices.Contains(f.ProducerIDs, s.ProducerID),
			len(f.States) > 0 && !slices.Contains(f.States, s.Phase.String()),
			f.DurationMs >= 0 && now-s.Start <= f.DurationMs,
			f.Match != nil && !f.Match(s.ID):
			continue
		}
		listed = append(listed, s)
	}
	slices.SortFunc(listed, func(a, b State) int { return cmp.Compare(a.ID, b.ID) })
	return listed, unknown, nil
}

// Describe tells of one. INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND.
func (c *Coordinator) Describe(id string) (State, error) {
	switch {
	case c.closed.Load():
		return State{}, kerr.CoordinatorNotAvailable
	case id == "":
		return State{}, kerr.InvalidRequest
	}
	c.mu.Lock()
	t := c.byID[id]
	c.mu.Unlock()
	if t == nil {
		return State{}, kerr.TransactionalIDNotFound
	}
	s := t.now()
	if s.Epoch == noEpoch {
		return State{}, kerr.TransactionalIDNotFound
	}
	return s, nil
}
