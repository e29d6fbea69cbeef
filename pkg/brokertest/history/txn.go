package history

import "maps"

type outcome uint8

const (
	open       outcome = iota // nobody has asked for a commit: it must not be seen
	committing                // asked for, not answered: wholly in or wholly out
	committed
	aborted
)

type txn struct {
	outcome outcome
	facts   map[string]string // what its commit makes of offsets
	sent    map[string]bool   // it has records of topics
}

func (t *txn) clone() *txn {
	return &txn{t.outcome, maps.Clone(t.facts), maps.Clone(t.sent)}
}

// A Txn is a transaction: records, and offsets as facts, that are seen all together or not at all by who reads what is committed.
type Txn struct {
	h *History
	n int
}

// Transaction begins one.
func (h *History) Transaction() Txn {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.next
	h.next++
	h.txns[n] = &txn{facts: map[string]string{}, sent: map[string]bool{}}
	return Txn{h, n}
}

// Send is that of History, within the transaction.
func (t Txn) Send(topic string, part int32, producer uint32, n int, expected int64) Batch {
	return t.h.send(topic, part, producer, n, expected, int32(t.n))
}

// Offsets says that the transaction makes something of facts.
func (t Txn) Offsets(changes map[string]string) {
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	maps.Copy(t.h.txns[t.n].facts, changes)
}

// Committing says that somebody is about to ask for the commit.
func (t Txn) Committing() {
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	x := t.h.txns[t.n]
	x.outcome = committing
	t.h.beginLocked(x.facts)
}

// Committed says that the commit was answered.
func (t Txn) Committed() {
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	x := t.h.txns[t.n]
	x.outcome = committed
	t.h.promiseLocked(x.facts)
}

// Aborted says that the transaction was aborted for certain: the client was told so, or
// a later one of its id has begun although nobody had asked for a commit.
func (t Txn) Aborted() {
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	x := t.h.txns[t.n]
	if x.outcome == committing {
		t.h.denyLocked(x.facts)
	}
	x.outcome = aborted
}
