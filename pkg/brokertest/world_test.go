package brokertest_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// topicConfigs are those of every topic: a segment takes a few batches. Old as they are, no record is old enough to go.
var topicConfigs = [][2]string{{"internal.segment.bytes", "700"}, {retention, "9000000000000"}}

// sweepTopics are the names of all topics.
var sweepTopics = []string{"a", "b", trimmed}

// trimmed is the topic whose older segments retention removes every second.
const trimmed = "c.d"

var trimmedConfig = [2]string{"retention.bytes", "1500"}

const retention = "retention.ms"

// A world is what a client has asked for, and was told.
type world struct {
	*history.History
	producer int64
	// lock is held for a change by who checks a broker of which cuts are taken meanwhile, and never over a request.
	lock   *sync.Mutex
	topics map[string]topicState
}

func newWorld() *world {
	w := &world{History: history.New(), lock: new(sync.Mutex), topics: map[string]topicState{}}
	for _, name := range sweepTopics {
		w.Promise(topicFacts(name, 0))
		w.Promise(w.noOffsets(name))
	}
	return w
}

// mostPartitions is how many a topic has at most.
const mostPartitions = 4

// sweepGroup is the group whose offsets are committed.
const sweepGroup = "g"

func offsetFact(name string, part int) string {
	return fmt.Sprintf("offset %s %s %d", sweepGroup, name, part)
}

// noOffsets is what becomes of the offsets of a topic with its deletion (GR-7).
func (w *world) noOffsets(name string) map[string]string {
	facts := map[string]string{}
	for i := range mostPartitions {
		facts[offsetFact(name, i)] = history.None
	}
	return facts
}

func (w *world) change(f func()) {
	w.lock.Lock()
	defer w.lock.Unlock()
	f()
}

type topicState struct {
	id     [16]byte
	exists bool
	parts  []partState
}

// A partState is where the workload is in a partition.
type partState struct {
	next   int64         // the end, as far as the client knows
	last   []byte        // the last batch that was sent, as it was sent
	lastIs history.Batch // the same
	latest int64         // the furthest log start that was asked for
	cold   bool          // nothing has opened the partition since a kill: a clean stop does not flush it (ST-50)
}

func (w *world) clone() *world {
	c := *w
	c.History, c.lock = w.Clone(), new(sync.Mutex)
	c.topics = maps.Clone(w.topics)
	for name, t := range c.topics {
		t.parts = slices.Clone(t.parts)
		c.topics[name] = t
	}
	return &c
}

// sweepBatch is a batch of one producer whose sequence is the offset.
func sweepBatch(t *testing.T, producer int64, sequence int64, values [][]byte) []byte {
	b := record.NewBuilder(record.Options{Producer: &record.Producer{ID: producer, BaseSequence: int32(sequence)}})
	for _, v := range values {
		if err := b.Append(1_000_000, nil, v); err != nil {
			t.Fatal(err)
		}
	}
	out, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// topicFacts are what there is of a topic, or is not.
func topicFacts(name string, partitions int) map[string]string {
	if partitions == 0 {
		return map[string]string{"topic " + name: history.None, "config " + name: history.None}
	}
	return map[string]string{"topic " + name: fmt.Sprint(partitions), "config " + name: topicConfigs[1][1]}
}

// newTopic says that a topic is about to be made.
func (w *world) newTopic(name string, partitions int) topicState {
	w.Topic(name, partitions)
	w.Begin(topicFacts(name, partitions))
	if name == trimmed {
		for i := range partitions {
			w.MayStart(name, int32(i), math.MaxInt64)
		}
	}
	return topicState{exists: true, parts: make([]partState, partitions)}
}

// grow says that a topic is about to have one partition more.
func (w *world) grow(name string) topicState {
	t := w.topics[name]
	t.parts = append(slices.Clip(t.parts), partState{})
	w.Grow(name, len(t.parts))
	w.Begin(map[string]string{"topic " + name: fmt.Sprint(len(t.parts))})
	if name == trimmed {
		w.MayStart(name, int32(len(t.parts)-1), math.MaxInt64)
	}
	return t
}

// next is the batch of n records that comes next in a partition.
func (w *world) next(t *testing.T, name string, part, n int) (history.Batch, []byte) {
	p := &w.topics[name].parts[part]
	p.cold = false
	b := w.Send(name, int32(part), 0, n, p.next)
	p.last, p.lastIs = sweepBatch(t, w.producer, p.next, b.Values()), b
	p.next += int64(n)
	return b, p.last
}

// check wants a broker to keep what the world was promised, and goes on: a topic that is there takes a repeat and a new batch for what
// they are, one that is not can be made anew, and is empty.
func (w *world) check(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	w.checkAfter(t, b, history.PowerCut)
}

func (w *world) checkAfter(t *testing.T, b *brokertest.Broker, loss history.Loss) {
	t.Helper()
	p := newPeer(t, b)
	c := w.Check(loss)
	for _, name := range slices.Sorted(maps.Keys(w.topics)) {
		partitions := w.checkTopic(p, c, name)
		for i := 0; i < partitions && c.Err() == nil; i++ {
			w.checkPartition(p, c, name, i)
		}
	}
	c.Done()
	for _, v := range c.Violations {
		t.Error(v)
	}
}

// fact compares one, and what it is now is promised from then on.
func (w *world) fact(c *history.Check, fact, got string) {
	c.Fact(fact, got)
	w.Promise(map[string]string{fact: got})
}

// checkTopic looks at the facts of a topic, and makes it if it is not there. It returns how many partitions there are.
func (w *world) checkTopic(p peer, c *history.Check, name string) (partitions int) {
	p.t.Helper()
	id, partitions, found := p.find(name)
	w.change(func() {
		was := w.topics[name]
		if found && was.id != [16]byte{} && id != was.id {
			p.t.Errorf("topic %s has another id", name)
		}
		if found {
			w.fact(c, "topic "+name, fmt.Sprint(partitions))
			was.parts = was.parts[:min(partitions, len(was.parts))]
		} else {
			w.fact(c, "topic "+name, history.None)
			partitions = mostPartitions
			was = w.newTopic(name, partitions)
		}
		was.id = id
		w.topics[name] = was
	})
	if found {
		w.fact(c, "config "+name, p.retention(name))
	} else {
		id, err := p.create(name, partitions)
		if err != nil {
			p.t.Fatalf("create %s: %v", name, err)
		}
		w.change(func() {
			was := w.topics[name]
			was.id = id
			w.topics[name] = was
			w.Promise(topicFacts(name, partitions))
		})
	}
	for i := range partitions {
		w.fact(c, offsetFact(name, i), p.fact(offsetFact(name, i)))
	}
	return partitions
}

func (w *world) checkPartition(p peer, c *history.Check, name string, i int) {
	p.t.Helper()
	topic := w.topics[name]
	was := &topic.parts[i]
	start, end := p.read(c, name, topic.id, int32(i))
	if c.Err() != nil {
		return
	}
	batches := make([][]byte, i+1)
	if was.last != nil && end == was.next && end > start {
		batches[i] = was.last
		if err := w.Ack(was.lastIs, p.produce(name, topic.id, -1, batches)[i], true); err != nil {
			p.t.Errorf("a repeat: %v", err)
		}
	}
	var b history.Batch
	w.change(func() {
		was.next, was.latest = end, max(was.latest, start)
		b, batches[i] = w.next(p.t, name, i, 1)
	})
	if err := w.Ack(b, p.produce(name, topic.id, -1, batches)[i], true); err != nil {
		p.t.Errorf("the next batch: %v", err)
	}
}
