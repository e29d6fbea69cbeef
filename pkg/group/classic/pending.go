package classic

import (
	"container/heap"
	"time"
)

// A pendingIDs is the member ids that were given by MEMBER_ID_REQUIRED, and until
// when they may be used. A client may ask for any number of them, so the
// next that is due is found without a look at all.
type pendingIDs struct {
	until map[string]time.Time
	queue pendingQueue // by time; those that are not in until any more are skipped
}

type pendingID struct {
	id string
	at time.Time
}

func (p *pendingIDs) add(id string, until time.Time) {
	if p.until == nil {
		p.until = map[string]time.Time{}
	}
	p.until[id] = until
	heap.Push(&p.queue, pendingID{id, until})
}

func (p *pendingIDs) has(id string) bool {
	_, ok := p.until[id]
	return ok
}

// remove drops an id, if it is there.
func (p *pendingIDs) remove(id string) {
	delete(p.until, id)
	if len(p.until) == 0 {
		*p = pendingIDs{} // and the memory that many took
	}
}

// next is the id that is due first; the zero time if there is none.
func (p *pendingIDs) next() pendingID {
	for len(p.queue) > 0 {
		if first := p.queue[0]; p.until[first.id].Equal(first.at) {
			return first
		}
		heap.Pop(&p.queue)
	}
	return pendingID{}
}

// A pendingQueue is a heap (container/heap).
type pendingQueue []pendingID

func (q pendingQueue) Len() int           { return len(q) }
func (q pendingQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q pendingQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *pendingQueue) Push(x any)        { *q = append(*q, x.(pendingID)) }
func (q *pendingQueue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = pendingID{}
	*q = (*q)[:len(*q)-1]
	return last
}
