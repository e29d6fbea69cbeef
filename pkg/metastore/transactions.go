package metastore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

// A TxnPhase is a state of a transactional id, numbered as Kafka does (TransactionState).
type TxnPhase uint8

// The phases. Kafka's Dead and PrepareEpochFence are never stored.
const (
	TxnEmpty          TxnPhase = 0
	TxnOngoing        TxnPhase = 1
	TxnPrepareCommit  TxnPhase = 2
	TxnPrepareAbort   TxnPhase = 3
	TxnCompleteCommit TxnPhase = 4
	TxnCompleteAbort  TxnPhase = 5
)

var txnPhases = [...]string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"}

// String is the name that ListTransactions has for it.
func (p TxnPhase) String() string {
	if int(p) < len(txnPhases) {
		return txnPhases[p]
	}
	return fmt.Sprintf("TxnPhase(%d)", uint8(p))
}

// A TxnPartition is a partition in a transaction. The id keeps the markers from a topic that has the name later.
type TxnPartition struct {
	Topic     string
	TopicID   kafka.TopicID
	Partition int32
}

// A Transaction is one row of the transactions: what is known of a transactional id. Times are ms.
type Transaction struct {
	ID         string
	ProducerID int64
	PreviousID int64 // the producer id before the last change, -1 for none
	NextID     int64 // the producer id after the end under way, -1 for the same
	Epoch      int16
	LastEpoch  int16 // the epoch before, that a repeat of a request may have; -1 for none
	TimeoutMs  int32
	Phase      TxnPhase
	Bumps      bool  // the end changes the epoch (transaction.version 2)
	Start      int64 // -1 for none
	Updated    int64
	Partitions []TxnPartition // by topic and partition
	Groups     []string       // that offsets are staged for, in order
	// Settling are the partitions of a completed transaction whose markers may not be on the disk.
	Settling []TxnPartition
}

// Transactions iterates over all of them, by transactional id. They must not be changed within the loop.
func (t *Tx) Transactions() iter.Seq2[Transaction, error] {
	return func(yield func(Transaction, error) bool) {
		c := t.bolt.Bucket(bucketTransactions).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if !yield(decodeTransaction(k, v)) {
				return
			}
		}
	}
}

// MaxTransactionalID is how long a transactional id may be in bytes: bbolt bounds a key to 32 KiB.
const MaxTransactionalID = 16 << 10

// PutTransaction stores a row. Its id has 1 to MaxTransactionalID bytes.
func (t *Tx) PutTransaction(x *Transaction) error {
	return t.put(bucketTransactions, []byte(x.ID), encodeTransaction(x))
}

// DropTransaction removes a row.
func (t *Tx) DropTransaction(id string) error { return t.drop(bucketTransactions, []byte(id)) }

// encodeTransaction is a row of the bucket transactions, numbers big endian; a text is a uvarint length and its bytes:
//
//	uint8 version | uint8 phase | uint8 1 if the end bumps the epoch
//	int64 producer id | int64 previous id | int64 next id | int16 epoch | int16 last epoch
//	int32 timeout ms | int64 start ms | int64 updated ms
//	uvarint partitions { text topic | 16 topic id | uvarint partition } ...
//	uvarint groups { text } ... | uvarint settling partitions { as above } ...
func encodeTransaction(x *Transaction) []byte {
	b := append(make([]byte, 0, txnFixed+48*(len(x.Partitions)+len(x.Settling))), rowVersion, byte(x.Phase), 0)
	if x.Bumps {
		b[2] = 1
	}
	for _, n := range []int64{x.ProducerID, x.PreviousID, x.NextID} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(x.Epoch))
	b = binary.BigEndian.AppendUint16(b, uint16(x.LastEpoch))
	b = binary.BigEndian.AppendUint32(b, uint32(x.TimeoutMs))
	b = binary.BigEndian.AppendUint64(b, uint64(x.Start))
	b = binary.BigEndian.AppendUint64(b, uint64(x.Updated))
	b = appendTxnPartitions(b, x.Partitions)
	b = binary.AppendUvarint(b, uint64(len(x.Groups)))
	for _, g := range x.Groups {
		b = appendText(b, g)
	}
	return appendTxnPartitions(b, x.Settling)
}

const txnFixed = 3 + 3*8 + 2*2 + 4 + 2*8

func appendTxnPartitions(b []byte, all []TxnPartition) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for i := range all {
		b = append(appendText(b, all[i].Topic), all[i].TopicID[:]...)
		b = binary.AppendUvarint(b, uint64(all[i].Partition))
	}
	return b
}

func decodeTransaction(key, row []byte) (Transaction, error) {
	x := Transaction{ID: string(key)}
	if err := x.decode(row); err != nil {
		return x, fmt.Errorf("meta.db: transactional id %q: %w", x.ID, err)
	}
	return x, nil
}

func (x *Transaction) decode(row []byte) error {
	switch {
	case len(row) < txnFixed || row[2] > 1:
		return errRow
	case row[0] != rowVersion:
		return fmt.Errorf("row version %d is not known", row[0])
	case int(row[1]) >= len(txnPhases):
		return fmt.Errorf("phase %d is not known", row[1])
	}
	x.Phase, x.Bumps = TxnPhase(row[1]), row[2] == 1
	for i, n := range []*int64{&x.ProducerID, &x.PreviousID, &x.NextID} {
		*n = int64(binary.BigEndian.Uint64(row[3+8*i:]))
	}
	x.Epoch, x.LastEpoch = int16(binary.BigEndian.Uint16(row[27:])), int16(binary.BigEndian.Uint16(row[29:]))
	x.TimeoutMs = int32(binary.BigEndian.Uint32(row[31:]))
	x.Start, x.Updated = int64(binary.BigEndian.Uint64(row[35:])), int64(binary.BigEndian.Uint64(row[43:]))
	r := rowReader{b: row[txnFixed:]}
	x.Partitions = r.txnPartitions()
	for range r.count() {
		x.Groups = append(x.Groups, r.text())
	}
	x.Settling = r.txnPartitions()
	if r.bad || len(r.b) > 0 {
		return errRow
	}
	return nil
}

func (r *rowReader) txnPartitions() (all []TxnPartition) {
	for range r.count() {
		p := TxnPartition{Topic: r.text()}
		if len(r.b) < len(p.TopicID) {
			r.fail()
			return nil
		}
		r.b = r.b[copy(p.TopicID[:], r.b):]
		p.Partition = int32(r.uvarint())
		if r.bad {
			return nil
		}
		all = append(all, p)
	}
	return all
}

// StageOffset stores an offset that a producer's transaction commits once it
// is committed itself. It takes the place of one that the producer has staged
// before. It counts as staged no earlier than what is committed, and later
// than what others have staged, whatever the clock says: of two transactions
// the one that has staged last sets the offset (OffsetMetadataManager.replayEndTransactionMarker).
func (t *Tx) StageOffset(group string, producerID int64, o Offset) error {
	now, ok, err := t.Offset(group, o.Topic, o.Partition)
	if err != nil {
		return err
	}
	if ok && now.Committed.After(o.Committed) {
		o.Committed = now.Committed
	}
	own := stagedKey(group, o.Topic, o.Partition, producerID)
	if err := t.afterStaged(group, &o, own); err != nil {
		return err
	}
	return t.put(bucketStaged, own, encodeOffset(o))
}

// CommitOffset is PutOffset of a commit without a transaction: what is staged
// for the partition already does not take its place, whatever the clock said then.
func (t *Tx) CommitOffset(group string, o Offset) error {
	if err := t.afterStaged(group, &o, nil); err != nil {
		return err
	}
	return t.PutOffset(group, o)
}

// afterStaged has an offset count as later than all that are staged for its
// partition, but for the row of a key.
func (t *Tx) afterStaged(group string, o *Offset, but []byte) error {
	for _, k := range t.keys(bucketStaged, offsetKey(group, o.Topic, o.Partition)) {
		if bytes.Equal(k, but) {
			continue
		}
		_, staged, err := decodeOffset(k[:len(k)-producerIDSize], t.get(bucketStaged, k))
		if err != nil {
			return err
		}
		// In milliseconds: a row keeps nothing of the rest, and both may be within the same one.
		if o.Committed.UnixMilli() <= staged.Committed.UnixMilli() {
			o.Committed = staged.Committed.Add(time.Millisecond)
		}
	}
	return nil
}

// Staged says whether any transaction has staged an offset of a partition.
func (t *Tx) Staged(group, topic string, partition int32) bool {
	return t.hasPrefix(bucketStaged, offsetKey(group, topic, partition))
}

// HasStaged says whether any has been staged for a group.
func (t *Tx) HasStaged(group string) bool { return t.hasPrefix(bucketStaged, groupKey(group)) }

func (t *Tx) hasPrefix(bucket, prefix []byte) bool {
	k, _ := t.bolt.Bucket(bucket).Cursor().Seek(prefix)
	return bytes.HasPrefix(k, prefix)
}

// producerIDSize is how many bytes end the key of a staged offset.
const producerIDSize = 8

// DropStaged removes what any transaction has staged for a partition.
func (t *Tx) DropStaged(group, topic string, partition int32) error {
	for _, k := range t.keys(bucketStaged, offsetKey(group, topic, partition)) {
		if err := t.drop(bucketStaged, k); err != nil {
			return err
		}
	}
	return nil
}

// EndStaged makes what a producer has staged for a group its committed
// offsets, or drops it. Dropped are also offsets of topics that are gone, and
// those of partitions for which the group has committed another one since.
func (t *Tx) EndStaged(group string, producerID int64, commit bool) error {
	for _, k := range t.keys(bucketStaged, groupKey(group)) {
		if at := len(k) - producerIDSize; int64(binary.BigEndian.Uint64(k[at:])) != producerID {
			continue
		}
		if commit {
			if err := t.commitStaged(group, k); err != nil {
				return err
			}
		}
		if err := t.drop(bucketStaged, k); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) commitStaged(group string, key []byte) error {
	_, o, err := decodeOffset(key[:len(key)-producerIDSize], t.get(bucketStaged, key))
	if err != nil {
		return err
	}
	if there, err := t.HasTopic(o.Topic, o.TopicID); err != nil || !there {
		return err
	}
	if now, ok, err := t.Offset(group, o.Topic, o.Partition); err != nil || ok && now.TopicID == o.TopicID && now.Committed.After(o.Committed) {
		return err
	}
	return t.PutOffset(group, o)
}

// stagedKey is an offset's key, and the producer id.
func stagedKey(group, topic string, partition int32, producerID int64) []byte {
	return binary.BigEndian.AppendUint64(offsetKey(group, topic, partition), uint64(producerID))
}
