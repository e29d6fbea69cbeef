package group

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// typeClassic is the type of a group of the classic protocol, and of a simple one (GroupType).
const typeClassic = "classic"

// stateDead is the state of a group there is not.
const stateDead = "Dead"

// List tells of the groups that the filter picks, by name.
func (c *Coordinator) List(f ListFilter) []Listed {
	listed := []Listed{}
	if !picked(f.Types, typeClassic) || c.closed.Load() {
		return listed
	}
	states := trimmed(f.States)
	for _, g := range c.all() {
		g.mu.Lock()
		l := Listed{Group: g.name, ProtocolType: g.state.ProtocolType(), State: g.state.Phase().String(), Type: typeClassic}
		gone := g.gone
		g.mu.Unlock()
		if !gone && picked(states, l.State) {
			listed = append(listed, l)
		}
	}
	slices.SortFunc(listed, func(a, b Listed) int { return cmp.Compare(a.Group, b.Group) })
	return listed
}

func picked(filter []string, name string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, name) })
}

// trimmed are the names of states without the spaces around them, which Kafka allows there and not around types.
func trimmed(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.TrimSpace(n)
	}
	return out
}

// Describe tells of a group. For one that is not there the description is
// that of a dead group beside GROUP_ID_NOT_FOUND with its text
// (kafka.ErrorMessage), which only v6 and later tell.
func (c *Coordinator) Describe(group string) (Description, error) {
	g := c.lock(group, false)
	if g == nil {
		err := c.missing(kafka.Errorf(kerr.GroupIDNotFound, "Group %s not found.", group))
		return Description{Group: group, State: stateDead}, err
	}
	defer g.release()
	d := g.state.Describe()
	out := Description{Group: g.name, State: g.state.Phase().String(), ProtocolType: g.state.ProtocolType(), Protocol: d.Protocol}
	for _, m := range d.Members {
		out.Members = append(out.Members, Member(m))
	}
	return out, nil
}

// Delete removes groups and their offsets, durably and sharing commits; the
// errors are in the order of the names: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP,
// NOT_COORDINATOR if meta.db can't be written. Of a name that is there twice, the second is not found.
func (c *Coordinator) Delete(ctx context.Context, groups []string) []error {
	errs := make([]error, len(groups))
	if err := ctx.Err(); err != nil {
		return fill(errs, fmt.Errorf("delete groups: %w: %w", kerr.NotCoordinator, err))
	}
	done := make([]chan error, len(groups))
	for i, name := range groups {
		g := c.lock(name, false)
		if g == nil {
			errs[i] = c.missing(kerr.GroupIDNotFound)
			continue
		}
		if errs[i] = g.state.CheckDelete(); errs[i] == nil {
			done[i] = make(chan error, 1)
			g.submitDropLocked(done[i])
		}
		g.mu.Unlock()
	}
	for i, d := range done {
		if d == nil {
			continue
		}
		if err := <-d; err != nil {
			errs[i] = fmt.Errorf("delete group %q: %w: %w", groups[i], kerr.NotCoordinator, err)
		}
	}
	return errs
}

// submitDropLocked removes a group and its offsets: at once for its clients,
// and without waiting for the disk. It is put back if that fails.
func (g *group) submitDropLocked(done chan<- error) {
	g.c.writes.Add(1)
	last := g.last
	g.c.journal.dropping(g.name)
	g.c.o.Store.Submit(func(tx *metastore.Tx) error {
		if err := g.c.journal.drop(tx, last); err != nil {
			return err
		}
		return tx.DropGroup(g.name)
	}, func(err error) {
		defer g.c.writes.Done()
		if err == nil {
			g.c.journal.settled(g.name, last)
		} else {
			g.mu.Lock()
			g.reviveLocked()
			g.release()
		}
		done <- err
	})
	g.retireLocked() // after Submit: see there
}
