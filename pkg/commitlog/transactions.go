package commitlog

import (
	"fmt"

	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// AppendVerified is Append for a transactional batch that the coordinator
// vouches for (KIP-890): the partition is durably in the producer's transaction.
func (l *Log) AppendVerified(b record.Batch, verified producer.Verified) (Appended, error) {
	return l.append(b, verified)
}

// Unvouched says whether the coordinator has to be asked before a transactional
// batch of this producer and epoch may be appended: not if it goes on with a
// transaction that is open here. INVALID_PRODUCER_EPOCH: the epoch is older
// than the last seen.
func (l *Log) Unvouched(producerID int64, epoch int16) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ask, err := l.producers.Unvouched(producerID, epoch)
	if err != nil {
		err = fmt.Errorf("%s: %w", l.name, err)
	}
	return ask, err
}

// A Marker ends a producer's transaction on a partition.
type Marker struct {
	ProducerID       int64
	Epoch            int16
	Commit           bool
	CoordinatorEpoch int32
	// Bumped says that Epoch is one above the transaction's (transaction.version 2).
	Bumped bool
	// Repeat says that the marker may be in the log already: the coordinator was
	// killed between the markers and the end of the transaction. Then it is not appended a second time.
	Repeat bool
}

// AppendMarker appends a control batch that commits or aborts the open
// transaction of a producer (ProducerAppendInfo.appendEndTxnMarker). Without an open one it
// is appended as well, as Kafka does: it fences the epochs before its own. The
// last stable offset moves, and the watchers are woken. The caller awaits the flush up to
// Appended.End; of a Repeat that is in the log already that is the end of the log.
//
// INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED: another came before it. KAFKA_STORAGE_ERROR: the disk.
func (l *Log) AppendMarker(m Marker) (Appended, error) {
	kind := record.Abort
	if m.Commit {
		kind = record.Commit
	}
	now := l.o.Clock.Now().UnixMilli()
	b, err := record.NewMarker(record.Marker{Type: kind, CoordinatorEpoch: m.CoordinatorEpoch}, m.ProducerID, m.Epoch, now)
	if err != nil {
		return Appended{}, fmt.Errorf("%s: %w", l.name, err)
	}
	a, flush, err := l.appendMarker(b, m, now)
	return l.appended(a, len(b), flush, err)
}

func (l *Log) appendMarker(b record.Batch, m Marker, now int64) (a Appended, flush bool, err error) {
	cfg := l.config.Load()
	judged := producer.Marker{ProducerID: m.ProducerID, Epoch: m.Epoch, CoordinatorEpoch: m.CoordinatorEpoch, Bumped: m.Bumped}
	l.mu.Lock()
	defer l.mu.Unlock()
	for ready := false; !ready; {
		// All is looked at anew after a wait, during which the lock was free.
		if err := l.writableLocked(); err != nil {
			return Appended{}, false, err
		}
		if m.Repeat && l.producers.Ended(judged) {
			at := l.marks.load()
			return Appended{BaseOffset: -1, LogAppendTime: record.NoTimestamp, LogStart: at.LogStart, Duplicate: true, End: at.End}, false, nil
		}
		if err := l.producers.CheckMarker(judged); err != nil {
			return Appended{}, false, fmt.Errorf("%s: %w", l.name, err)
		}
		if ready, err = l.makeRoomLocked(b, now, now, cfg); err != nil {
			return Appended{}, false, err
		}
	}
	appendTime := record.NoTimestamp
	if cfg.LogAppendTime {
		appendTime = now
	}
	return l.storeLocked(b, record.Verdict{MaxTimestamp: now}, appendTime, cfg)
}

// OpenTransaction is the epoch and the first offset of a producer's open
// transaction on this partition; ok is false if it has none.
func (l *Log) OpenTransaction(producerID int64) (epoch int16, first int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.producers.Open(producerID)
}

// Producers are the idempotent and transactional producers that are known, by id, for DescribeProducers.
func (l *Log) Producers() []producer.Producer {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]producer.Producer, 0, l.producers.Len())
	for _, id := range l.producers.IDs() {
		if p, ok := l.producers.Lookup(id); ok {
			all = append(all, p)
		}
	}
	return all
}
