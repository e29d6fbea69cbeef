package fetchsession

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A Context is one accepted request, from Begin to Respond. It belongs to one
// goroutine at a time.
type Context struct {
	cache        *Cache
	list         *list    // of the request; of the session if that is set
	session      *session // nil: a full request
	epoch        int32    // that the session has as long as no other request was accepted
	create       bool     // a session is to be made
	usesTopicIDs bool
	nodes        []*node // as Append gave them
}

// Append appends the partitions to read to dst, in their order. Results are
// given to Respond in the same one. It is called once.
func (c *Context) Append(dst []Partition) []Partition {
	if c.session != nil {
		c.session.mu.Lock()
		defer c.session.mu.Unlock()
	}
	c.nodes = make([]*node, 0, c.list.size)
	for n := c.list.first; n != nil; n = n.next {
		c.nodes = append(c.nodes, n)
		dst = append(dst, n.Partition)
	}
	return dst
}

// Respond accounts for the results, one for each partition that Append gave,
// and sets Include of those that the response holds. It returns the session id
// of the response, also beside its error, INVALID_FETCH_SESSION_EPOCH: another
// request of the session was accepted in the meantime, and nothing is told.
func (c *Context) Respond(now time.Time, results []Result) (sessionID int32, err error) {
	if c.session != nil {
		return c.respondIncremental(results)
	}
	for i, n := range c.nodes {
		n.account(&results[i])
		results[i].Include = true
	}
	if c.create {
		sessionID = c.cache.create(now, c.list, c.usesTopicIDs)
	}
	return sessionID, nil
}

func (c *Context) respondIncremental(results []Result) (sessionID int32, err error) {
	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != c.epoch {
		return s.id, kerr.InvalidFetchSessionEpoch
	}
	for i, n := range c.nodes {
		results[i].Include = n.account(&results[i])
		if results[i].Bytes > 0 {
			s.list.moveToEnd(n)
		}
	}
	return s.id, nil
}
