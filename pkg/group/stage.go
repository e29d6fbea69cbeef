package group

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// StageOffsets stores offsets that take effect once the producer's transaction
// is committed, and returns once they are on the disk (TX-9). The errors are as those of
// CommitOffsets; from version 6 on an unknown group is GROUP_ID_NOT_FOUND. The
// caller sees to it that the group is in the transaction, and stays so meanwhile.
func (c *Coordinator) StageOffsets(ctx context.Context, producerID int64, req *CommitRequest) []error {
	errs := make([]error, len(req.Offsets))
	err := c.check(req.Group)
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("stage offsets: %w: %w", kerr.NotCoordinator, ctx.Err())
	}
	if err != nil {
		return fill(errs, err)
	}
	g := c.lock(req.Group, req.Generation < 0)
	if g == nil {
		missing := error(kerr.IllegalGeneration)
		if req.Version >= 6 { // KIP-1319
			missing = kerr.GroupIDNotFound
		}
		return fill(errs, c.missing(missing))
	}
	now := c.o.Clock.Now()
	err = g.state.CheckStage(now, req.MemberID, req.InstanceID, req.Generation)
	g.armLocked()
	if err != nil {
		g.release()
		return fill(errs, err)
	}
	for i := range req.Offsets {
		if utf16Length(req.Offsets[i].Metadata) > c.o.Settings.OffsetMetadataMaxBytes {
			errs[i] = kerr.OffsetMetadataTooLarge
		}
	}
	done := make(chan error, 1)
	g.submitCommitLocked(func(tx *metastore.Tx) error {
		return putOffsets(tx, req, errs, now, time.Time{}, func(o metastore.Offset) error { return tx.StageOffset(req.Group, producerID, o) })
	}, done)
	g.release() // as in CommitOffsets
	if err := <-done; err != nil {
		return fill(errs, fmt.Errorf("stage offsets of group %q: %w: %w", req.Group, kerr.NotCoordinator, err))
	}
	return errs
}

// HoldOffsets keeps the groups' offsets from being expired until release is
// called: a transaction is about to change them.
func (c *Coordinator) HoldOffsets(groups []string) (release func()) {
	var held []*group
	for _, name := range groups {
		if g := c.lock(name, false); g != nil {
			g.commits++
			g.version++
			g.mu.Unlock()
			held = append(held, g)
		}
	}
	return func() {
		for _, g := range held {
			g.mu.Lock()
			g.commits--
			g.mu.Unlock()
		}
	}
}
