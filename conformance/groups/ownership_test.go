package groups

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// An ownership is what the members of a group were told, in the order in which they were: which partition is whose at this instant, what was
// consumed, and what the broker acknowledged as committed. Whoever breaks a rule of groups is written down.
type ownership struct {
	mu        sync.Mutex // guards what follows
	owner     []string   // by partition; "" for none
	from      []int64    // by partition: what was committed when it got its owner, at least
	committed []int64    // by partition: the highest acknowledged commit
	next      []int64    // by partition: the lowest offset that nobody has consumed
	faults    []string
	changed   chan struct{} // closed and made anew with each change

	assigned, repeats int // events; records that were delivered once more, as nobody had committed them
}

func newOwnership(partitions int) *ownership {
	return &ownership{owner: make([]string, partitions), from: make([]int64, partitions), committed: make([]int64, partitions),
		next: make([]int64, partitions), changed: make(chan struct{})}
}

func (o *ownership) faultLocked(format string, args ...any) {
	o.faults = append(o.faults, fmt.Sprintf(format, args...))
}

func (o *ownership) changeLocked() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// assign says that a member was given partitions.
func (o *ownership) assign(member string, partitions []int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.assigned++
	for _, p := range partitions {
		if was := o.owner[p]; was != "" {
			o.faultLocked("partition %d is given to %s while %s has it", p, member, was)
		}
		o.owner[p], o.from[p] = member, o.committed[p]
	}
	o.changeLocked()
}

// release says that a member gave partitions back, or was told that it has lost them.
func (o *ownership) release(member string, partitions []int32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range partitions {
		if was := o.owner[p]; was != member {
			o.faultLocked("partition %d is given back by %s while %q has it", p, member, was)
			continue
		}
		o.owner[p] = ""
	}
	o.changeLocked()
}

// consume says that a member got a record.
func (o *ownership) consume(member string, p int32, offset int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.owner[p] != member:
		o.faultLocked("%s consumes partition %d, which %q has", member, p, o.owner[p])
	case offset < o.from[p]:
		o.faultLocked("%s consumes partition %d at %d, which was committed at %d before it got the partition", member, p, offset, o.from[p])
	case offset > o.next[p]:
		o.faultLocked("%s consumes partition %d at %d; nobody has had %d", member, p, offset, o.next[p])
	case offset < o.next[p]:
		o.repeats++
	default:
		o.next[p]++
	}
}

// acknowledge says that the broker has taken a member's commit.
func (o *ownership) acknowledge(member string, p int32, offset int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.owner[p] != member {
		o.faultLocked("a commit of %s for partition %d is taken, which %q has", member, p, o.owner[p])
	}
	o.committed[p] = max(o.committed[p], offset)
}

// settled says whether every partition is owned by one of the members.
func (o *ownership) settled(members []string) (yes bool, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.owner {
		if !slices.Contains(members, m) {
			return false, o.changed
		}
	}
	return true, o.changed
}

// await returns how long it took until every partition was owned by one of the members.
func (o *ownership) await(t *testing.T, members []string, bound time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	late := time.NewTimer(bound)
	defer late.Stop()
	for {
		yes, changed := o.settled(members)
		if yes {
			return time.Since(began)
		}
		select {
		case <-changed:
		case <-late.C:
			o.mu.Lock()
			defer o.mu.Unlock()
			t.Fatalf("after %v the partitions are those of %q", bound, o.owner)
		}
	}
}

// assignments is how often a member was given partitions.
func (o *ownership) assignments() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.assigned
}

// awaitAssignment waits until a member was given partitions once more.
func (o *ownership) awaitAssignment(t *testing.T, before int, bound time.Duration) {
	t.Helper()
	late := time.NewTimer(bound)
	defer late.Stop()
	for {
		o.mu.Lock()
		more, changed := o.assigned > before, o.changed
		o.mu.Unlock()
		if more {
			return
		}
		select {
		case <-changed:
		case <-late.C:
			t.Fatalf("nobody was given partitions within %v", bound)
		}
	}
}

func (o *ownership) report(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.faults {
		t.Error(f)
	}
	o.faults = nil
}

// consumed says whether everything up to the ends was consumed.
func (o *ownership) consumed(ends []int64) (missing int64, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p, end := range ends {
		missing += max(end-o.next[p], 0)
	}
	return missing, o.changed
}

// Show 2: the judge finds what it is there for.
func TestOwnershipFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(*ownership)
		faults int
	}{
		"in order": {func(o *ownership) {
			o.assign("a", []int32{0})
			o.consume("a", 0, 0)
			o.acknowledge("a", 0, 1)
			o.release("a", []int32{0})
			o.assign("b", []int32{0})
			o.consume("b", 0, 1)
		}, 0},
		"again what was not committed": {func(o *ownership) {
			o.assign("a", []int32{0})
			o.consume("a", 0, 0)
			o.release("a", []int32{0})
			o.assign("b", []int32{0})
			o.consume("b", 0, 0)
		}, 0},
		"given twice":           {func(o *ownership) { o.assign("a", []int32{0}); o.assign("b", []int32{0}) }, 1},
		"given back by another": {func(o *ownership) { o.assign("a", []int32{0}); o.release("b", []int32{0}) }, 1},
		"consumed by another":   {func(o *ownership) { o.consume("a", 0, 0) }, 1},
		"a commit of another":   {func(o *ownership) { o.acknowledge("a", 0, 1) }, 1},
		"a record is left out":  {func(o *ownership) { o.assign("a", []int32{0}); o.consume("a", 0, 1) }, 1},
		"again after the commit": {func(o *ownership) {
			o.assign("a", []int32{0})
			o.consume("a", 0, 0)
			o.acknowledge("a", 0, 1)
			o.release("a", []int32{0})
			o.assign("b", []int32{0})
			o.consume("b", 0, 0)
		}, 1},
	} {
		o := newOwnership(1)
		if c.do(o); len(o.faults) != c.faults {
			t.Errorf("%s: %q", name, o.faults)
		}
	}
}
