package group

import (
	"sync"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/group/classic"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// retryWrite is how long a write behind that failed waits until it is tried
// again, if the group has not changed before. The disk may have room by then.
const retryWrite = time.Second

// A group is one state machine with its lock, timer and row.
type group struct {
	c    *Coordinator
	name string

	mu    sync.Mutex // guards what follows; never held over the disk or a channel wait
	state *classic.State
	gone  bool // it is no longer among the coordinator's groups: look again

	timer clock.Timer // calls expire; nil: not set
	wake  time.Time   // when it does
	seq   int         // of the timer that counts, as one that can't be stopped any more may still call

	last    uint64          // version of its last entry in the journal; what is answered waits for it
	stored  metastore.Group // what of it is to be in meta.db: what it was when it was last stable or empty
	onDisk  bool            // there is a row
	dirty   bool            // stored is not on the disk, or not known to be
	writing bool            // a write is under way; what comes meanwhile waits for its end
	commits int             // of offsets, under way
	version int             // counts commits of offsets ever begun

	conns map[string]map[uint64]struct{} // of members, for GR-9; nil unless that is on
}

// lock finds a group, or makes it, and locks it; nil if there is none.
func (c *Coordinator) lock(name string, create bool) *group {
	for {
		g := c.find(name, create)
		if g == nil {
			return nil
		}
		g.mu.Lock()
		if c.closed.Load() { // asked under the lock: Close takes each lock once it has set this
			g.mu.Unlock()
			return nil
		}
		if !g.gone {
			return g
		}
		g.mu.Unlock() // it was deleted meanwhile, and is no longer found
	}
}

func (c *Coordinator) find(name string, create bool) *group {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.groups[name]
	if g == nil && create && !c.closed.Load() {
		now := c.o.Clock.Now()
		name = clone(name)
		g = &group{c: c, name: name, state: classic.New(c.cfg, now), stored: metastore.Group{Name: name, Since: now}}
		c.groups[name] = g
	}
	return g
}

// all are the groups at this instant, unlocked.
func (c *Coordinator) all() []*group {
	c.mu.Lock()
	defer c.mu.Unlock()
	groups := make([]*group, 0, len(c.groups))
	for _, g := range c.groups {
		groups = append(groups, g)
	}
	return groups
}

// applyLocked does what a call of the state wants done, but for the answers: those are unlock's.
func (g *group) applyLocked(e classic.Effects) {
	if e.Persist {
		row := g.c.journal.add(rowOf(g.name, g.state.Snapshot()))
		g.last = row.Version
		if row.Rebalance == metastore.NoRebalance {
			g.stored, g.dirty = row, true
			g.writeLocked()
		}
	}
	g.armLocked()
	g.forgetLocked()
}

// release unlocks the group, and returns once what it was is written where a kill does not take it.
func (g *group) release() {
	last := g.last
	g.mu.Unlock()
	g.c.journal.await(last)
}

// unlock unlocks the group, gives the answers, and tells the log what happened.
// Answers do not block: each channel gets one, and has room for it.
func (g *group) unlock(e classic.Effects) {
	g.release()
	for _, r := range e.Joins {
		r.Ticket.(chan JoinResponse) <- r.Response
	}
	for _, r := range e.Syncs {
		r.Ticket.(chan SyncResponse) <- r.Response
	}
	for _, n := range e.Notes {
		g.c.o.Logger.Debug("group: "+n, "group", g.name)
	}
}

// armLocked sets the timer. One that fires too early is left: it looks again
// then, which is cheaper than to stop it with every heartbeat.
func (g *group) armLocked() {
	at, ok := g.state.Deadline()
	if ok && !g.gone && g.timer != nil && !at.Before(g.wake) {
		return
	}
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
	g.seq++
	if !ok || g.gone || g.c.closed.Load() {
		return
	}
	seq := g.seq
	g.wake = at
	g.timer = g.c.o.Clock.AfterFunc(max(at.Sub(g.c.o.Clock.Now()), 0), func() { g.expire(seq) })
}

func (g *group) expire(seq int) {
	g.mu.Lock()
	if seq != g.seq || g.gone || g.c.closed.Load() {
		g.mu.Unlock()
		return
	}
	g.timer = nil
	e := g.state.Expire(g.c.o.Clock.Now())
	g.applyLocked(e)
	g.unlock(e)
}

// writeLocked writes the group behind if need be: nothing waits for it, one
// write is under way at a time, and the last state is the one that counts.
func (g *group) writeLocked() {
	if !g.dirty || g.writing || g.gone {
		return
	}
	g.writing, g.dirty = true, false
	row := g.stored
	g.c.writes.Add(1)
	g.c.o.Store.Submit(func(tx *metastore.Tx) error { return tx.PutGroup(row) }, func(err error) {
		defer g.c.writes.Done()
		g.c.told(err)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.writing = false
		if err == nil {
			g.onDisk = true
			g.c.journal.settled(row.Name, row.Version)
			g.writeLocked()
			return
		}
		g.dirty = true
		if !g.c.closed.Load() {
			g.c.o.Clock.AfterFunc(retryWrite, g.write)
		}
	})
}

func (g *group) write() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.c.closed.Load() { // Close has tried for the last time
		g.writeLocked()
	}
}

// told logs, once, that membership can't be written, and once that it can again.
func (c *Coordinator) told(err error) {
	if was := c.behind.Swap(err != nil); was == (err != nil) {
		return
	}
	if err != nil {
		c.o.Logger.Warn("the membership of groups can't be written to meta.db; groups go on, and a restart may bring back what was written before", "error", err)
		return
	}
	c.o.Logger.Info("the membership of groups is written again")
}

// retireLocked takes a group out of the coordinator. The change of its rows was
// submitted before, so that those of another group of its name come after it.
func (g *group) retireLocked() {
	g.gone = true
	g.armLocked()
	g.c.mu.Lock()
	defer g.c.mu.Unlock()
	delete(g.c.groups, g.name)
}

// reviveLocked puts a group back whose rows could not be removed, unless there is another one by now.
func (g *group) reviveLocked() {
	g.c.mu.Lock()
	if g.c.groups[g.name] == nil {
		g.c.groups[g.name] = g
		g.gone = false
	}
	g.c.mu.Unlock()
	if !g.gone && g.last > 0 {
		// The deletion of another group has passed by what the journal had of this one.
		g.stored = g.c.journal.add(g.stored)
		g.last, g.dirty = g.stored.Version, true
		g.writeLocked()
	}
	g.armLocked()
}
