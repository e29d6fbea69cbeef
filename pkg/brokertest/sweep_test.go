package brokertest_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
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
	topics   map[string]topicState
}

func newWorld() *world {
	w := &world{History: history.New(), topics: map[string]topicState{}}
	for _, name := range sweepTopics {
		w.Promise(topicFacts(name, 0))
	}
	return w
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
	c.History = w.Clone()
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

// A cut is a snapshot with what was promised by then.
type cut struct {
	number int
	step   string
	world  *world
	*brokertest.Snapshot
}

// A sweep runs the workload and takes cuts.
type sweep struct {
	*testing.T
	rng    *rand.Rand
	broker *brokertest.Broker
	peer   peer

	mu    sync.Mutex // guards what follows
	world *world
	steps int
	cuts  []cut
	taken error // the first Snapshot that failed
}

func (s *sweep) change(f func(w *world)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.world)
}

// watch takes a cut at every step whose number leaves rest when divided by every.
func (s *sweep) watch(every, rest int) {
	s.broker.OnStep(func(step string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.steps++; s.steps%every != rest {
			return
		}
		snapshot, err := s.broker.Snapshot()
		if err != nil && s.taken == nil {
			s.taken = fmt.Errorf("%s: %w", step, err)
		}
		s.cuts = append(s.cuts, cut{s.steps, step, s.world.clone(), snapshot})
	})
}

func (s *sweep) setState(name string, t topicState) {
	s.change(func(w *world) { w.topics[name] = t })
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

func (s *sweep) createTopic(name string) {
	partitions := 1 + s.rng.IntN(3)
	var t topicState
	s.change(func(w *world) {
		t = w.newTopic(name, partitions)
		w.topics[name] = t
	})
	id, err := s.peer.create(name, partitions)
	if err != nil {
		s.Fatalf("create %s: %v", name, err)
	}
	t.id = id
	s.change(func(w *world) {
		w.Promise(topicFacts(name, partitions))
		w.topics[name] = t
	})
}

func (s *sweep) deleteTopic(name string) {
	gone := topicFacts(name, 0)
	s.change(func(w *world) { w.Begin(gone) })
	if err := s.peer.remove(name); err != nil {
		s.Fatalf("delete %s: %v", name, err)
	}
	s.change(func(w *world) {
		w.Promise(gone)
		w.topics[name] = topicState{}
	})
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

// send produces a batch to some of a topic's partitions.
func (s *sweep) send(name string, acks int16) {
	t := s.world.topics[name]
	batches, sent := make([][]byte, len(t.parts)), make([]history.Batch, len(t.parts))
	s.change(func(w *world) {
		for i := range t.parts {
			if i == 0 || s.rng.IntN(2) == 0 {
				sent[i], batches[i] = w.next(s.T, name, i, 1+s.rng.IntN(3))
			}
		}
	})
	offsets := s.peer.produce(name, t.id, acks, batches)
	s.change(func(w *world) {
		for i, b := range sent {
			if b.N > 0 {
				s.holds(w.Ack(b, offsets[i], acks == -1))
			}
		}
	})
}

func (s *sweep) holds(err error) {
	s.Helper()
	if err != nil {
		s.Error(err)
	}
}

// again repeats the last batch of a partition: acknowledged once it is durable (ST-55).
func (s *sweep) again(name string) {
	t := s.world.topics[name]
	if t.parts[0].last == nil {
		return
	}
	offset := s.peer.produce(name, t.id, -1, [][]byte{t.parts[0].last})[0]
	s.change(func(w *world) {
		t.parts[0].cold = false
		s.holds(w.Ack(t.parts[0].lastIs, offset, true))
	})
}

// trim has records of a topic deleted: up to somewhere in the first partition, all in the others.
func (s *sweep) trim(name string) {
	t := s.world.topics[name]
	offsets := make([]int64, len(t.parts))
	s.change(func(w *world) {
		for i := range t.parts {
			p := &t.parts[i]
			offsets[i] = -1
			to := p.next
			if i == 0 {
				to = s.rng.Int64N(p.next + 1)
				offsets[i] = to
			}
			p.latest = max(p.latest, to)
			w.MayStart(name, int32(i), p.latest)
		}
	})
	starts, errs := s.peer.deleteTo(name, offsets...)
	if err := errors.Join(errs...); err != nil {
		s.Fatalf("delete records of %s: %v", name, err)
	}
	s.starts(name, starts)
}

// look asks where the partitions of a topic start: what a client was told does not go back.
func (s *sweep) look(name string) {
	t := s.world.topics[name]
	starts := make([]int64, len(t.parts))
	for i := range starts {
		starts[i] = s.peer.start(name, int32(i))
	}
	s.starts(name, starts)
}

// starts are what a client was told. But for where retention is at work they are what was asked for.
func (s *sweep) starts(name string, starts []int64) {
	s.change(func(w *world) {
		for i, at := range starts {
			if want := w.topics[name].parts[i].latest; name != trimmed && at != want {
				s.Errorf("%s-%d starts at %d, not at %d", name, i, at, want)
			}
			s.holds(w.Starts(name, int32(i), at))
		}
	})
}

func (s *sweep) restart() {
	s.broker = s.broker.Restart()
	s.peer = newPeer(s.T, s.broker)
	s.change(func(w *world) {
		for name, t := range w.topics {
			for i := range t.parts {
				if !t.parts[i].cold {
					w.Flushed(name, int32(i))
				}
			}
		}
	})
}

// kill goes on with a broker that finds what this one had written.
func (s *sweep) kill(every, rest int) {
	snapshot, err := s.broker.Snapshot()
	if err != nil {
		s.Fatal(err)
	}
	s.broker.OnStep(nil)
	s.broker = snapshot.Kill(s.T)
	s.peer = newPeer(s.T, s.broker)
	s.change(func(w *world) {
		for _, t := range w.topics {
			for i := range t.parts {
				t.parts[i].cold = true
			}
		}
	})
	s.watch(every, rest)
}

// run is the workload: topics made, filled, deleted and made again, with clean
// stops and kills between.
func (s *sweep) run(n, every, rest int) {
	for i := range n {
		name := sweepTopics[s.rng.IntN(len(sweepTopics))]
		switch t, r := s.world.topics[name], s.rng.IntN(23); {
		case i%25 == 24:
			s.restart()
		case i%25 == 12:
			s.kill(every, rest)
		case !t.exists:
			s.createTopic(name)
		case r == 0:
			s.deleteTopic(name)
		case r < 3:
			s.again(name)
		case r < 8:
			s.send(name, 1)
		case r == 8:
			<-time.After(1100 * time.Millisecond) // the timer flushes, and retention has a look
			s.look(name)
		case r > 20:
			s.trim(name)
		default:
			s.send(name, -1)
		}
	}
}

// check wants a broker to keep what the world was promised, and goes on: a topic that is there takes a repeat and a new batch for what
// they are, one that is not can be made anew, and is empty.
func (w *world) check(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	p := newPeer(t, b)
	c := w.Check(history.PowerCut)
	for name, was := range w.topics {
		id, partitions, found := p.find(name)
		if found {
			c.Fact("topic "+name, fmt.Sprint(partitions))
			c.Fact("config "+name, p.retention(name))
		} else {
			c.Fact("topic "+name, history.None)
			partitions = 3
			was = w.newTopic(name, partitions)
			var err error
			if id, err = p.create(name, partitions); err != nil {
				t.Fatalf("create %s: %v", name, err)
			}
		}
		if c.Err() != nil {
			break
		}
		if found && was.id != [16]byte{} && id != was.id {
			t.Errorf("topic %s has another id", name)
		}
		was.id = id
		w.Promise(topicFacts(name, partitions))
		w.topics[name] = was
		for i := range was.parts {
			w.checkPartition(t, p, c, name, i)
		}
	}
	c.Done()
	for _, v := range c.Violations {
		t.Error(v)
	}
}

func (w *world) checkPartition(t *testing.T, p peer, c *history.Check, name string, i int) {
	t.Helper()
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
			t.Errorf("a repeat: %v", err)
		}
	}
	was.next, was.latest = end, max(was.latest, start)
	var b history.Batch
	b, batches[i] = w.next(t, name, i, 1)
	if err := w.Ack(b, p.produce(name, topic.id, -1, batches)[i], true); err != nil {
		t.Errorf("the next batch: %v", err)
	}
}

// ST-9, ST-34, ST-35, ST-53, ST-54, ST-55, ST-71, ST-72: the power is cut at steps all over a
// workload of several topics, and what was promised is there whatever else
// survives: records once and at their offsets, log starts where DeleteRecords
// and retention have told that they are, topics with their ids and configs, and nothing of a topic that was deleted. What a broker promises after a cut
// outlives the next.
func TestPromisesOutliveAPowerCutAtAnyStep(t *testing.T) {
	const every, survivals = 9, 3
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var cuts []cut
	steps := 0
	t.Run("workload", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &sweep{T: t, rng: rand.New(rand.NewPCG(seed, 0)), world: newWorld()}
			s.broker = brokertest.Start(t)
			s.peer = newPeer(t, s.broker)
			s.world.producer = s.peer.producerID()
			rest := s.rng.IntN(every)
			s.watch(every, rest)
			s.run(100, every, rest)
			s.broker.OnStep(nil)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.taken != nil {
				t.Error(s.taken)
			}
			cuts, steps = s.cuts, s.steps
		})
	})
	checked := 0
	for _, c := range cuts {
		for i, survival := range crashfs.Survivals(seed+uint64(c.number), survivals) {
			ok := t.Run(fmt.Sprintf("%d %s, %s", c.number, strings.ReplaceAll(c.step, "/", "|"), survival), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := c.world.clone()
					b := c.PowerCut(t, survival)
					w.check(t, b)
					if i == survivals-1 {
						w.check(t, b.PowerCut(crashfs.LoseUnsynced))
					}
				})
			})
			if checked++; !ok {
				t.Fatalf("seed %d", seed)
			}
		}
	}
	t.Logf("%d steps, %d cuts, %d survivals each, %d brokers checked", steps, len(cuts), survivals, checked)
	if len(cuts) < 10 {
		t.Error("too few cuts for the test to mean anything")
	}
}
