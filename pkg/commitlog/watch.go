package commitlog

import (
	"sync"
	"sync/atomic"
)

// watchers are the channels to wake. Without any, wake is one atomic load.
type watchers struct {
	count atomic.Int64
	mu    sync.Mutex // a leaf
	list  []*watcher
}

type watcher struct {
	wake  chan<- struct{}
	index int // in the list; -1 once cancelled
}

// Watch has wake sent to (never blocking) after every append, log start move
// or end of the log, until cancel is called. A caller that watches first and
// looks at the log then misses nothing. The channel should have room for one.
func (l *Log) Watch(wake chan<- struct{}) (cancel func()) {
	w := &watcher{wake: wake}
	l.watchers.add(w)
	if l.endedErr() != nil {
		w.send() // the end may have come before the watch
	}
	return func() { l.watchers.remove(w) }
}

func (ws *watchers) add(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.index = len(ws.list)
	ws.list = append(ws.list, w)
	ws.count.Add(1)
}

func (ws *watchers) remove(w *watcher) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.index < 0 {
		return
	}
	last := len(ws.list) - 1
	ws.list[w.index] = ws.list[last]
	ws.list[w.index].index = w.index
	ws.list[last] = nil
	ws.list = ws.list[:last]
	w.index = -1
	ws.count.Add(-1)
}

// wake is called after the marks have moved: who has not been counted yet looks
// at the log later than that.
func (ws *watchers) wake() {
	if ws.count.Load() == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.list {
		w.send()
	}
}

func (w *watcher) send() {
	select {
	case w.wake <- struct{}{}:
	default: // it has a wake-up that it has not taken yet
	}
}
