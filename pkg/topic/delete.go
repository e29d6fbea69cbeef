package topic

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// A stuckDelete is a topic whose row says that it is being deleted, and whose
// directories could not be removed.
type stuckDelete struct {
	row metastore.Topic
	err error
	// final: a directory's fsync failed, so that the names on the disk are
	// not known (ST-61); only the next start goes on.
	final bool
}

// Delete removes a topic. It is complete when it returns (FX-21): the name is
// free, and a topic made with it has another id and none of the records.
// UNKNOWN_TOPIC_OR_PARTITION if it is not there any more; KAFKA_STORAGE_ERROR if the disk
// failed: then the topic is as before, or is gone, and its name is not free
// until a Create of that name, or the next start, has finished the delete.
func (r *Registry) Delete(ctx context.Context, t *Topic) error {
	return r.DeleteAll(ctx, []*Topic{t})[0]
}

// DeleteAll removes topics as Delete does, with the fsyncs of one. The errors
// are in the order of the topics; each topic is there once.
//
// The steps, of which a start does those that a crash has left undone:
//
//  1. the rows say "deleting", durably: from here on the topics are gone
//  2. lookups do not find them, logs are closed, waiters are woken
//  3. each directory is renamed to <topic>-<partition>.<id>-delete, so that
//     a topic of that name never meets it; the data directory is synced
//  4. the renamed directories are removed
//  5. the rows are dropped, durably: the names are free
func (r *Registry) DeleteAll(ctx context.Context, topics []*Topic) []error {
	errs := make([]error, len(topics))
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.name
	}
	release, err := r.reserve(ctx, names)
	if err != nil {
		return fill(errs, timedOut(err))
	}
	defer release()

	var gone []*Topic
	var rows []metastore.Topic
	for i, t := range topics {
		now, ok := r.LookupID(t.id)
		if !ok {
			errs[i] = kerr.UnknownTopicOrPartition
			continue
		}
		row := now.row()
		row.Deleting = true
		gone, rows = append(gone, now), append(rows, row)
	}
	if len(rows) == 0 {
		return errs
	}
	err = r.o.Store.Update(ctx, func(tx *metastore.Tx) error {
		for _, row := range rows {
			if err := tx.PutTopic(row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fill(errs, timedOut(err))
	}
	r.publish(nil, gone)
	for _, t := range gone {
		t.endAll(kerr.UnknownTopicOrPartition)
	}
	// From here on the topics are deleted whatever the client does.
	return fill(errs, r.finishDeletes(context.WithoutCancel(ctx), rows))
}

// fill gives err to those that have none.
func fill(errs []error, err error) []error {
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
	return errs
}

// endAll ends the topic's logs: for good, without flushing.
func (t *Topic) endAll(err error) {
	for _, s := range t.slots {
		if l := s.end(t.r, err); l != nil {
			l.Abandon()
		}
	}
}

// finishDeletes does steps 3 to 5 for rows that say "deleting". Those that
// fail are remembered, so that their names are not used.
func (r *Registry) finishDeletes(ctx context.Context, rows []metastore.Topic) error {
	if len(rows) == 0 {
		return nil
	}
	final, err := r.removeDirs(rows)
	if err == nil {
		err = r.o.Store.Update(ctx, func(tx *metastore.Tx) error {
			for _, row := range rows {
				if err := tx.DropTopic(row.Name, row.ID); err != nil {
					return err
				}
			}
			return nil
		})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range rows {
		delete(r.stuck, row.Name)
		if err != nil {
			r.stuck[row.Name] = stuckDelete{row, err, final}
		}
		for p := range row.Partitions {
			delete(r.unverified, kafka.TopicPartition{Topic: row.Name, Partition: p})
		}
	}
	if err != nil {
		r.o.Shared.Logger.Error("topics are deleted, but their files could not be removed; the next start goes on with it", "topics", len(rows), "error", err)
		return fmt.Errorf("finish a delete: %w: %w", kerr.KafkaStorageError, err)
	}
	return nil
}

// removeDirs renames and removes the directories of topics. final says that a
// sync failed.
func (r *Registry) removeDirs(rows []metastore.Topic) (final bool, err error) {
	fsys := r.o.Shared.FS
	var renamed []string
	for _, row := range rows {
		for p := range row.Partitions {
			to, err := r.renameDir(kafka.TopicPartition{Topic: row.Name, Partition: p}, row.ID)
			if err != nil {
				return false, err
			}
			if to != "" {
				renamed = append(renamed, to)
			}
		}
	}
	// Without this sync a directory could be back under its name after a power
	// cut, where the row is dropped, and be met by a topic that has the name by
	// then. It is made even if nothing was renamed now: an earlier try may have.
	if err := fsys.SyncDir(r.o.DataDir); err != nil {
		return true, err
	}
	for _, name := range renamed {
		// No sync after it: what a power cut brings back is removed by a start.
		if err := fsys.RemoveAll(name); err != nil {
			return false, err
		}
	}
	return false, nil
}

// renameDir moves a partition's directory out of the way: its new name, or ""
// if there is none, or one of another topic (ST-1).
func (r *Registry) renameDir(tp kafka.TopicPartition, id kafka.TopicID) (string, error) {
	fsys, from := r.o.Shared.FS, r.dir(tp)
	to := filepath.Join(r.o.DataDir, deletedName(tp, id))
	if _, err := fsys.Stat(from); errors.Is(err, fs.ErrNotExist) {
		if _, err := fsys.Stat(to); err == nil {
			return to, nil // an earlier try renamed it
		}
		return "", nil
	}
	owner, err := commitlog.Owner(fsys, from)
	if err != nil {
		return "", err
	}
	if !owner.IsZero() && owner != id {
		r.o.Shared.Logger.Warn("the directory of a deleted topic belongs to another one and is left alone", "directory", from, "topic id", owner.String())
		return "", nil
	}
	return to, fsys.Rename(from, to)
}

const (
	deletedSuffix = "-delete"
	maxFileName   = 255
)

// deletedName is what the directory of a deleted partition is renamed to. A
// long topic name is cut, as Kafka does (UnifiedLog.logDeleteDirName); the id tells it apart.
func deletedName(tp kafka.TopicPartition, id kafka.TopicID) string {
	suffix := fmt.Sprintf("-%d.%s%s", tp.Partition, id, deletedSuffix)
	return tp.Topic[:min(len(tp.Topic), maxFileName-len(suffix))] + suffix
}

// deletedID is the topic id in a name that deletedName made.
func deletedID(name string) (kafka.TopicID, bool) {
	rest, ok := strings.CutSuffix(name, deletedSuffix)
	at := strings.LastIndexByte(rest, '.')
	if !ok || at < 0 {
		return kafka.TopicID{}, false
	}
	id, err := kafka.ParseTopicID(rest[at+1:])
	return id, err == nil
}

// finishStuck frees a name whose delete had failed.
func (r *Registry) finishStuck(ctx context.Context, name string) error {
	r.mu.Lock()
	s, ok := r.stuck[name]
	r.mu.Unlock()
	switch {
	case !ok:
		return nil
	case s.final:
		return fmt.Errorf("topic %q was deleted, and its name is free once the broker was restarted: %w: %w", name, kerr.KafkaStorageError, s.err)
	}
	return r.finishDeletes(ctx, []metastore.Topic{s.row})
}
