package group

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// CommitOffsets stores offsets and returns once they are on disk (ST-80): the
// errors in the order of the request, nil for what is committed. An error of
// the group is that of all partitions. NOT_COORDINATOR if meta.db can't be
// written (ST-60, ST-64): clients find the coordinator and try again.
// UNKNOWN_TOPIC_OR_PARTITION for a topic that was deleted meanwhile. The
// request is not used once it returned. A ctx that has ended commits nothing;
// one that ends later is of no effect, as what is queued is committed.
func (c *Coordinator) CommitOffsets(ctx context.Context, req *CommitRequest) []error {
	errs := make([]error, len(req.Offsets))
	err := checkLength(req.Group)
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("commit offsets: %w: %w", kerr.NotCoordinator, ctx.Err())
	}
	if err != nil {
		return fill(errs, err)
	}
	g := c.lock(req.Group, req.Generation < 0) // that of a simple consumer makes its group
	if g == nil {
		return fill(errs, c.missing(missingAtCommit(req.Version)))
	}
	now := c.o.Clock.Now()
	err = g.state.CheckCommit(now, req.MemberID, req.InstanceID, req.Generation)
	g.armLocked()
	if err != nil {
		g.release()
		return fill(errs, err)
	}
	var expires time.Time
	if req.Retention >= 0 {
		expires = now.Add(req.Retention)
	}
	for i := range req.Offsets {
		if utf16Length(req.Offsets[i].Metadata) > c.o.Settings.OffsetMetadataMaxBytes {
			errs[i] = kerr.OffsetMetadataTooLarge
		}
	}
	done := make(chan error, 1)
	g.submitCommitLocked(func(tx *metastore.Tx) error {
		return putOffsets(tx, req, errs, now, expires, func(o metastore.Offset) error { return tx.CommitOffset(req.Group, o) })
	}, done)
	g.release() // the disk is waited for longer
	if err := <-done; err != nil {
		return fill(errs, fmt.Errorf("commit offsets of group %q: %w: %w", req.Group, kerr.NotCoordinator, err))
	}
	return errs
}

// missingAtCommit is the error for a group there is not.
func missingAtCommit(version int16) error {
	if version >= 9 {
		return kerr.GroupIDNotFound
	}
	return kerr.IllegalGeneration
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

// utf16Length is a text's length as Java counts it, which is what offset.metadata.max.bytes limits.
func utf16Length(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}

// putOffsets stores those that have no error. The topic is looked up in the
// same transaction: a deletion either comes first, or finds the offset (GR-7).
func putOffsets(tx *metastore.Tx, req *CommitRequest, errs []error, now, expires time.Time, put func(metastore.Offset) error) error {
	var topic string
	var id kafka.TopicID
	there := false
	for i := range req.Offsets {
		o := &req.Offsets[i]
		if errs[i] != nil {
			continue
		}
		if topic != o.Topic || id != o.TopicID {
			var err error
			if there, err = tx.HasTopic(o.Topic, o.TopicID); err != nil {
				return err
			}
			topic, id = o.Topic, o.TopicID
		}
		if !there {
			errs[i] = kerr.UnknownTopicOrPartition
			continue
		}
		row := metastore.Offset{Topic: o.Topic, Partition: o.Partition, TopicID: o.TopicID, Offset: o.Offset,
			LeaderEpoch: o.LeaderEpoch, Metadata: o.Metadata, Committed: now, Expires: expires}
		if err := put(row); err != nil {
			return err
		}
	}
	return nil
}

// submitCommitLocked queues a change of offsets. A group that has no row yet
// gets one in the same transaction: no offsets are ever there without it.
func (g *group) submitCommitLocked(change func(*metastore.Tx) error, done chan<- error) {
	g.commits++
	g.version++
	row, needed, put := g.stored, !g.onDisk, false
	g.c.writes.Add(1)
	g.c.o.Store.Submit(func(tx *metastore.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		if put = needed && (tx.HasOffsets(g.name) || tx.HasStaged(g.name)); put {
			return tx.PutGroup(row)
		}
		return nil
	}, func(err error) {
		defer g.c.writes.Done()
		g.mu.Lock()
		g.commits--
		g.onDisk = g.onDisk || put && err == nil
		if err != nil && g.commits == 0 && !g.onDisk && !g.gone && g.state.Pristine() {
			g.retireLocked() // the commit had made it
		}
		g.mu.Unlock()
		done <- err
	})
}

// FetchOffsets reads committed offsets. A group there is not has none. It
// reads meta.db's pages and so may touch the page cache.
func (c *Coordinator) FetchOffsets(req *FetchOffsetsRequest) FetchOffsetsResponse {
	if c.closed.Load() {
		return FetchOffsetsResponse{Err: kerr.CoordinatorNotAvailable}
	}
	if err := checkLength(req.Group); err != nil {
		return FetchOffsetsResponse{Err: err}
	}
	var out []FetchedOffset
	err := c.o.Store.View(func(tx *metastore.Tx) (err error) {
		if req.All {
			out, err = allOffsets(tx, req)
			return err
		}
		out, err = someOffsets(tx, req)
		return err
	})
	if err != nil {
		if c.closed.Load() {
			err = kerr.CoordinatorNotAvailable
		}
		return FetchOffsetsResponse{Err: fmt.Errorf("fetch offsets of group %q: %w", req.Group, err)}
	}
	return FetchOffsetsResponse{Offsets: out}
}

func allOffsets(tx *metastore.Tx, req *FetchOffsetsRequest) ([]FetchedOffset, error) {
	out := []FetchedOffset{}
	for o, err := range tx.Offsets(req.Group) {
		if err != nil {
			return nil, err
		}
		f := fetched(o)
		f.unstable(tx, req)
		out = append(out, f)
	}
	return out, nil
}

// unstable hides an offset that an open transaction may change, if that was asked for.
func (f *FetchedOffset) unstable(tx *metastore.Tx, req *FetchOffsetsRequest) {
	if req.Stable && tx.Staged(req.Group, f.Topic, f.Partition) {
		f.Offset, f.LeaderEpoch, f.Metadata, f.Err = -1, -1, "", kerr.UnstableOffsetCommit
	}
}

func someOffsets(tx *metastore.Tx, req *FetchOffsetsRequest) ([]FetchedOffset, error) {
	out := make([]FetchedOffset, len(req.Partitions))
	for i, p := range req.Partitions {
		o, ok, err := tx.Offset(req.Group, p.Topic, p.Partition)
		if err != nil {
			return nil, err
		}
		out[i] = FetchedOffset{Topic: p.Topic, Partition: p.Partition, Offset: -1, LeaderEpoch: -1}
		if ok && (p.TopicID.IsZero() || p.TopicID == o.TopicID) {
			out[i] = fetched(o)
		}
		out[i].unstable(tx, req)
	}
	return out, nil
}

func fetched(o metastore.Offset) FetchedOffset {
	return FetchedOffset{Topic: o.Topic, TopicID: o.TopicID, Partition: o.Partition, Offset: o.Offset, LeaderEpoch: o.LeaderEpoch, Metadata: o.Metadata}
}

// DeleteOffsets deletes committed offsets, and those that transactions have staged, durably: GROUP_ID_NOT_FOUND,
// NON_EMPTY_GROUP for one with members whose protocol type is not "consumer",
// NOT_COORDINATOR if meta.db can't be written, and for a partition
// GROUP_SUBSCRIBED_TO_TOPIC. An offset that is not there is no error.
func (c *Coordinator) DeleteOffsets(ctx context.Context, req *DeleteOffsetsRequest) DeleteOffsetsResponse {
	err := c.check(req.Group)
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("delete offsets: %w: %w", kerr.NotCoordinator, ctx.Err())
	}
	if err != nil {
		return DeleteOffsetsResponse{Err: err}
	}
	g := c.lock(req.Group, false)
	if g == nil {
		return DeleteOffsetsResponse{Err: c.missing(kerr.GroupIDNotFound)}
	}
	if err := g.state.CheckDeleteOffsets(); err != nil {
		g.mu.Unlock()
		return DeleteOffsetsResponse{Err: err}
	}
	errs := make([]error, len(req.Partitions))
	for i, p := range req.Partitions {
		if g.state.Subscribed(p.Topic) {
			errs[i] = kerr.GroupSubscribedToTopic
		}
	}
	done := make(chan error, 1)
	g.submitCommitLocked(func(tx *metastore.Tx) error {
		for i, p := range req.Partitions {
			if errs[i] != nil {
				continue
			}
			if err := tx.DropOffset(req.Group, p.Topic, p.Partition); err != nil {
				return err
			}
			if err := tx.DropStaged(req.Group, p.Topic, p.Partition); err != nil {
				return err
			}
		}
		return nil
	}, done)
	g.mu.Unlock()
	if err := <-done; err != nil {
		return DeleteOffsetsResponse{Err: fmt.Errorf("delete offsets of group %q: %w: %w", req.Group, kerr.NotCoordinator, err)}
	}
	return DeleteOffsetsResponse{Partitions: errs}
}
