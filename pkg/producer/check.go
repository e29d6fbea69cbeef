package producer

import (
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// Check judges a client's data batch before it is stored; it changes nothing.
// A repeat of a cached batch is returned as such. Errors:
// INVALID_PRODUCER_EPOCH (an older epoch than the last seen),
// OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_TXN_STATE. verified says that
// the coordinator vouches for a transactional batch (KIP-890).
//
// The rules and their order are those of UnifiedLog.analyzeAndValidateProducerState
// and ProducerAppendInfo. A producer of which nothing is known may begin with any sequence.
func (s *State) Check(b record.Batch, verified bool) (repeat Batch, isRepeat bool, err error) {
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
	if b.Transactional() && !verified && (e == nil || e.txnFirst == noOffset || e.epoch != b.ProducerEpoch()) {
		return Batch{}, false, fmt.Errorf("%w: producer %d: the batch is not part of an open transaction", kerr.InvalidTxnState, id)
	}
	last := noEpoch // of a producer of which nothing is known
	if e != nil {
		last = e.epoch
	}
	if epoch := b.ProducerEpoch(); epoch < last {
		return Batch{}, false, fmt.Errorf("%w: producer %d: epoch %d is older than %d", kerr.InvalidProducerEpoch, id, epoch, last)
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
