package endpoint

import (
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How long a client may take to come to the address that it was told.
const (
	// askedTwice is for one that asks for the address again meanwhile: it is awake, and gets nowhere.
	askedTwice = 10 * time.Second
	// connected is for one that only holds its connection: it may have nothing to do so far.
	connected = 30 * time.Second
)

// burst is how soon a question counts as a part of the first one: a client of
// Java that begins with one about a topic asks twice at once.
const burst = time.Second

// maxClients bounds the clients that are kept track of. Beyond it those of
// which nothing more is to be known make room, in no particular order.
const maxClients = 1000

// maxID bounds what is kept, and logged, of a client.id, in bytes.
const maxID = 256

// A Client is who asks: a program on a machine, on one listener.
type Client struct {
	Listener string
	Host     netip.Addr
	ID       string // client.id
}

// bounded is the client with a client.id of at most maxID bytes.
func (c Client) bounded() Client {
	c.ID = c.ID[:min(len(c.ID), maxID)]
	return c
}

// An Astray is a client that was told an address and never came to it: most
// likely that address leads nowhere, or elsewhere, from where the client is.
type Astray struct {
	Client
	Told string // host:port
	Idle bool   // it asked once and only holds its connection: it may have nothing to do so far
}

// Watch finds clients that go astray (FX-13), each once. It is safe for
// concurrent use. While every client is where it should be, Came costs one
// atomic load.
type Watch struct {
	report  func(Astray)
	pending atomic.Int32

	mu      sync.Mutex
	clients map[Client]*track
	stopped bool
}

// A track is what is known of one client.
type track struct {
	told    string
	settled bool // it came, or was reported: nothing more is to be known
	began   time.Time
	asked   int
	first   uint64 // the connection on which it asked first
	firstN  int    // how often it asked there
	open    bool   // first is
	beside  bool   // it asked on another connection while first was open
	later   uint64 // another connection on which it asked, and how often
	laterN  int
	timer   *time.Timer
}

// NewWatch makes a Watch that calls report, on a goroutine of its own, for
// each client that goes astray.
func NewWatch(report func(Astray)) *Watch {
	return &Watch{report: report, clients: map[Client]*track{}}
}

// Told notes that a client has asked on a connection and was told an address.
func (w *Watch) Told(c Client, conn uint64, address string) {
	c = c.bounded()
	w.mu.Lock()
	defer w.mu.Unlock()
	t, known := w.clients[c]
	switch {
	case w.stopped || known && t.settled:
		return
	case !known && len(w.clients) >= maxClients && !w.makeRoomLocked():
		return
	case !known:
		c.ID = strings.Clone(c.ID) // it may be a part of the request
		t = &track{told: address, began: time.Now(), asked: 1, first: conn, firstN: 1, open: true}
		w.clients[c] = t
		w.pending.Add(1)
		t.timer = time.AfterFunc(askedTwice, func() { w.look(c, false) })
		return
	}
	again := 1
	if time.Since(t.began) < burst {
		again = 0
	}
	t.asked += again
	if conn == t.first {
		t.firstN += again
		return
	}
	t.beside = t.beside || t.open
	if conn != t.later {
		t.later, t.laterN = conn, 0
	}
	// Who goes on asking on a connection that is none of its first ones
	// has come to the address: that is how admin tools look like.
	if t.laterN++; t.laterN > 1 {
		w.settleLocked(t)
	}
}

// Came notes a request that a client sends only to the address that it was told.
func (w *Watch) Came(c Client) {
	if w.pending.Load() == 0 {
		return
	}
	c = c.bounded()
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, ok := w.clients[c]; ok && !t.settled {
		w.settleLocked(t)
	}
}

// Sent notes a request that a client may send to either address. On a
// connection on which it has not asked, beside the first one, it shows that the
// client came: clients ask before all else where they begin.
func (w *Watch) Sent(c Client, conn uint64) {
	if w.pending.Load() == 0 {
		return
	}
	c = c.bounded()
	w.mu.Lock()
	defer w.mu.Unlock()
	if t, ok := w.clients[c]; ok && !t.settled && t.open && conn != t.first && conn != t.later {
		w.settleLocked(t)
	}
}

// Closed notes the end of a connection.
func (w *Watch) Closed(conn uint64) {
	if w.pending.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.clients {
		if t.first == conn {
			t.open = false
		}
	}
}

// Stop ends the watch: nothing is reported after it.
func (w *Watch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	for _, t := range w.clients {
		if !t.settled {
			w.settleLocked(t)
		}
	}
}

// makeRoomLocked forgets a client that is settled, if there is one.
func (w *Watch) makeRoomLocked() bool {
	for c, t := range w.clients {
		if t.settled {
			delete(w.clients, c)
			return true
		}
	}
	return false
}

func (w *Watch) settleLocked(t *track) {
	t.settled = true
	t.timer.Stop()
	w.pending.Add(-1)
}

// look decides about a client whose time is over.
func (w *Watch) look(c Client, last bool) {
	w.mu.Lock()
	t := w.clients[c]
	if t == nil || t.settled {
		w.mu.Unlock()
		return
	}
	switch {
	case t.beside && t.firstN == 1:
		// It has kept the connection on which it asked first, and asks on another one:
		// so do Java's clients that came and have only questions.
		w.settleLocked(t)
	case t.asked > 1 || last && t.open:
		w.settleLocked(t)
		w.mu.Unlock()
		w.report(Astray{Client: c, Told: t.told, Idle: t.asked == 1})
		return
	case t.open:
		t.timer = time.AfterFunc(connected-askedTwice, func() { w.look(c, true) })
	default: // it asked once and left, as a health check does
		w.settleLocked(t)
		delete(w.clients, c)
	}
	w.mu.Unlock()
}
