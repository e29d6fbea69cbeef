package fetchsession

import "strings"

// scanLimit is up to how many partitions a list finds one by looking at all of
// them: a map would cost more than that saves.
const scanLimit = 16

// A list holds the partitions of a session in the order in which they are read:
// those that gave records go to the end, so that none starves behind the
// response's limit.
type list struct {
	first, last *node
	size        int
	index       map[Name]*node // nil up to scanLimit
}

// A node is a partition of a session, and what the client was last told.
type node struct {
	Partition
	highWatermark int64 // -1: tell it in any case
	logStart      int64 // the log's own; -1: never told
	prev, next    *node
}

// set adds p, or changes what it wants. Strings that are kept are copied.
func (l *list) set(p *Partition) {
	if n := l.find(p.Name); n != nil {
		name := n.Name
		n.Partition = *p
		n.Name = name
		return
	}
	n := &node{Partition: *p, highWatermark: -1, logStart: -1}
	if l.last != nil && l.last.Topic == p.Topic {
		n.Topic = l.last.Topic // partitions of a topic share its name
	} else {
		n.Topic = strings.Clone(p.Topic)
	}
	l.append(n)
	l.size++
	if l.index != nil {
		l.index[n.Name] = n
	} else if l.size > scanLimit {
		l.index = make(map[Name]*node, 2*l.size)
		for n := l.first; n != nil; n = n.next {
			l.index[n.Name] = n
		}
	}
}

func (l *list) find(name Name) *node {
	if l.index != nil {
		return l.index[name]
	}
	for n := l.first; n != nil; n = n.next {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// remove drops a partition, if it is there.
func (l *list) remove(name Name) {
	n := l.find(name)
	if n == nil {
		return
	}
	l.unlink(n)
	l.size--
	delete(l.index, name)
}

func (l *list) moveToEnd(n *node) {
	if l.last != n {
		l.unlink(n)
		l.append(n)
	}
}

func (l *list) append(n *node) {
	n.prev, n.next = l.last, nil
	if l.last == nil {
		l.first = n
	} else {
		l.last.next = n
	}
	l.last = n
}

func (l *list) unlink(n *node) {
	if n.prev == nil {
		l.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		l.last = n.prev
	} else {
		n.next.prev = n.prev
	}
}

// account says whether r must be told, and keeps it as told.
func (n *node) account(r *Result) bool {
	changed := n.highWatermark != r.HighWatermark || n.logStart != r.LogStart
	n.highWatermark, n.logStart = r.HighWatermark, r.LogStart
	if r.Error {
		n.highWatermark = -1 // once the error is gone, the partition is told again
	}
	return changed || r.Bytes > 0 || r.Error || r.Diverging || r.Redirected
}
