package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
)

var (
	seconds = flag.Int("chaos.seconds", 5, "how long the broker is killed")
	seed    = flag.Uint64("chaos.seed", 0, "what is drawn by lot follows from it; 0: another each time")
)

const (
	round     = 60 * time.Second // so long between two looks at everything
	readyIn   = 30 * time.Second
	longestUp = 1500 * time.Millisecond
)

// ST-50, ST-53, ST-55, ST-73, ST-74: the real broker is killed at any instant, also before it is ready and twice in a row, under idempotent producers
// with acks=1 and acks=all, transactional ones, consumers in a group that commit, and topics that are made, altered, grown, trimmed and deleted. All that was acknowledged
// is there, once, in order; and after a clean stop, too.
func TestNothingAcknowledgedIsLostInChaos(t *testing.T) {
	c := newChaos(t)
	defer c.tell(t)
	if err := c.up(); err != nil {
		t.Fatal(err)
	}
	if !c.prepare() {
		t.Fatal(c.errs)
	}
	if err := errors.Join(c.makeExactly(), c.makeCompacted()); err != nil {
		t.Fatal(err)
	}
	work := c.load()
	for left := time.Duration(*seconds) * time.Second; left > 0 && !t.Failed(); left -= round {
		c.round(t, work, min(left, round))
		c.verifyAll(t, "after the kills")
	}
	mark := filepath.Join(c.data(), "clean-shutdown")
	if err := c.life.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); err != nil && runtime.GOOS != "windows" { // where a stop is a kill
		t.Errorf("after a clean stop: %v", err)
	}
	if err := c.up(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mark of the stop is there while the broker runs (%v)", err)
	}
	c.verifyAll(t, "after a clean stop")
	if c.kills < *seconds/5 || c.h.Acknowledged() < int64(*seconds)*10 {
		t.Error("too few for the test to mean anything")
	}
}

// chaos is a run and its broker.
type chaos struct {
	*run
	*program
	life    *life
	rng     *rand.Rand
	kills   int
	unready int // of them before the broker was ready
	last    *history.Check

	rewriting int // kills that met a segment being rewritten

	transactions transactions
	keyed        *keyed
	left         int // records of the compacted topic
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64N(1_000_000) + 1
	}
	p := build(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(*seconds)*3*time.Second+3*time.Minute)
	t.Cleanup(cancel)
	r := &run{ctx: ctx, addr: p.addr, h: history.New(), seed: s, ids: map[string][16]byte{}, sizes: map[string]int{}, counts: map[string]int{}}
	c := &chaos{run: r, program: p, rng: r.rng(), keyed: newKeyed()}
	t.Cleanup(func() {
		if c.life != nil {
			_ = c.life.kill() // it may have ended
		}
	})
	return c
}

// up starts the broker and waits until it is ready.
func (c *chaos) up() (err error) {
	if c.life, err = c.start(); err == nil {
		err = c.life.awaitReady(readyIn)
	}
	return err
}

// load are the workers. Each ends when stop is closed and its last request is answered, and may go on in another round.
func (c *chaos) load() (work []func(stop <-chan struct{})) {
	for id := range uint32(2) {
		work = append(work, c.newIdempotent(id).work, c.newPasser(10+id).work)
		rng, of := c.run.rng(), c.run.rng()
		work = append(work, func(stop <-chan struct{}) { c.franz(20+id, rng, stop) }, func(stop <-chan struct{}) { c.members(of, stop) })
	}
	for id := range exactlyProducers {
		work = append(work, (&transactor{run: c.run, x: &c.transactions, id: id}).work)
	}
	for id := range uint32(2) {
		work = append(work, (&keyedPeer{idempotent: c.newIdempotent(30 + id), k: c.keyed}).work)
	}
	work = append(work, c.newKeyedTransactor(c.keyed).work)
	fr, co := c.run.rng(), c.run.rng()
	work = append(work, func(stop <-chan struct{}) { c.franzKeyed(c.keyed, fr, stop) }, func(stop <-chan struct{}) { c.compactor(c.keyed, c.http, co, stop) },
		func(stop <-chan struct{}) { c.scanner(c.keyed, stop) },
		func(stop <-chan struct{}) { c.follower(c.keyed, kgo.ReadCommitted(), stop) }, func(stop <-chan struct{}) { c.follower(c.keyed, kgo.ReadUncommitted(), stop) })
	p, rng := c.peer(), c.run.rng()
	return append(work, func(stop <-chan struct{}) { c.admin(p, rng, stop) })
}

// round kills the broker over and over under load, and leaves it running without.
func (c *chaos) round(t *testing.T, work []func(stop <-chan struct{}), long time.Duration) {
	t.Helper()
	stop := make(chan struct{})
	var working sync.WaitGroup
	for _, w := range work {
		working.Go(func() { w(stop) })
	}
	err := c.killFor(long)
	close(stop)
	if err != nil {
		t.Error(err)
		return
	}
	working.Wait()
	if err := c.ctx.Err(); err != nil {
		t.Errorf("workers were not done: %v", err)
	}
}

func (c *chaos) killFor(long time.Duration) error {
	for end := time.Now().Add(long); time.Now().Before(end); {
		if c.rng.IntN(4) == 0 { // whether it is ready or not, as it was started a moment ago
			<-time.After(time.Duration(c.rng.Int64N(int64(40 * time.Millisecond))))
			c.unready++
		} else {
			if err := c.life.awaitReady(readyIn); err != nil {
				return err
			}
			<-time.After(time.Duration(c.rng.ExpFloat64() * float64(longestUp) / 4))
		}
		if err := c.life.kill(); err != nil {
			return err
		}
		c.kills++
		if c.program.rewriting() {
			c.rewriting++
		}
		var err error
		if c.life, err = c.start(); err != nil {
			return err
		}
	}
	return c.life.awaitReady(readyIn)
}

func (c *chaos) verifyAll(t *testing.T, when string) {
	t.Helper()
	check, err := c.verify()
	if err != nil {
		t.Errorf("%s: %v", when, err)
	}
	c.last = check
	if err := c.verifyTransactions(&c.transactions); err != nil {
		t.Errorf("%s: %v", when, err)
	}
	if c.left, err = c.verifyCompacted(c.keyed); err != nil {
		t.Errorf("%s: %v", when, err)
	}
	for _, v := range check.Violations[:min(10, len(check.Violations))] {
		t.Errorf("%s: %v", when, v)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, err := range c.errs[:min(10, len(c.errs))] {
		t.Error(err)
	}
}

// tell is the account of the run.
func (c *chaos) tell(t *testing.T) {
	if c.last == nil {
		return
	}
	var done []string
	c.mu.Lock()
	for _, what := range slices.Sorted(maps.Keys(c.counts)) {
		done = append(done, fmt.Sprintf("%s %d", what, c.counts[what]))
	}
	c.mu.Unlock()
	t.Logf("seed %d: kills survived %d (drawn without waiting for the start: %d), records acknowledged %d, in topics that are there %d, lost %d, duplicated %d, other violations %d",
		c.seed, c.kills, c.unready, c.h.Acknowledged(), c.last.Found, c.last.Count(history.Lost), c.last.Count(history.Duplicated),
		len(c.last.Violations)-c.last.Count(history.Lost)-c.last.Count(history.Duplicated)+len(c.errs))
	c.keyed.mu.Lock()
	passes := c.keyed.passes
	t.Logf("compacted: %d records sent, %d left, of %d keys; %d compactions, %d segments rewritten, %d bytes reclaimed; kills in the middle of a rewrite %d",
		c.keyed.sent, c.left, len(c.keyed.byKey), passes["compactions"], passes["segments rewritten"], passes["bytes reclaimed"], c.rewriting)
	c.keyed.mu.Unlock()
	t.Logf("done: %s", strings.Join(done, ", "))
	t.Logf("once more: go test ./chaos -count=1 -v -args -chaos.seconds=%d -chaos.seed=%d", *seconds, c.seed)
	if t.Failed() && c.life != nil {
		t.Logf("end of the broker's log:\n%s", c.life.tail())
	}
}
