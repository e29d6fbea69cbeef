package txn

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// A Producer is who a request says that it comes from.
type Producer struct {
	ID         string // transactional id
	ProducerID int64
	Epoch      int16
}

// A Partition is one in a transaction.
type Partition = metastore.TxnPartition

// AddPartitions puts partitions into the producer's transaction, durably, and
// begins it if there is none. bumps says that the client ends it with EndTxn v5.
// INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, NOT_COORDINATOR.
func (c *Coordinator) AddPartitions(ctx context.Context, p Producer, partitions []Partition, bumps bool) error {
	_, err := c.add(ctx, p, partitions, nil, bumps, false)
	return err
}

// AddGroup is AddOffsetsToTxn: it puts a group into the transaction, as AddPartitions does a partition.
func (c *Coordinator) AddGroup(ctx context.Context, p Producer, group string) error {
	_, err := c.add(ctx, p, nil, []string{group}, false, false)
	return err
}

// Enter lets a producer append to partitions: they are in its transaction,
// durably (TX-4), and that does not end before leave is called. With add (Produce
// v12) they are put into it if they are not, with one commit for all; otherwise
// one that is not in it is TRANSACTION_ABORTABLE, which errs says of each (nil: of none). The other
// errors are those of AddPartitions, and of all partitions; leave is nil then.
func (c *Coordinator) Enter(ctx context.Context, p Producer, partitions []Partition, add bool) (leave func(), errs []error, err error) {
	if add {
		leave, err = c.add(ctx, p, partitions, nil, true, true)
		return leave, nil, err
	}
	t, err := c.lock(ctx, p.ID)
	if err != nil {
		return nil, nil, err
	}
	defer t.mu.Unlock()
	if err := t.state.check(p.ProducerID, p.Epoch); err != nil {
		return nil, nil, err
	}
	t.entered++
	return t.leave, t.state.missing(partitions), nil
}

// EnterGroup is Enter for staging offsets of a group (add: TxnOffsetCommit v5).
func (c *Coordinator) EnterGroup(ctx context.Context, p Producer, group string, add bool) (leave func(), err error) {
	if add {
		return c.add(ctx, p, nil, []string{group}, true, true)
	}
	t, err := c.lock(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	if err := t.state.check(p.ProducerID, p.Epoch); err != nil {
		return nil, err
	}
	if !t.state.hasGroup(group) {
		return nil, kerr.TransactionAbortable
	}
	t.entered++
	return t.leave, nil
}

// Verify says of each partition whether it is in the producer's transaction
// (AddPartitionsToTxn with verify_only): nil, or TRANSACTION_ABORTABLE. The error is that of all.
func (c *Coordinator) Verify(ctx context.Context, p Producer, partitions []Partition) ([]error, error) {
	t, err := c.lock(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	if err := t.state.check(p.ProducerID, p.Epoch); err != nil {
		return nil, err
	}
	return t.state.missing(partitions), nil
}

// missing is TRANSACTION_ABORTABLE for each partition that is not in the transaction; nil if all are.
func (s State) missing(partitions []Partition) (errs []error) {
	for i := range partitions {
		if s.has(partitions[i]) {
			continue
		}
		if errs == nil {
			errs = make([]error, len(partitions))
		}
		errs[i] = kerr.TransactionAbortable
	}
	return errs
}

// add is one commit of the row at most, however many partitions there are.
func (c *Coordinator) add(ctx context.Context, p Producer, partitions []Partition, groups []string, bumps, enter bool) (leave func(), err error) {
	t, err := c.lock(ctx, p.ID)
	if err != nil {
		return nil, err
	}
	next, changed, err := t.state.add(p.ProducerID, p.Epoch, partitions, groups, bumps, c.nowMs())
	if err != nil {
		t.mu.Unlock()
		return nil, err
	}
	if enter { // before the commit, so that no end comes between
		t.entered++
	}
	if !changed {
		t.mu.Unlock()
		return t.leave, nil
	}
	if err := t.put(keep(next), nil); err != nil {
		if enter {
			t.leave()
		}
		return nil, err
	}
	c.wakeFor(next)
	return t.leave, nil
}

// keep is a state whose texts are memory of its own: those of a request alias its frame.
func keep(s State) State {
	s.Partitions, s.Groups = slices.Clone(s.Partitions), slices.Clone(s.Groups)
	for i := range s.Partitions {
		s.Partitions[i].Topic = strings.Clone(s.Partitions[i].Topic)
	}
	for i := range s.Groups {
		s.Groups[i] = strings.Clone(s.Groups[i])
	}
	return s
}

// leave says that an append is in the log, or a staged offset on the disk, or that it failed.
func (t *transaction) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entered--
	if t.entered == 0 && t.left != nil {
		close(t.left)
		t.left = nil
	}
}
