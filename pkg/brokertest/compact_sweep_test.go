package brokertest_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// A tableCut is a snapshot, with what was promised by then.
type tableCut struct {
	number int
	step   string
	world  *tableWorld
	*brokertest.Snapshot
}

// A tableSweep is a workload on compacted topics, which are compacted every second.
type tableSweep struct {
	*testing.T
	rng    *rand.Rand
	broker *brokertest.Broker
	client *tableClient

	mu      sync.Mutex // guards what follows
	waiting bool       // for the sweeps of the cleaner
	steps   int        // of compactions
	cuts    []tableCut
	taken   error
}

// watch takes a cut at every step of a compaction whose number leaves rest when divided by every.
func (s *tableSweep) watch(every, rest int) {
	s.broker.OnStep(func(step string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.waiting {
			return
		}
		if s.steps++; s.steps%every != rest {
			return
		}
		snapshot, err := s.broker.Snapshot()
		s.taken = errors.Join(s.taken, err)
		var world *tableWorld
		s.client.w.change(func() { world = s.client.w.clone() })
		s.cuts = append(s.cuts, tableCut{s.steps, step, world, snapshot})
	})
}

// compacted waits for a sweep of the cleaner.
func (s *tableSweep) compacted() {
	wait := func(is bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting = is
	}
	wait(true)
	<-time.After(1100 * time.Millisecond)
	synctest.Wait()
	wait(false)
}

// some are one to three records; every fourth is a tombstone.
func (w *tableWorld) some(rng *rand.Rand) (records []tableRecord) {
	w.change(func() {
		for range 1 + rng.IntN(3) {
			r := tableRecord{key: fmt.Sprint("k", rng.IntN(6)), value: w.value()}
			if rng.IntN(4) == 0 {
				r.value = ""
			}
			records = append(records, r)
		}
	})
	return records
}

func (s *tableSweep) run(n, every, rest int) {
	for i := range n {
		name, part := compactTopics[s.rng.IntN(len(compactTopics))], s.rng.IntN(compactPartitions)
		switch r := s.rng.IntN(20); {
		case i%40 == 39:
			s.client.end(true)
			s.broker = s.broker.Restart()
			s.client.w.change(s.client.w.killed)
			s.client.connect(s.T, s.broker)
		case i%40 == 19:
			s.client.end(false)
			snapshot, err := s.broker.Snapshot()
			noError(s.T, err)
			s.broker.OnStep(nil)
			s.broker = snapshot.Kill(s.T)
			s.client.connect(s.T, s.broker)
			s.watch(every, rest)
		case i%10 == 9:
			s.compacted()
		case r < 4:
			s.client.send(name, part, 1, s.client.w.some(s.rng)...)
		case r < 8:
			s.client.sendInTxn(name, part, s.client.w.some(s.rng)...)
		case r < 10:
			s.client.end(s.rng.IntN(3) > 0)
		default:
			s.client.send(name, part, -1, s.client.w.some(s.rng)...)
		}
	}
}

// tableWorkload runs the workload and returns its cuts.
func tableWorkload(t *testing.T, seed uint64, n, every int) (cuts []tableCut, steps int) {
	t.Run("workload", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &tableSweep{T: t, rng: rand.New(rand.NewPCG(seed, 8)), broker: brokertest.Start(t)}
			s.client = &tableClient{w: createTables(t, newPeer(t, s.broker))}
			s.client.connect(t, s.broker)
			rest := s.rng.IntN(every)
			if *sweepCut > 0 {
				every, rest = math.MaxInt, *sweepCut
			}
			s.watch(every, rest)
			s.run(n, every, rest)
			s.broker.OnStep(nil)
			s.client.end(true)
			s.client.w.check(t, s.broker)
			s.mu.Lock()
			defer s.mu.Unlock()
			noError(t, s.taken)
			cuts, steps = s.cuts, s.steps
		})
	})
	return cuts, steps
}

// look checks what one survival leaves of a cut, and what another leaves of a second cut while the broker recovers from the first, or
// compacts for the first time after it.
func (c *tableCut) look(t *testing.T, survival crashfs.Survival, rng *rand.Rand) (second bool) {
	w := c.world.clone()
	var again *tableCut
	b := cutAgain(t, c.Snapshot, survival, 1+rng.IntN(120), func(number int, step string, s *brokertest.Snapshot) {
		w.change(func() { again = &tableCut{number, step, w.clone(), s} })
	})
	w.check(t, b)
	b.OnStep(nil)
	if again == nil {
		return false
	}
	after := crashfs.Survivals(rng.Uint64(), 3)[rng.IntN(3)]
	t.Logf("the second cut is before step %d of the recovery, %s, %s", again.number, again.step, after)
	again.world.check(t, again.PowerCut(t, after))
	return true
}

// ST-40, ST-44, ST-45, ST-46, ST-48, ST-71, ST-72: the power is cut, or the process killed, at the steps of the compactions of a workload with tombstones and transactions: of each key
// the latest record that was promised is there, at its offset, nothing that has gone comes back, transactions are whole and producers known. A second cut comes at some step
// of the recovery, or of the compaction after it.
func TestCompactedTopicsOutliveACutAtAnyStep(t *testing.T) {
	length, every, survivals := 80, 11, 2
	if *sweepFull {
		length, every, survivals = 240, 1, 3
	}
	if *sweepCut > 0 {
		survivals = 64
	}
	seed := sweepSeedOf(t, 0)
	cuts, steps := tableWorkload(t, seed, length, every)
	brokers, second := 0, 0
	for _, c := range cuts {
		rng := rand.New(rand.NewPCG(seed, uint64(c.number)))
		name := fmt.Sprintf("%d %s", c.number, strings.ReplaceAll(c.step, "/", "|"))
		ok := t.Run(name+", killed", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := c.world.clone()
				w.killed()
				w.check(t, c.Kill(t))
			})
		})
		brokers++
		for _, survival := range crashfs.Survivals(seed+uint64(c.number), survivals) {
			ok = ok && t.Run(fmt.Sprintf("%s, %s", name, survival), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					brokers++
					if c.look(t, survival, rng) {
						second++
						brokers++
					}
				})
			})
		}
		if !ok {
			t.Fatalf("again: %s", sweepAgain(t, seed, c.number))
		}
	}
	t.Logf("%d steps of compactions, cut after %d of them, killed and with %d survivals each, a second cut in %d recoveries, %d brokers checked; 0 keys lost", steps, len(cuts), survivals+1, second, brokers)
	if len(cuts) < 10 && *sweepCut == 0 {
		t.Error("too few cuts for the test to mean anything")
	}
}

// tableStart is where runs with a failing disk begin: a broker that was killed between compactions.
func tableStart(t *testing.T, seed uint64) (at *brokertest.Snapshot, w *tableWorld) {
	t.Run("workload", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := brokertest.Start(t)
			s := &tableSweep{T: t, rng: rand.New(rand.NewPCG(seed, 9)), broker: b}
			s.client = &tableClient{w: createTables(t, newPeer(t, b))}
			s.client.connect(t, b)
			s.run(19, math.MaxInt, 0)
			s.client.end(true)
			var err error
			at, err = b.Snapshot()
			noError(t, err)
			w = s.client.w
		})
	})
	return at, w
}

// tableFault starts a broker whose operation n fails while it compacts, and looks at what it has then, and after a crash.
func tableFault(t *testing.T, d *disease, from *brokertest.Snapshot, w *tableWorld, seed uint64, n int) (happened string, refused int) {
	w = w.clone()
	onDisk := w.clone() // of what was acknowledged before the kill, what a power cut leaves
	w.killed()
	killed := w.clone()
	b, err := from.Try(t, func(*brokertest.Broker) {})
	noError(t, err)
	b.MayFail()
	p := newPeer(t, b)
	c := &tableClient{peer: p, w: w}
	for _, name := range compactTopics {
		for i := range compactPartitions {
			_, end := p.rows(name, w.ids[name], int32(i), 0) // opened
			w.parts[name][i].next = end
		}
	}
	end := d.begin(b, n)
	rng := rand.New(rand.NewPCG(seed, 10))
	for range 4 {
		for range 6 {
			c.send(compactTopics[rng.IntN(len(compactTopics))], rng.IntN(compactPartitions), -1, w.some(rng)...)
		}
		<-time.After(1100 * time.Millisecond)
		synctest.Wait()
		w.checkRows(p, 1) // readable, whatever fails
	}
	if happened = end(); happened == "" {
		return "", 0
	}
	if d.heals {
		for _, parts := range w.parts {
			for i := range parts {
				parts[i].left = false
			}
		}
		for _, name := range compactTopics {
			for i := range compactPartitions {
				_, end := p.rows(name, w.ids[name], int32(i), 0)
				w.parts[name][i].sent = slices.DeleteFunc(w.parts[name][i].sent, func(r tableRecord) bool { return r.offset >= end })
				w.goOn(p, name, i)
			}
		}
		<-time.After(2200 * time.Millisecond)
		w.checkRows(p, 1)
	}
	s, err := b.Snapshot()
	noError(t, err)
	if n%2 == 0 {
		w.check(t, s.Kill(t))
	} else {
		for name, parts := range w.parts {
			for i := range parts {
				if parts[i].flushed == killed.parts[name][i].flushed { // no append has synced the log since
					parts[i].flushed = onDisk.parts[name][i].flushed
				}
			}
		}
		w.check(t, s.PowerCut(t, crashfs.Survivals(seed+uint64(n), 3)[n/2%3]))
	}
	return happened, c.failed
}

// ST-48, ST-60, ST-61, ST-64, ST-72: every operation of the disk, meta.db's too, fails once while topics are compacted, in each of several ways. All stays readable, what is refused
// once is taken when there is room, the cleaner goes on by itself, and a start after a crash finds the latest record of every key.
func TestAFailureWhileTopicsAreCompactedLosesNothing(t *testing.T) {
	every := 7
	if *sweepFull {
		every = 1
	}
	seed := sweepSeedOf(t, 0)
	from, w := tableStart(t, seed)
	refused := 0
	failed := eachFault(t, every, seed, func(t *testing.T, d *disease, n int) bool {
		happened, not := tableFault(t, d, from, w, seed, n)
		t.Logf("failed: %s", happened)
		refused += not
		return happened != ""
	})
	t.Logf("%d operations failed, in %d ways: %d produces were refused; 0 keys lost", failed, len(diseases), refused)
	if failed < 20 && *sweepCut == 0 {
		t.Error("too few for the test to mean anything")
	}
}
