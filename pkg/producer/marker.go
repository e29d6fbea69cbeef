package producer

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A Marker is what is judged of the end of a transaction.
type Marker struct {
	ProducerID       int64
	Epoch            int16
	CoordinatorEpoch int32
	// Bumped says that the coordinator has bumped the epoch before it ends the
	// transaction (transaction.version 2), so that a marker of an epoch which is known here came too late.
	Bumped bool
}

// CheckMarker judges a marker before it is stored; it changes nothing.
// INVALID_PRODUCER_EPOCH: its epoch is too old; TRANSACTION_COORDINATOR_FENCED:
// a coordinator of a later epoch has written a marker already.
//
// The rules are those of ProducerAppendInfo.checkProducerEpoch and
// checkCoordinatorEpoch. A bumped marker of the last epoch is let in where no transaction is open: it is a repeat.
func (s *State) CheckMarker(m Marker) error {
	e := s.producers[m.ProducerID]
	if e == nil {
		return nil
	}
	if m.Epoch < e.epoch || m.Bumped && m.Epoch == e.epoch && e.txnFirst != noOffset {
		return fmt.Errorf("%w: producer %d: a marker of epoch %d, and the last is %d", kerr.InvalidProducerEpoch, m.ProducerID, m.Epoch, e.epoch)
	}
	if m.CoordinatorEpoch < e.coordinatorEpoch {
		return fmt.Errorf("%w: producer %d: a marker of coordinator epoch %d, and the last was %d",
			kerr.TransactionCoordinatorFenced, m.ProducerID, m.CoordinatorEpoch, e.coordinatorEpoch)
	}
	return nil
}

// Ended says whether a marker would change nothing: the producer is known with
// its epoch or a later one, and has no open transaction.
func (s *State) Ended(m Marker) bool {
	e := s.producers[m.ProducerID]
	return e != nil && e.epoch >= m.Epoch && e.txnFirst == noOffset
}

// Open is the epoch and first offset of a producer's open transaction; ok is false if there is none.
func (s *State) Open(id int64) (epoch int16, first int64, ok bool) {
	e := s.producers[id]
	if e == nil || e.txnFirst == noOffset {
		return noEpoch, noOffset, false
	}
	return e.epoch, e.txnFirst, true
}
