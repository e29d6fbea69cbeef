package txn

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// The states of a transactional id, as the row has them (TransactionState's ids).
const (
	empty          = metastore.TxnEmpty
	ongoing        = metastore.TxnOngoing
	prepareCommit  = metastore.TxnPrepareCommit
	prepareAbort   = metastore.TxnPrepareAbort
	completeCommit = metastore.TxnCompleteCommit
	completeAbort  = metastore.TxnCompleteAbort
)

// noID and noEpoch stand for none.
const (
	noID    int64 = -1
	noEpoch int16 = -1
)

// lastEpoch is the last epoch that a client gets: the next one is there to
// fence it, and then the producer id changes (TransactionMetadata.isEpochExhausted).
const lastEpoch = math.MaxInt16 - 1

// errNeedsID asks to be called again with a fresh producer id: the epochs of the one there is are used up.
var errNeedsID = errors.New("a fresh producer id is needed")

// A State is one transactional id: pure, and a value. Its methods return what it
// is to be next, and change nothing; slices are shared and never written to.
// The rules are those of TransactionCoordinator and TransactionMetadata with transaction.version 2.
type State struct{ metastore.Transaction }

// newState is a transactional id that nobody has yet, before its first epoch.
func newState(id string, producerID int64) State {
	return State{metastore.Transaction{ID: id, ProducerID: producerID, PreviousID: noID, NextID: noID,
		Epoch: noEpoch, LastEpoch: noEpoch, Start: -1}}
}

// prepared says that the outcome is decided, and the markers are not all written.
func (s State) prepared() bool { return s.Phase == prepareCommit || s.Phase == prepareAbort }

// exhausted says that the producer id has no epoch left for a client.
func (s State) exhausted() bool { return s.Epoch >= lastEpoch }

// next is the state after a transition at a time in ms.
func (s State) next(phase metastore.TxnPhase, now int64) State {
	s.Phase, s.PreviousID, s.Updated = phase, s.ProducerID, now
	s.Settling = nil // what is on its way had reached the disk, or this id would not change
	return s
}

// An Expected is the id and epoch that a producer says it has (KIP-360).
type Expected struct {
	ProducerID int64
	Epoch      int16
}

// errFence says that the ongoing transaction has to be aborted first; its producer is fenced by that.
var errFence = errors.New("the ongoing transaction is aborted first")

// init gives a producer its next epoch; fresh is a producer id to be used if need be, or noID.
// PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, errFence, errNeedsID.
func (s State) init(timeoutMs int32, expected *Expected, fresh, now int64) (State, error) {
	if expected != nil && !s.knows(*expected) {
		return s, kerr.ProducerFenced
	}
	switch {
	case s.prepared():
		return s, kerr.ConcurrentTransactions
	case s.Phase == ongoing:
		return s, errFence
	}
	n := s.next(empty, now)
	n.TimeoutMs, n.Start = timeoutMs, -1
	switch {
	case s.exhausted() && (expected == nil || expected.Epoch == s.Epoch):
		if fresh == noID {
			return s, errNeedsID
		}
		n.ProducerID, n.Epoch, n.LastEpoch = fresh, 0, noEpoch
		if expected != nil {
			n.LastEpoch = s.Epoch
		}
	case s.exhausted():
		return s, kerr.UnknownServerError // Kafka's IllegalStateException
	case expected == nil:
		n.Epoch, n.LastEpoch = s.Epoch+1, noEpoch
	case s.Epoch == noEpoch || expected.Epoch == s.Epoch:
		n.Epoch, n.LastEpoch = s.Epoch+1, s.Epoch
	case expected.Epoch == s.LastEpoch: // a repeat of a request whose answer was lost
	default:
		return s, kerr.ProducerFenced
	}
	return n, nil
}

// knows says whether the producer id is the one there is, or the one before whose epochs were used up.
func (s State) knows(e Expected) bool {
	return s.Epoch == noEpoch || e.ProducerID == s.ProducerID || e.ProducerID == s.PreviousID && e.Epoch >= lastEpoch
}

// check is what adding and verifying have in common.
func (s State) check(producerID int64, epoch int16) error {
	switch {
	case s.ProducerID != producerID:
		return kerr.InvalidProducerIDMapping
	case s.Epoch != epoch:
		return kerr.ProducerFenced
	case s.prepared():
		return kerr.ConcurrentTransactions
	}
	return nil
}

// add puts partitions and groups into the transaction, and begins it if need
// be. changed is false if all of them were in it. bumps says that the client's EndTxn changes the epoch.
func (s State) add(producerID int64, epoch int16, partitions []metastore.TxnPartition, groups []string, bumps bool, now int64) (n State, changed bool, err error) {
	if err := s.check(producerID, epoch); err != nil {
		return s, false, err
	}
	if s.Phase == ongoing && s.hasAll(partitions, groups) {
		return s, false, nil
	}
	n = s.next(ongoing, now)
	n.Bumps = bumps
	if s.Phase != ongoing {
		n.Start, n.Partitions, n.Groups = now, nil, nil
	}
	n.Partitions = union(n.Partitions, partitions, comparePartitions)
	n.Groups = union(n.Groups, groups, cmp.Compare[string])
	return n, true, nil
}

func (s State) has(p metastore.TxnPartition) bool {
	_, ok := slices.BinarySearchFunc(s.Partitions, p, comparePartitions)
	return ok
}

func (s State) hasGroup(group string) bool {
	_, ok := slices.BinarySearch(s.Groups, group)
	return ok
}

func (s State) hasAll(partitions []metastore.TxnPartition, groups []string) bool {
	for _, p := range partitions {
		if !s.has(p) {
			return false
		}
	}
	for _, g := range groups {
		if !s.hasGroup(g) {
			return false
		}
	}
	return true
}

func comparePartitions(a, b metastore.TxnPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), slices.Compare(a.TopicID[:], b.TopicID[:]))
}

// union is both, in order and each once; a is in order.
func union[T any](a, b []T, compare func(T, T) int) []T {
	all := slices.Concat(a, b)
	slices.SortFunc(all, compare)
	return slices.CompactFunc(all, func(x, y T) bool { return compare(x, y) == 0 })
}

// An ending is what a client asks EndTxn for.
type ending struct {
	ProducerID int64
	Epoch      int16
	Commit     bool
	Bumps      bool // v5: the epoch changes with the end (KIP-890)
}

// end decides the outcome of a transaction. repeat says that the end was made before, and s is its outcome.
// Errors: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE, errNeedsID.
func (s State) end(e ending, fresh, now int64) (n State, repeat bool, err error) {
	if !e.Bumps {
		return s.endPlain(e, now)
	}
	retryOverflow := s.PreviousID == e.ProducerID && e.Epoch == lastEpoch && s.Epoch == 0
	retry := int32(s.Epoch) == int32(e.Epoch)+1 || retryOverflow
	if s.ProducerID != e.ProducerID && !retryOverflow {
		return s, false, kerr.InvalidProducerIDMapping
	}
	valid := e.Epoch == s.Epoch
	switch s.Phase {
	case prepareCommit, prepareAbort:
		valid = int32(s.Epoch) == int32(e.Epoch)+1
	case completeCommit, completeAbort:
		valid = valid || retry
	}
	if !valid {
		return s, false, kerr.ProducerFenced
	}
	same := e.Commit == (s.Phase == prepareCommit || s.Phase == completeCommit)
	switch {
	case s.Phase == ongoing:
		n, err = s.prepare(e.Commit, true, fresh, now)
		return n, false, err
	case s.prepared() && same:
		return s, false, kerr.ConcurrentTransactions
	case s.prepared(), s.Phase != empty && retry && !same, e.Commit && !retry:
		return s, false, kerr.InvalidTxnState
	case s.Phase != empty && retry:
		return s, true, nil
	}
	// An abort of nothing: it has a transaction's states, and changes the epoch.
	n, err = s.prepare(false, true, fresh, now)
	n.Start = now
	return n, false, err
}

// endPlain is EndTxn up to v4, which leaves the epoch as it is.
func (s State) endPlain(e ending, now int64) (n State, repeat bool, err error) {
	same := e.Commit == (s.Phase == prepareCommit || s.Phase == completeCommit)
	switch {
	case s.ProducerID != e.ProducerID:
		return s, false, kerr.InvalidProducerIDMapping
	case s.Epoch != e.Epoch:
		return s, false, kerr.ProducerFenced
	case s.Phase == ongoing:
		n, err = s.prepare(e.Commit, false, noID, now)
		return n, false, err
	case s.Phase == empty || !same:
		return s, false, kerr.InvalidTxnState
	case s.prepared():
		return s, false, kerr.ConcurrentTransactions
	}
	return s, true, nil
}

// fence aborts an ongoing transaction for another producer's sake, or since its time is over.
func (s State) fence(fresh, now int64) (State, error) { return s.prepare(false, true, fresh, now) }

func (s State) prepare(commit, bumps bool, fresh, now int64) (State, error) {
	phase := prepareAbort
	if commit {
		phase = prepareCommit
	}
	n := s.next(phase, now)
	n.Bumps, n.NextID = bumps, noID
	if !bumps {
		return n, nil
	}
	if s.exhausted() {
		if fresh == noID {
			return s, errNeedsID
		}
		n.NextID = fresh
	}
	n.LastEpoch = s.Epoch
	if s.Epoch < math.MaxInt16 {
		n.Epoch = s.Epoch + 1
	}
	return n, nil
}

// complete is the state after the markers. What had them is settling: whether
// they are on the disk is known a moment later.
func (s State) complete(now int64) State {
	phase := completeAbort
	if s.Phase == prepareCommit {
		phase = completeCommit
	}
	n := s.next(phase, now)
	if s.Bumps && s.NextID != noID {
		n.ProducerID, n.Epoch = s.NextID, 0
	}
	n.NextID, n.Settling, n.Partitions, n.Groups = noID, s.Partitions, nil, nil
	return n
}

// marker says what the markers of a prepared or completed transaction have.
func (s State) marker() (producerID int64, epoch int16, commit bool) {
	commit = s.Phase == prepareCommit || s.Phase == completeCommit
	if !s.prepared() && s.PreviousID != s.ProducerID { // the producer id has changed with the end
		return s.PreviousID, s.LastEpoch + 1, commit
	}
	return s.ProducerID, s.Epoch, commit
}

// timedOut says whether an ongoing transaction has lasted too long.
func (s State) timedOut(now int64) bool {
	return s.Phase == ongoing && s.Start+int64(s.TimeoutMs) < now
}

// expired says whether nobody has used the id for so many ms.
func (s State) expired(now, after int64) bool {
	return s.Phase != ongoing && !s.prepared() && s.Updated <= now-after
}
