// Package producer is the state of one partition's idempotent and
// transactional producers (KIP-98, ProducerStateManager): which batches were
// the last of each, so that a repeat is known and a gap refused, and which
// transactions are open. It is pure: no disk, no clock, no lock.
package producer

import (
	"slices"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// CachedBatches is how many of a producer's last batches are known, so that a
// repeat of one gets its original offset (ProducerStateEntry). Clients keep at
// most as many requests in flight.
const CachedBatches = 5

const (
	noEpoch  int16 = -1 // of an entry that no batch has set
	noOffset int64 = -1 // no transaction is open
)

// A Batch is a batch of a producer that the log holds.
type Batch struct {
	LastSequence    int32
	LastOffsetDelta int32
	LastOffset      int64
	Timestamp       int64 // max timestamp, ms
}

// BaseOffset is the offset of the batch's first record.
func (b Batch) BaseOffset() int64 { return b.LastOffset - int64(b.LastOffsetDelta) }

// FirstSequence is the sequence of the batch's first record.
func (b Batch) FirstSequence() int32 { return record.AddSequence(b.LastSequence, -b.LastOffsetDelta) }

// A Producer is what is known of one producer id.
type Producer struct {
	ID               int64
	Epoch            int16
	CoordinatorEpoch int32 // of the last transaction marker, -1 if there was none
	LastTimestamp    int64 // max timestamp of its last batch or marker, ms
	TxnFirstOffset   int64 // first offset of its open transaction, -1 if none
	Batches          []Batch
}

// An entry is a Producer as it is kept: no pointers, 152 bytes.
type entry struct {
	lastTimestamp    int64
	txnFirst         int64
	coordinatorEpoch int32
	epoch            int16
	oldest           uint8 // index of the oldest batch in the ring
	count            uint8
	batches          [CachedBatches]Batch
}

func newEntry() *entry {
	return &entry{lastTimestamp: record.NoTimestamp, txnFirst: noOffset, coordinatorEpoch: -1, epoch: noEpoch}
}

// at is the i-th oldest batch.
func (e *entry) at(i uint8) Batch { return e.batches[(e.oldest+i)%CachedBatches] }

// lastSequence is that of the last batch, or NoSequence.
func (e *entry) lastSequence() int32 {
	if e.count == 0 {
		return record.NoSequence
	}
	return e.at(e.count - 1).LastSequence
}

func (e *entry) push(b Batch) {
	if e.count == CachedBatches {
		e.oldest = (e.oldest + 1) % CachedBatches
		e.count--
	}
	e.batches[(e.oldest+e.count)%CachedBatches] = b
	e.count++
}

// setEpoch forgets the batches of another epoch: its sequences start anew.
func (e *entry) setEpoch(epoch int16) {
	if e.epoch != epoch {
		e.epoch, e.oldest, e.count = epoch, 0, 0
	}
}

// State is the producers of one partition. The zero value is empty. It is not
// safe for concurrent use: the log's lock guards it.
type State struct {
	producers map[int64]*entry
	open      []openTxn // by first offset, ascending
}

type openTxn struct{ first, producerID int64 }

// Len is the number of producers that are known.
func (s *State) Len() int { return len(s.producers) }

// FirstUnstable is the first offset of the earliest open transaction, below
// which the last stable offset lies; ok is false if none is open.
func (s *State) FirstUnstable() (offset int64, ok bool) {
	if len(s.open) == 0 {
		return noOffset, false
	}
	return s.open[0].first, true
}

// Lookup is what is known of one producer.
func (s *State) Lookup(id int64) (Producer, bool) {
	e, ok := s.producers[id]
	if !ok {
		return Producer{}, false
	}
	p := Producer{ID: id, Epoch: e.epoch, CoordinatorEpoch: e.coordinatorEpoch, LastTimestamp: e.lastTimestamp, TxnFirstOffset: e.txnFirst}
	for i := range e.count {
		p.Batches = append(p.Batches, e.at(i))
	}
	return p, true
}

// IDs lists the producers, ascending.
func (s *State) IDs() []int64 {
	ids := make([]int64, 0, len(s.producers))
	for id := range s.producers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Expire forgets the producers that have no open transaction and whose last
// timestamp is at least after ms before now (producer.id.expiration.ms), and
// returns how many. Like Kafka it goes by record time; a log that is opened does not call it at once,
// so that a repeat over a restart is known whatever the records' time.
func (s *State) Expire(nowMs, afterMs int64) int {
	before := len(s.producers)
	for id, e := range s.producers {
		if e.txnFirst == noOffset && nowMs-e.lastTimestamp >= afterMs {
			delete(s.producers, id)
		}
	}
	return before - len(s.producers)
}

// setOpen and setClosed keep an entry and the list of open transactions in step.
func (s *State) setOpen(id int64, e *entry, first int64) {
	e.txnFirst = first
	i, _ := slices.BinarySearchFunc(s.open, first, func(t openTxn, first int64) int {
		return int(max(-1, min(1, t.first-first)))
	})
	s.open = slices.Insert(s.open, i, openTxn{first, id})
}

func (s *State) setClosed(id int64, e *entry) {
	if e.txnFirst == noOffset {
		return
	}
	e.txnFirst = noOffset
	s.open = slices.DeleteFunc(s.open, func(t openTxn) bool { return t.producerID == id })
}
