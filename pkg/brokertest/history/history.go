// Package history holds what clients have asked of a broker against what it answered, and checks what
// the broker has later: after a kill, a power cut, a full disk. It knows neither the broker nor a client, so that
// sweeps in virtual time and chaos runs of the real binary are judged by one and the same.
//
// The promises are these. An acknowledged record is there, once, at the offset that was told. Offsets
// have no gaps. Records of one producer are in the order in which it sent them. What was refused for certain is not there, what
// nobody answered may be there or not. A batch is there wholly or not at all, and a transaction likewise, offsets included. Logs
// start where a client was told. What is left of a deleted topic is nothing. Facts (commits, topics, configs) hold.
package history

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A History is one run's account. Its methods may be called at the same time.
type History struct {
	mu     sync.Mutex // guards what follows, and all partitions, transactions and facts
	topics map[string]*topic
	facts  map[string][]string
	txns   map[int]*txn
	next   int // number of the next transaction
	acked  int64
}

// New is the history of a broker that nobody has asked for anything.
func New() *History {
	return &History{topics: map[string]*topic{}, facts: map[string][]string{}, txns: map[int]*txn{}, next: 1}
}

// A topic is the newest of its name.
type topic struct {
	born  int // how often a topic of the name was made
	parts []*partition
}

type partition struct {
	sent    map[uint32][]entry // by producer; what it sent first has number 0
	flushed int64              // what is acknowledged below this offset outlives a power cut
	start   int64              // the log start that a client was told
	latest  int64              // where it may be by now
}

type state uint8

const (
	asked   state = iota // nobody answered: either is right
	acked                // told to be there
	refused              // told not to be there, or found not to be
)

// An entry is a record that was sent.
type entry struct {
	offset int64 // -1: not known
	first  uint32
	txn    int32 // 0: none
	state  state
}

// A Batch is records that were sent together.
type Batch struct {
	Topic     string
	Born      int // which topic of the name
	Partition int32
	Producer  uint32
	First, N  uint32 // numbers of the producer's records of this partition
}

// Topic says that a topic of a name is about to be made, with so many partitions: records of its predecessors are never to be seen again.
func (h *History) Topic(name string, partitions int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := &topic{born: 1}
	if old := h.topics[name]; old != nil {
		t.born += old.born
	}
	h.topics[name] = t
	t.grow(partitions)
}

// Grow says that a topic is about to have so many partitions.
func (h *History) Grow(name string, partitions int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topics[name].grow(partitions)
}

func (t *topic) grow(partitions int) {
	for len(t.parts) < partitions {
		t.parts = append(t.parts, &partition{sent: map[uint32][]entry{}})
	}
}

// Partitions is how many partitions a topic may have by now.
func (h *History) Partitions(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[name]; t != nil {
		return len(t.parts)
	}
	return 0
}

// Send says that a producer is about to send n records. Their outcome is open until Ack or Refuse.
// expected is the offset at which they are if they are there, -1 if nobody can say.
func (h *History) Send(topic string, part int32, producer uint32, n int, expected int64) Batch {
	return h.send(topic, part, producer, n, expected, 0)
}

func (h *History) send(topic string, part int32, producer uint32, n int, expected int64, txn int32) Batch {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[topic]
	p := t.parts[part]
	first := uint32(len(p.sent[producer]))
	for i := range n {
		e := entry{offset: expected, first: first, txn: txn}
		if expected >= 0 {
			e.offset += int64(i)
		}
		p.sent[producer] = append(p.sent[producer], e)
	}
	return Batch{topic, t.born, part, producer, first, uint32(n)}
}

// entries are those of a batch, nil if its topic is gone. The caller holds mu.
func (h *History) entriesLocked(b Batch) (*partition, []entry) {
	t := h.topics[b.Topic]
	if t == nil || t.born != b.Born {
		return nil, nil
	}
	p := t.parts[b.Partition]
	return p, p.sent[b.Producer][b.First : b.First+b.N]
}

// Ack says that a batch was acknowledged at an offset (-1: none was told), durably if it is to outlive a power cut: so does then what
// was acknowledged before it. The error is a broker that tells another offset than before.
func (h *History) Ack(b Batch, offset int64, durably bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, entries := h.entriesLocked(b)
	for i := range entries {
		e, at := &entries[i], offset+int64(i)
		switch {
		case offset < 0:
		case e.offset >= 0 && e.offset != at:
			return fmt.Errorf("%v: acknowledged at offset %d, it was at %d", b.name(i), at, e.offset)
		default:
			e.offset = at
		}
		if e.state == refused {
			return fmt.Errorf("%v: acknowledged, and refused before", b.name(i))
		}
		if e.state == asked {
			h.acked++
		}
		e.state = acked
		if durably && e.offset >= 0 {
			p.flushed = max(p.flushed, e.offset+1)
		}
	}
	return nil
}

// Refuse says that a batch was refused for certain: with an error that leaves no doubt, to a client that had sent it once.
func (h *History) Refuse(b Batch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, entries := h.entriesLocked(b)
	for i := range entries {
		entries[i].state = refused
	}
}

// Flushed says that all that is acknowledged of a partition outlives a power cut from now on: a clean stop of a broker that had it open.
func (h *History) Flushed(topic string, part int32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.topics[topic].parts[part]
	for _, entries := range p.sent {
		for _, e := range entries {
			if e.state == acked {
				p.flushed = max(p.flushed, e.offset+1)
			}
		}
	}
}

// MayStart says that a log may start as late as at this offset: somebody is about to ask for it. math.MaxInt64: retention is at work.
func (h *History) MayStart(topic string, part int32, latest int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.topics[topic].parts[part]
	p.latest = max(p.latest, latest)
}

// Starts says that a client was told that a log starts at this offset: it does not go back.
func (h *History) Starts(topic string, part int32, at int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.topics[topic].parts[part]
	if at < p.start || at > p.latest {
		return fmt.Errorf("%s-%d starts at %d: it was told to start at %d, and asked for was %d at most", topic, part, at, p.start, p.latest)
	}
	p.start = at
	return nil
}

// Acknowledged is the number of records that were, of all topics there have been.
func (h *History) Acknowledged() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.acked
}

// Clone is a history that goes its own way from here.
func (h *History) Clone() *History {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &History{topics: make(map[string]*topic, len(h.topics)), facts: maps.Clone(h.facts), txns: map[int]*txn{}, next: h.next, acked: h.acked}
	for name, t := range h.topics {
		n := &topic{born: t.born}
		for _, p := range t.parts {
			q := *p
			q.sent = make(map[uint32][]entry, len(p.sent))
			for producer, entries := range p.sent {
				q.sent[producer] = slices.Clone(entries)
			}
			n.parts = append(n.parts, &q)
		}
		c.topics[name] = n
	}
	for n, t := range h.txns {
		c.txns[n] = t.clone()
	}
	return c
}
