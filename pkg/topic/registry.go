// Package topic is the registry of topics and their logs: create, delete,
// configure, and opening a log on first touch.
//
// Lookups read an immutable snapshot. A change reserves the names it is about,
// commits its rows to meta.db, and publishes another snapshot; changes of
// different names run side by side and share commits. No lock is held over the
// disk but that of the partition whose log is being opened.
package topic

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// Options open a Registry.
type Options struct {
	Shared   *commitlog.Shared
	Store    *metastore.Store
	DataDir  string
	Settings *config.Settings
	// Clean says whether a partition's directory was flushed by a clean stop;
	// nil is never.
	Clean func(kafka.TopicPartition) bool
}

// A Registry is all topics. Lookups take no lock.
type Registry struct {
	o         Options
	effective atomic.Pointer[effective]
	topics    atomic.Pointer[snapshot]
	open      atomic.Int64 // logs
	closed    atomic.Bool

	mu sync.Mutex // guards what follows; a leaf
	// busy are the names (see unify) that a change is about; the channel is
	// closed when it is done.
	busy map[string]chan struct{}
	// stuck are the topics whose delete has begun and failed.
	stuck map[string]stuckDelete
	// unified are the names with a dot or underscore by their unified form,
	// since two that are the same but for these collide.
	unified map[string][]string
	// unverified are the partitions whose directory is there and was neither
	// flushed by a clean stop nor opened since (ST-50).
	unverified map[kafka.TopicPartition]struct{}
}

// A snapshot is all topics at one instant. It is never changed.
type snapshot struct {
	byName map[string]*Topic
	byID   map[kafka.TopicID]*Topic
	sorted []*Topic // by name
}

// Lookup finds a topic by name.
func (r *Registry) Lookup(name string) (*Topic, bool) {
	t, ok := r.topics.Load().byName[name]
	return t, ok
}

// LookupID finds a topic by id.
func (r *Registry) LookupID(id kafka.TopicID) (*Topic, bool) {
	t, ok := r.topics.Load().byID[id]
	return t, ok
}

// All returns the topics in the order of their names; the slice is not to be changed.
func (r *Registry) All() []*Topic { return r.topics.Load().sorted }

// OpenLogs is how many logs are open, for metrics.
func (r *Registry) OpenLogs() int { return int(r.open.Load()) }

// Unverified lists the partitions not opened and verified since the last
// unclean stop, in order (ST-50). Partitions that have no directory are not among them.
func (r *Registry) Unverified() []kafka.TopicPartition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Keys(r.unverified), func(a, b kafka.TopicPartition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
}

// verified takes a partition off the list of Unverified.
func (r *Registry) verified(tp kafka.TopicPartition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unverified, tp)
}

// publish makes a change of the topics visible: those added take the place of
// any of their names. All in one step, so that nobody sees half of a request.
func (r *Registry) publish(added, removed []*Topic) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.topics.Load()
	s := &snapshot{byName: maps.Clone(old.byName), byID: maps.Clone(old.byID)}
	for _, t := range removed {
		delete(s.byName, t.name)
		delete(s.byID, t.id)
		r.forgetNameLocked(t.name)
	}
	for _, t := range added {
		s.byName[t.name], s.byID[t.id] = t, t
		r.rememberNameLocked(t.name)
	}
	s.sorted = merge(old.sorted, s.byName, added)
	r.topics.Store(s)
}

// merge is the sorted list after a change: the old one, without what is gone
// and with what is new. Sorting it anew would cost more than all else of a change.
func merge(old []*Topic, byName map[string]*Topic, added []*Topic) []*Topic {
	added = slices.Clone(added)
	slices.SortFunc(added, func(a, b *Topic) int { return cmp.Compare(a.name, b.name) })
	sorted := make([]*Topic, 0, len(byName))
	for _, t := range old {
		for len(added) > 0 && added[0].name < t.name {
			sorted, added = append(sorted, added[0]), added[1:]
		}
		if byName[t.name] == t {
			sorted = append(sorted, t)
		}
	}
	return append(sorted, added...)
}

// unify is Topic.unifyCollisionChars.
func unify(name string) string { return strings.ReplaceAll(name, ".", "_") }

func hasCollisionChars(name string) bool { return strings.ContainsAny(name, "._") }

func (r *Registry) rememberNameLocked(name string) {
	if u := unify(name); hasCollisionChars(name) && !slices.Contains(r.unified[u], name) {
		r.unified[u] = append(r.unified[u], name)
	}
}

func (r *Registry) forgetNameLocked(name string) {
	u := unify(name)
	left := slices.DeleteFunc(r.unified[u], func(n string) bool { return n == name })
	if len(left) == 0 {
		delete(r.unified, u)
		return
	}
	r.unified[u] = left
}

// colliding is an existing topic whose name is the same but for dots and underscores.
func (r *Registry) colliding(name string) (string, bool) {
	if !hasCollisionChars(name) {
		return "", false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if names := r.unified[unify(name)]; len(names) > 0 {
		return names[0], true
	}
	return "", false
}

// reserve waits until no other change is about any of the names, or about one
// that collides with it, and keeps others off until release is called.
func (r *Registry) reserve(ctx context.Context, names []string) (release func(), err error) {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = unify(name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		i := slices.IndexFunc(keys, func(k string) bool { return r.busy[k] != nil })
		if i < 0 {
			break
		}
		done := r.busy[keys[i]]
		r.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			err = ctx.Err()
		}
		r.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	done := make(chan struct{})
	for _, k := range keys {
		r.busy[k] = done
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, k := range keys {
			delete(r.busy, k)
		}
		close(done)
	}, nil
}

// dir is a partition's directory.
func (r *Registry) dir(tp kafka.TopicPartition) string {
	return filepath.Join(r.o.DataDir, tp.String())
}
