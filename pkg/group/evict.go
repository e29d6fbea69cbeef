package group

import (
	"sync"
	"time"
)

// evictAfter is how long a member without a connection is kept (GR-9): a
// client that merely connects anew has done so by then.
const evictAfter = 500 * time.Millisecond

// clients says which members a connection is the last of, for GR-9.
type clients struct {
	connMu sync.Mutex // guards what follows; a leaf
	byConn map[uint64]map[clientOf]struct{}
}

// A clientOf is a member of a group.
type clientOf struct {
	g      *group
	member string
}

// heardLocked remembers that a member uses a connection.
func (g *group) heardLocked(member string, conn uint64) {
	if !g.c.o.Settings.GroupEvictOnDisconnect || conn == 0 || !g.state.HasMember(member) {
		return
	}
	if _, known := g.conns[member][conn]; known {
		return
	}
	member = clone(member)
	if g.conns == nil {
		g.conns = map[string]map[uint64]struct{}{}
	}
	if g.conns[member] == nil {
		g.conns[member] = map[uint64]struct{}{}
	}
	g.conns[member][conn] = struct{}{}
	c := &g.c.clients
	c.connMu.Lock()
	defer c.connMu.Unlock()
	if c.byConn == nil {
		c.byConn = map[uint64]map[clientOf]struct{}{}
	}
	if c.byConn[conn] == nil {
		c.byConn[conn] = map[clientOf]struct{}{}
	}
	c.byConn[conn][clientOf{g, member}] = struct{}{}
}

// forgetLocked drops the connections of members that are no more.
func (g *group) forgetLocked() {
	for member, conns := range g.conns {
		if g.state.HasMember(member) {
			continue
		}
		delete(g.conns, member)
		c := &g.c.clients
		c.connMu.Lock()
		for conn := range conns {
			delete(c.byConn[conn], clientOf{g, member})
			if len(c.byConn[conn]) == 0 {
				delete(c.byConn, conn)
			}
		}
		c.connMu.Unlock()
	}
}

// Disconnected says that a connection is gone. With GROUP_EVICT_ON_DISCONNECT
// a member that has no other connection is removed 500 ms later, unless it was
// heard of by then (GR-9).
func (c *Coordinator) Disconnected(conn uint64) {
	c.connMu.Lock()
	members := c.byConn[conn]
	delete(c.byConn, conn)
	c.connMu.Unlock()
	for m := range members {
		m.g.mu.Lock()
		delete(m.g.conns[m.member], conn)
		last := len(m.g.conns[m.member]) == 0
		m.g.mu.Unlock()
		if last {
			c.o.Clock.AfterFunc(evictAfter, func() { m.g.evict(m.member) })
		}
	}
}

// evict removes a member that has no connection.
func (g *group) evict(member string) {
	g.mu.Lock()
	if g.gone || g.c.closed.Load() || len(g.conns[member]) > 0 {
		g.mu.Unlock()
		return
	}
	e := g.state.Evict(g.c.o.Clock.Now(), member, "its connection closed")
	g.applyLocked(e)
	g.unlock(e)
}
