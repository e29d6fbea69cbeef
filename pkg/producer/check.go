package producer

import (
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// Verified is whether the coordinator vouches for a transactional batch (KIP-890).
type Verified uint8

// What the coordinator has said of a batch.
const (
	Unverified     Verified = iota // it was not asked: the batch may only go on with a transaction that is open here
	VerifiedInTxn                  // the partition had been added to the transaction (Produce up to v11)
	AddedByProduce                 // the Produce itself has added it (v12, transaction.version 2)
)

// Check judges a client's data batch before it is stored; it changes nothing.
// A repeat of a cached batch is returned as such. Errors:
// INVALID_PRODUCER_EPOCH (an older epoch than the last seen),
// OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE.
//
// The rules and their order are those of UnifiedLog.analyzeAndValidateProducerState
// and ProducerAppendInfo. A producer of which nothing is known may begin with
// any sequence, but not with transaction.version 2, where it begins anew with each epoch.
func (s *State) Check(b record.Batch, v Verified) (repeat Batch, isRepeat bool, err error) {
	id := b.ProducerID()
	if id < 0 {
		return Batch{}, false, nil
	}
	e := s.producers[id]
	if e != nil {
		if r, ok := e.find(b); ok {
			return r, true, nil
		}
	}
	if b.Transactional() && v == Unverified && !e.inTransaction(b.ProducerEpoch()) {
		return Batch{}, false, fmt.Errorf("%w: producer %d: the batch is not part of an open transaction", kerr.InvalidTxnState, id)
	}
	last := noEpoch // of a producer of which nothing is known
	if e != nil {
		last = e.epoch
	}
	if epoch := b.ProducerEpoch(); epoch < last {
		return Batch{}, false, fmt.Errorf("%w: producer %d: epoch %d is older than %d", kerr.InvalidProducerEpoch, id, epoch, last)
	}
	if v == AddedByProduce && b.BaseSequence() != 0 && (e == nil || e.count == 0) {
		return Batch{}, false, fmt.Errorf("%w: producer %d epoch %d: its first sequence is %d",
			kerr.OutOfOrderSequenceNumber, id, b.ProducerEpoch(), b.BaseSequence())
	}
	if e == nil {
		return Batch{}, false, nil
	}
	if !e.inOrder(b) {
		return Batch{}, false, fmt.Errorf("%w: producer %d epoch %d: sequence %d after %d",
			kerr.OutOfOrderSequenceNumber, id, b.ProducerEpoch(), b.BaseSequence(), e.lastSequence())
	}
	if e.txnFirst != noOffset && !b.Transactional() {
		return Batch{}, false, fmt.Errorf("%w: producer %d: a batch outside its open transaction", kerr.InvalidTxnState, id)
	}
	return Batch{}, false, nil
}

// inTransaction says whether a transaction of this epoch is open. e may be nil.
func (e *entry) inTransaction(epoch int16) bool {
	return e != nil && e.txnFirst != noOffset && e.epoch == epoch
}

// Unvouched says whether the coordinator has to be asked before a transactional
// batch of this producer and epoch may be appended: not if it goes on with a
// transaction that is open here. INVALID_PRODUCER_EPOCH: the epoch is older
// than the last seen (UnifiedLog.maybeStartTransactionVerification).
func (s *State) Unvouched(id int64, epoch int16) (bool, error) {
	e := s.producers[id]
	if e != nil && epoch < e.epoch {
		return false, fmt.Errorf("%w: producer %d: epoch %d is older than %d", kerr.InvalidProducerEpoch, id, epoch, e.epoch)
	}
	return !e.inTransaction(epoch), nil
}

// find looks for a cached batch with the epoch and sequences of b.
func (e *entry) find(b record.Batch) (Batch, bool) {
	if e.epoch != b.ProducerEpoch() {
		return Batch{}, false
	}
	first, last := b.BaseSequence(), b.LastSequence()
	for i := range e.count {
		if c := e.at(i); c.LastSequence == last && c.FirstSequence() == first {
			return c, true
		}
	}
	return Batch{}, false
}

// inOrder says whether the batch's first sequence may follow.
func (e *entry) inOrder(b record.Batch) bool {
	next := b.BaseSequence()
	if e.epoch == noEpoch {
		return true
	}
	if e.epoch != b.ProducerEpoch() {
		return next == 0 // a new epoch begins at 0
	}
	last := e.lastSequence() // NoSequence after a marker of this epoch: then 0 follows, too
	return int64(next) == int64(last)+1 || next == 0 && last == math.MaxInt32
}
