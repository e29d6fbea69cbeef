package history

import (
	"fmt"
	"maps"
	"slices"
)

// A Loss is what the broker has gone through.
type Loss uint8

// What a broker can go through.
const (
	Kill     Loss = iota // of the process: all that was acknowledged is there
	PowerCut             // what was acknowledged durably is there
)

// A Kind says which promise is broken.
type Kind string

// The kinds of violations.
const (
	Lost       Kind = "lost"        // an acknowledged record is not there
	Duplicated Kind = "duplicated"  // a record is there twice
	Disorder   Kind = "disorder"    // a record stands before one that its producer sent earlier
	Gap        Kind = "gap"         // offsets are not contiguous
	Moved      Kind = "moved"       // a record is not at the offset that was told
	Invented   Kind = "invented"    // nobody sent this to this partition of this topic
	Denied     Kind = "refused"     // a record that was refused is there
	Torn       Kind = "torn"        // a batch or a transaction is there in part
	Aborted    Kind = "uncommitted" // a record is seen whose transaction was not committed
	Start      Kind = "log start"   // a log starts where nobody asked for it, or earlier than was told
	Fact       Kind = "fact"        // a commit, topic or config is not what was promised
)

// A Violation is one broken promise.
type Violation struct {
	Kind Kind
	What string
}

func (v Violation) Error() string { return string(v.Kind) + ": " + v.What }

// A Check compares one state of a broker with a history: facts, and every partition in a Reading. The history must
// not go on meanwhile.
type Check struct {
	Found      int // records
	Violations []Violation

	h     *History
	loss  Loss
	facts map[string]string
	seen  map[int]int // by transaction: its records that were read as committed
	gone  map[int]int // those that were acknowledged, and not read
}

// Check begins one.
func (h *History) Check(loss Loss) *Check {
	return &Check{h: h, loss: loss, facts: map[string]string{}, seen: map[int]int{}, gone: map[int]int{}}
}

func (c *Check) violate(kind Kind, format string, args ...any) {
	c.Violations = append(c.Violations, Violation{kind, fmt.Sprintf(format, args...)})
}

// Count is the number of violations of a kind.
func (c *Check) Count(kind Kind) (n int) {
	for _, v := range c.Violations {
		if v.Kind == kind {
			n++
		}
	}
	return n
}

// Err is the first violation, nil if there is none.
func (c *Check) Err() error {
	if len(c.Violations) == 0 {
		return nil
	}
	return fmt.Errorf("%w (%d violations)", c.Violations[0], len(c.Violations))
}

// Fact says what the broker says of a fact.
func (c *Check) Fact(fact, got string) {
	c.facts[fact] = got
	if may := c.h.May(fact); !slices.Contains(may, got) {
		c.violate(Fact, "%s: %s, promised was one of %q", fact, got, may)
	}
}

// A Reading is one partition, read from its log start to its end.
type Reading struct {
	c         *Check
	topic     string
	part      int32
	born      int
	p         *partition
	start     int64
	next      int64
	committed bool
	seen      map[uint32][]int64 // by producer and number: the offset, -1 for none
	last      map[uint32]uint32  // by producer: number of the last record, plus 1
}

// Read begins a reading that sees everything: control records, too, and what transactions have not committed.
func (c *Check) Read(topic string, part int32, start int64) *Reading {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	t := c.h.topics[topic]
	p := t.parts[part]
	if start < p.start || start > p.latest {
		c.violate(Start, "%s-%d starts at %d: it was told to start at %d, and asked for was %d at most", topic, part, start, p.start, p.latest)
	}
	r := &Reading{c: c, topic: topic, part: part, born: t.born, p: p, start: start, next: start, seen: map[uint32][]int64{}, last: map[uint32]uint32{}}
	for producer, entries := range p.sent {
		r.seen[producer] = slices.Repeat([]int64{-1}, len(entries))
	}
	return r
}

// ReadCommitted begins a reading of what a consumer with read_committed gets.
func (c *Check) ReadCommitted(topic string, part int32, start int64) *Reading {
	r := c.Read(topic, part, start)
	r.committed = true
	return r
}

// Control is a control record at an offset.
func (r *Reading) Control(offset int64) { r.step(offset) }

func (r *Reading) step(offset int64) {
	if offset < r.next || offset > r.next && !r.committed {
		r.c.violate(Gap, "%s-%d: a record at offset %d where %d is due", r.topic, r.part, offset, r.next)
	}
	r.next = max(r.next, offset+1)
}

// Record is a record at an offset.
func (r *Reading) Record(offset int64, value []byte) {
	r.step(offset)
	n, ok := parse(value)
	if !ok || n.topic != r.topic || n.part != r.part || n.born != r.born || int(n.n) >= len(r.seen[n.producer]) {
		r.c.violate(Invented, "%s-%d, topic %d of the name: at offset %d is %q, which nobody sent there", r.topic, r.part, r.born, offset, value)
		return
	}
	seen, e := r.seen[n.producer], r.p.sent[n.producer][n.n]
	if seen[n.n] >= 0 {
		r.c.violate(Duplicated, "%v is at offset %d and at %d", n, seen[n.n], offset)
		return
	}
	switch {
	case n.n < r.last[n.producer]:
		r.c.violate(Disorder, "%v is at offset %d, behind record %d", n, offset, r.last[n.producer]-1)
	case e.state == refused:
		r.c.violate(Denied, "%v is at offset %d, and was refused", n, offset)
	case e.offset >= 0 && e.offset != offset:
		r.c.violate(Moved, "%v is at offset %d, and was to be at %d", n, offset, e.offset)
	}
	seen[n.n] = offset
	r.last[n.producer] = max(r.last[n.producer], n.n+1)
	if !r.committed {
		r.c.Found++
	}
}

// End says that there is no more, and the log's end offset. What this reading has seen is what is promised from then on, if settle is true
// (and no request is on its way any more).
func (r *Reading) End(end int64, settle bool) {
	if end != r.next && !r.committed {
		r.c.violate(Gap, "%s-%d: the end is %d, and the last record is at offset %d", r.topic, r.part, end, r.next-1)
	}
	r.c.h.mu.Lock()
	defer r.c.h.mu.Unlock()
	for _, producer := range slices.Sorted(maps.Keys(r.p.sent)) {
		for n := range r.p.sent[producer] {
			r.endOf(name{r.topic, r.born, r.part, producer, uint32(n)}, &r.p.sent[producer][n])
		}
		if settle && !r.committed {
			r.settle(r.p.sent[producer], r.seen[producer])
		}
	}
	if settle && !r.committed {
		r.p.start, r.p.flushed = r.start, end
		r.p.latest = max(r.p.latest, r.start)
	}
}

// endOf looks at a record once all were read.
func (r *Reading) endOf(n name, e *entry) {
	seen := r.seen[n.producer]
	there := seen[n.n] >= 0
	if r.committed && e.txn > 0 {
		switch {
		case there:
			r.c.seen[int(e.txn)]++
		case e.state == acked && e.offset >= r.start:
			r.c.gone[int(e.txn)]++
		}
		return
	}
	promised := e.state == acked && (e.offset < 0 || e.offset >= r.start) && (r.c.loss == Kill || e.offset >= 0 && e.offset < r.p.flushed)
	if promised && !there {
		r.c.violate(Lost, "%v, acknowledged at offset %d", n, e.offset)
	}
	// The first records of a batch may be below the log start.
	before := n.n > e.first && seen[n.n-1] >= 0
	after := n.n > e.first && !there && before
	if begins := n.n > e.first && there && !before && seen[n.n] > r.start; after || begins {
		r.c.violate(Torn, "%v: the batch is there in part", n)
	}
	if before && there && seen[n.n] != seen[n.n-1]+1 {
		r.c.violate(Torn, "%v is at offset %d, and the one before in its batch at %d", n, seen[n.n], seen[n.n-1])
	}
}

func (r *Reading) settle(entries []entry, seen []int64) {
	for n := range entries {
		switch e := &entries[n]; {
		case seen[n] >= 0:
			e.offset, e.state = seen[n], acked
		case e.offset < 0 || e.offset >= r.start:
			e.state = refused
		}
	}
}

// Done ends the check: facts and readings are complete. It looks at transactions, over all partitions that were read as committed.
func (c *Check) Done() {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(c.h.txns)) {
		t, seen, gone := c.h.txns[n], c.seen[n], c.gone[n]
		switch {
		case seen > 0 && (t.outcome == open || t.outcome == aborted):
			c.violate(Aborted, "transaction %d: %d records of it are seen", n, seen)
		case gone > 0 && t.outcome == committed:
			c.violate(Lost, "transaction %d was committed: %d of its records are not seen", n, gone)
		case gone > 0 && seen > 0:
			c.violate(Torn, "transaction %d: %d of its records are seen, %d are not", n, seen, gone)
		case t.outcome == committing && seen+gone > 0:
			c.offsetsLocked(n, t, seen > 0)
		}
	}
}

// offsetsLocked wants the offsets of a transaction whose commit nobody answered to be in if its records are, out otherwise.
func (c *Check) offsetsLocked(n int, t *txn, in bool) {
	for fact, value := range t.facts {
		got, asked := c.facts[fact]
		if !asked || !slices.Contains(c.h.facts[fact], value) {
			continue // something later has come over it
		}
		if (got == value) != in {
			c.violate(Torn, "transaction %d: %s is %s, and its records are seen: %v", n, fact, got, in)
		}
	}
}
