package fetchsession

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

const (
	// DefaultSlots is Kafka's max.incremental.fetch.session.cache.slots.
	DefaultSlots = 1000
	// evictionTime is how long a session must be unused to count as stale, and
	// exist to give way to a larger one (MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS).
	evictionTime = 120 * time.Second
)

// A Cache holds the sessions of a broker. It is safe for concurrent use. Its
// lock and that of a session are never held together.
type Cache struct {
	slots int
	newID func() int32

	mu         sync.Mutex
	sessions   map[int32]*session
	partitions int
	evictions  int64
}

// A session is one client's.
type session struct {
	id           int32
	usesTopicIDs bool
	created      time.Time

	// Guarded by Cache.mu.
	lastUsed time.Time
	size     int // partitions as of lastUsed

	mu    sync.Mutex
	epoch int32 // that the next request must have
	list  list
}

// New makes a cache of so many sessions, DefaultSlots if 0. newID makes
// candidates for session ids, of which only positive ones are taken; nil makes
// random ones.
func New(slots int, newID func() int32) *Cache {
	if slots == 0 {
		slots = DefaultSlots
	}
	if newID == nil {
		newID = rand.Int32
	}
	return &Cache{slots: slots, newID: newID, sessions: map[int32]*session{}}
}

// A Size is how full a cache is.
type Size struct {
	Sessions   int
	Partitions int
	Evictions  int64 // since the start
}

// Size says how full the cache is.
func (c *Cache) Size() Size {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Size{len(c.sessions), c.partitions, c.evictions}
}

// Begin accepts a request. Its errors answer the whole request, at once, with
// session id 0: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
// FETCH_SESSION_TOPIC_ID_ERROR. An accepted incremental request moves the
// session's epoch, so that the same request sent again is refused.
func (c *Cache) Begin(now time.Time, req *Request) (*Context, error) {
	if req.Epoch != InitialEpoch && req.Epoch != FinalEpoch {
		return c.beginIncremental(now, req)
	}
	if req.SessionID != 0 {
		c.remove(req.SessionID) // any session named in a full request is closed
	}
	ctx := &Context{cache: c, list: newList(req.Partitions), usesTopicIDs: req.UsesTopicIDs}
	if req.Epoch == InitialEpoch {
		ctx.create = true
	}
	return ctx, nil
}

// newList holds the partitions of a request. Of one that is named twice the
// last counts.
func newList(partitions []Partition) *list {
	l := &list{}
	for i := range partitions {
		l.set(&partitions[i])
	}
	return l
}

func (c *Cache) beginIncremental(now time.Time, req *Request) (*Context, error) {
	c.mu.Lock()
	s := c.sessions[req.SessionID]
	c.mu.Unlock()
	if s == nil {
		return nil, kerr.FetchSessionIDNotFound
	}
	expected, size, err := s.accept(req)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		// Nothing is left to fetch: the session is closed, and the request
		// is one without.
		c.remove(s.id)
		return &Context{cache: c, list: newList(req.Partitions)}, nil
	}
	c.touch(s, now, size)
	return &Context{cache: c, list: &s.list, session: s, epoch: expected}, nil
}

// accept takes the changes of an incremental request over, and returns the
// session's next epoch and its number of partitions.
func (s *session) accept(req *Request) (epoch int32, size int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != req.Epoch {
		return 0, 0, kerr.InvalidFetchSessionEpoch
	}
	if s.usesTopicIDs != req.UsesTopicIDs {
		return 0, 0, kerr.FetchSessionTopicIDError
	}
	for i := range req.Partitions {
		s.list.set(&req.Partitions[i])
	}
	for _, name := range req.Forgotten {
		s.list.remove(name)
	}
	if s.list.size > 0 {
		s.epoch = nextEpoch(s.epoch)
	}
	return s.epoch, s.list.size, nil
}

// touch notes the use of a session, unless it was evicted in the meantime.
func (c *Cache) touch(s *session, now time.Time, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions[s.id] != s {
		return
	}
	c.partitions += size - s.size
	s.lastUsed, s.size = now, size
}

// remove drops a session, if there is one with this id.
func (c *Cache) remove(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(id)
}

func (c *Cache) removeLocked(id int32) {
	if s, ok := c.sessions[id]; ok {
		c.partitions -= s.size
		delete(c.sessions, id)
	}
}

// create makes a session of l, if there is room for it, and returns its id; 0
// means that the client has to go on with full requests.
func (c *Cache) create(now time.Time, l *list, usesTopicIDs bool) int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.sessions) >= c.slots && !c.evictLocked(now, l.size) {
		return 0
	}
	id := c.newID()
	for id <= 0 || c.sessions[id] != nil {
		id = c.newID()
	}
	c.sessions[id] = &session{
		id: id, usesTopicIDs: usesTopicIDs, created: now, lastUsed: now, size: l.size,
		epoch: nextEpoch(InitialEpoch), list: *l,
	}
	c.partitions += l.size
	return id
}

// evictLocked makes room for a session of size partitions: the session that was
// unused for longest goes if it is stale, else the smallest that is not new any
// more, if it is smaller. It looks at all sessions, which happens only when a
// client starts while the cache is full.
func (c *Cache) evictLocked(now time.Time, size int) bool {
	var stale, small *session
	for _, s := range c.sessions {
		if now.Sub(s.lastUsed) > evictionTime && (stale == nil || s.usedBefore(stale)) {
			stale = s
		}
		// Its age counts at its last use (FetchSessionCacheShard.touch).
		if s.lastUsed.Sub(s.created) > evictionTime && s.size < size && (small == nil || s.smallerThan(small)) {
			small = s
		}
	}
	if stale == nil {
		stale = small
	}
	if stale == nil {
		return false
	}
	c.removeLocked(stale.id)
	c.evictions++
	return true
}

func (s *session) usedBefore(t *session) bool {
	if s.lastUsed.Equal(t.lastUsed) {
		return s.id < t.id
	}
	return s.lastUsed.Before(t.lastUsed)
}

func (s *session) smallerThan(t *session) bool {
	if s.size == t.size {
		return s.id < t.id
	}
	return s.size < t.size
}
