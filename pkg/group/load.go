package group

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/group/classic"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// load makes the groups of the store, and of the journal where that has later states.
func (c *Coordinator) load() error {
	rows, floor, err := c.rows()
	if err != nil {
		return err
	}
	left, err := c.journal.read()
	if err != nil {
		c.o.Logger.Warn("the journal of groups can't be read; groups go on with what meta.db has", "error", err)
	}
	newer := c.newer(rows, floor, left)
	for name, row := range rows {
		if _, later := newer[name]; !later {
			c.loaded(row).onDisk = true
		}
	}
	for _, row := range newer {
		c.loaded(row)
	}
	err = c.o.Store.Update(context.Background(), func(tx *metastore.Tx) error {
		for _, row := range newer {
			if err := tx.PutGroup(row); err != nil {
				return err
			}
		}
		if c.journal.there { // it has no entry that counts from here on
			if err := tx.RaiseGroupsFloor(c.journal.base); err != nil {
				return err
			}
		}
		return c.dropStaleOffsets(tx)
	})
	if errors.Is(err, kerr.KafkaStorageError) {
		// The disk is full, or worse: that is no reason not to start, and reads go on.
		c.o.Logger.Warn("offsets of deleted topics could not be dropped", "error", err)
		c.journal.keep(newer)
		c.writeLater(newer)
		return nil
	}
	if err == nil {
		for name := range newer {
			c.groups[name].onDisk = true
		}
		c.journal.begin()
	}
	return err
}

// rows are the groups of the store by name, and the version up to which the journal does not count.
func (c *Coordinator) rows() (rows map[string]metastore.Group, floor uint64, err error) {
	rows = map[string]metastore.Group{}
	err = c.o.Store.View(func(tx *metastore.Tx) (err error) {
		if floor, err = tx.GroupsFloor(); err != nil {
			return err
		}
		for row, err := range tx.Groups() {
			if err != nil {
				return err
			}
			rows[row.Name] = row
		}
		return nil
	})
	return rows, floor, err
}

// newer are the last states of groups that the journal has and their rows have not.
// An entry counts if it is above the floor, since it could be of a group that was deleted,
// or of an earlier start; if it is above its row; and if it is not of a start
// that is yet to come, for then it was written beside another meta.db.
func (c *Coordinator) newer(rows map[string]metastore.Group, floor uint64, left []metastore.Group) map[string]metastore.Group {
	newer := map[string]metastore.Group{}
	for _, g := range left {
		if row, ok := rows[g.Name]; g.Version <= floor || g.Version > c.journal.base || ok && g.Version <= row.Version {
			continue
		}
		if was, ok := newer[g.Name]; !ok || g.Version > was.Version {
			newer[g.Name] = g
		}
	}
	return newer
}

// writeLater has groups written that could not be at the start.
func (c *Coordinator) writeLater(groups map[string]metastore.Group) {
	for name := range groups {
		g := c.groups[name]
		g.mu.Lock()
		g.dirty = true
		g.mu.Unlock()
		c.o.Clock.AfterFunc(retryWrite, g.write)
	}
}

// dropStaleOffsets drops offsets of topics that are gone (GR-7).
func (c *Coordinator) dropStaleOffsets(tx *metastore.Tx) error {
	gone := map[string]bool{} // by topic name and id
	return tx.DropOffsetsIf(func(_ string, o metastore.Offset) bool {
		key := o.Topic + string(o.TopicID[:])
		drop, known := gone[key]
		if !known {
			t, ok := c.o.Topic(o.Topic)
			drop = !ok || t.ID != o.TopicID
			gone[key] = drop
		}
		return drop
	})
}

// loaded makes the group of a row.
func (c *Coordinator) loaded(row metastore.Group) *group {
	g := &group{c: c, name: row.Name, last: row.Version, stored: row}
	var e classic.Effects
	g.state, e = classic.Restore(c.cfg, c.o.Clock.Now(), snapshotOf(row), c.o.Unclean)
	c.groups[row.Name] = g
	g.mu.Lock()
	g.applyLocked(e)
	g.unlock(e)
	return g
}
