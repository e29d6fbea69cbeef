package producer

import (
	"fmt"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// An Aborted is a transaction that a marker has aborted, and that had records.
type Aborted struct {
	ProducerID int64
	First      int64 // offset of its first batch
	Last       int64 // offset of the marker
	LastStable int64 // the last stable offset after it (ProducerStateManager.lastStableOffset)
}

// Update takes in a batch that the log holds: one just appended, or one read
// back by recovery, which is not judged again. Batches come in the order of their offsets. Of a data batch the
// header is enough; a control batch must be whole, and the error says that it can't be read.
// A transaction that the batch has aborted is returned: it goes into the transaction index.
func (s *State) Update(b record.Batch) (*Aborted, error) {
	id := b.ProducerID()
	if id < 0 {
		return nil, nil
	}
	if b.Control() {
		return s.updateMarker(id, b)
	}
	e := s.entry(id)
	e.setEpoch(b.ProducerEpoch())
	e.push(Batch{LastSequence: b.LastSequence(), LastOffsetDelta: b.LastOffsetDelta(), LastOffset: b.LastOffset(), Timestamp: b.MaxTimestamp()})
	e.lastTimestamp = b.MaxTimestamp()
	if b.Transactional() && e.txnFirst == noOffset {
		s.setOpen(id, e, b.BaseOffset())
	}
	return nil, nil
}

// updateMarker ends a transaction (ProducerAppendInfo.appendEndTxnMarker). A
// commit and an abort end it alike for the producer. A control batch that
// compaction has emptied says nothing any more.
func (s *State) updateMarker(id int64, b record.Batch) (*Aborted, error) {
	if b.Count() == 0 {
		return nil, nil
	}
	m, err := b.Marker()
	if err != nil {
		return nil, fmt.Errorf("read the control batch at offset %d: %w", b.BaseOffset(), err)
	}
	e := s.entry(id)
	first := e.txnFirst
	e.setEpoch(b.ProducerEpoch())
	e.coordinatorEpoch = m.CoordinatorEpoch
	e.lastTimestamp = b.MaxTimestamp() // a marker is alone in its batch
	s.setClosed(id, e)
	if m.Type != record.Abort || first == noOffset {
		return nil, nil
	}
	a := &Aborted{ProducerID: id, First: first, Last: b.LastOffset(), LastStable: b.LastOffset() + 1}
	if unstable, open := s.FirstUnstable(); open {
		a.LastStable = unstable
	}
	return a, nil
}

func (s *State) entry(id int64) *entry {
	e, ok := s.producers[id]
	if !ok {
		if s.producers == nil {
			s.producers = make(map[int64]*entry)
		}
		e = newEntry()
		s.producers[id] = e
	}
	return e
}
