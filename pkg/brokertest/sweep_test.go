package brokertest_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

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

// grow gives a topic one partition more.
func (s *sweep) grow(name string) {
	if len(s.world.topics[name].parts) == mostPartitions {
		return
	}
	var t topicState
	s.change(func(w *world) {
		t = w.grow(name)
		w.topics[name] = t
	})
	if err := s.peer.grow(name, len(t.parts)); err != nil {
		s.Fatalf("grow %s: %v", name, err)
	}
	s.change(func(w *world) { w.Promise(map[string]string{"topic " + name: fmt.Sprint(len(t.parts))}) })
}

// alter sets a topic's retention to another age that no record has.
func (s *sweep) alter(name string) {
	value := fmt.Sprint(9_000_000_000_000 + s.rng.Int64N(1_000_000_000))
	s.did(map[string]string{"config " + name: value}, func() error { return s.peer.alter(name, retention, value) })
}

// commit commits an offset for each partition of a topic.
func (s *sweep) commit(name string) {
	t := s.world.topics[name]
	offsets, facts := make([]int64, len(t.parts)), map[string]string{}
	for i := range offsets {
		offsets[i] = s.rng.Int64N(1_000_000)
		facts[offsetFact(name, i)] = fmt.Sprint(offsets[i])
	}
	s.did(facts, func() error { return s.peer.commit(sweepGroup, name, t.id, offsets) })
}

// did asks something whose answer promises facts.
func (s *sweep) did(facts map[string]string, ask func() error) {
	s.change(func(w *world) { w.Begin(facts) })
	if err := ask(); err != nil {
		s.Fatalf("%v: %v", facts, err)
	}
	s.change(func(w *world) { w.Promise(facts) })
}

func (s *sweep) deleteTopic(name string) {
	gone := topicFacts(name, 0)
	maps.Copy(gone, s.world.noOffsets(name))
	s.change(func(w *world) { w.Begin(gone) })
	if err := s.peer.remove(name); err != nil {
		s.Fatalf("delete %s: %v", name, err)
	}
	s.change(func(w *world) {
		w.Promise(gone)
		w.topics[name] = topicState{}
	})
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
		switch t, r := s.world.topics[name], s.rng.IntN(27); {
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
		case r == 9:
			s.grow(name)
		case r == 10:
			s.alter(name)
		case r > 24:
			s.commit(name)
		case r > 22:
			s.trim(name)
		default:
			s.send(name, -1)
		}
	}
}

// A sweepTally is what a sweep has done.
type sweepTally struct {
	steps, cuts, survivals, second, brokers int
	acknowledged                            int64
}

func (n *sweepTally) String() string {
	return fmt.Sprintf("%d steps of workloads, the power cut after %d of them, %d survivals each, a second cut in %d recoveries, %d brokers checked; %d records acknowledged, 0 lost",
		n.steps, n.cuts, n.survivals, n.second, n.brokers, n.acknowledged)
}

// cutsOf runs the workload of a seed and returns its cuts.
func (n *sweepTally) cutsOf(t *testing.T, seed uint64, length, every int) (cuts []cut) {
	t.Run("workload", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &sweep{T: t, rng: rand.New(rand.NewPCG(seed, 0)), world: newWorld()}
			s.broker = brokertest.Start(t)
			s.peer = newPeer(t, s.broker)
			s.world.producer = s.peer.producerID()
			rest := s.rng.IntN(every)
			if *sweepCut > 0 {
				every, rest = math.MaxInt, *sweepCut
			}
			s.watch(every, rest)
			s.run(length, every, rest)
			s.broker.OnStep(nil)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.taken != nil {
				t.Error(s.taken)
			}
			cuts = s.cuts
			n.steps += s.steps
			n.cuts += len(cuts)
			n.acknowledged += s.world.Acknowledged()
		})
	})
	return cuts
}

// cutAgain starts a broker with what a survival leaves of a cut. Before step at of that it calls taken with what the disk has then.
func cutAgain(t *testing.T, s *brokertest.Snapshot, survival crashfs.Survival, at int, taken func(number int, step string, s *brokertest.Snapshot)) *brokertest.Broker {
	t.Helper()
	steps := 0
	var mu sync.Mutex
	return s.WatchedPowerCut(t, survival, func(b *brokertest.Broker, step string) {
		mu.Lock()
		defer mu.Unlock()
		if steps++; steps != at {
			return
		}
		snapshot, err := b.Snapshot()
		if err != nil {
			t.Errorf("%s: %v", step, err)
			return
		}
		taken(steps, step, snapshot)
	})
}

// look checks what one survival leaves of a cut, and what another leaves of a second cut while the broker recovers from the first.
func (n *sweepTally) look(t *testing.T, c *cut, survival crashfs.Survival, rng *rand.Rand) {
	w := c.world.clone()
	var second *cut
	b := cutAgain(t, c.Snapshot, survival, 1+rng.IntN(60), func(number int, step string, s *brokertest.Snapshot) {
		w.change(func() { second = &cut{number, step, w.clone(), s} })
	})
	w.check(t, b)
	b.OnStep(nil)
	n.brokers++
	if second == nil {
		w.check(t, b.PowerCut(crashfs.LoseUnsynced))
		return
	}
	again := crashfs.Survivals(rng.Uint64(), 3)[rng.IntN(3)]
	t.Logf("the second cut is before step %d of the recovery, %s, %s", second.number, second.step, again)
	second.world.check(t, second.PowerCut(t, again))
	n.brokers++
	n.second++
}

// lookKilled checks what a kill leaves, and a power cut after it.
func (n *sweepTally) lookKilled(t *testing.T, c *cut) {
	w := c.world.clone()
	b := c.Kill(t)
	w.checkAfter(t, b, history.Kill)
	w.check(t, b.PowerCut(crashfs.LoseUnsynced))
	n.brokers += 2
}

// ST-9, ST-34, ST-35, ST-53, ST-54, ST-55, ST-71, ST-72: the power is cut at steps all over a
// workload of several topics, and what was promised is there whatever else
// survives: records once and at their offsets, log starts where DeleteRecords
// and retention have told that they are, topics with their ids, partitions and configs, committed offsets, and nothing of a topic that was deleted. The power goes a second time
// at some step of the recovery. What a broker promises after a cut outlives the next.
func TestPromisesOutliveAPowerCutAtAnyStep(t *testing.T) {
	rounds, length, every, survivals := 1, 100, 15, 3
	if *sweepFull {
		rounds, length, every, survivals = 2, 120, 1, 4
	}
	if *sweepCut > 0 {
		rounds, survivals = 1, 64
		if *sweepFull {
			length = 120
		}
	}
	n := &sweepTally{survivals: survivals + 1}
	for round := range rounds {
		seed := sweepSeedOf(t, round)
		for _, c := range n.cutsOf(t, seed, length, every) {
			rng := rand.New(rand.NewPCG(seed, uint64(c.number)))
			name := fmt.Sprintf("%d %s", c.number, strings.ReplaceAll(c.step, "/", "|"))
			ok := true
			for _, survival := range crashfs.Survivals(seed+uint64(c.number), survivals) {
				ok = ok && t.Run(fmt.Sprintf("%s, %s", name, survival), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { n.look(t, &c, survival, rng) })
				})
			}
			ok = ok && t.Run(name+", killed", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { n.lookKilled(t, &c) })
			})
			if !ok {
				t.Fatalf("again: %s", sweepAgain(t, seed, c.number))
			}
		}
	}
	t.Log(n)
	if n.cuts < 10 && *sweepCut == 0 {
		t.Error("too few cuts for the test to mean anything")
	}
}
