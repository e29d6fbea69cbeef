package metastore

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ProducerIDBlock is how many producer ids a broker takes at a time, as Kafka
// does (ProducerIdsBlock): one commit serves a thousand producers, and a crash
// skips at most so many ids.
const ProducerIDBlock = 1000

// ClusterID is the stored cluster id, "" in a new store.
func (t *Tx) ClusterID() string { return string(t.get(bucketMeta, keyClusterID)) }

// PutClusterID stores it.
func (t *Tx) PutClusterID(id string) error { return t.put(bucketMeta, keyClusterID, []byte(id)) }

// NextBrokerEpoch stores and returns the epoch of this start: 0 the first time, then one more at each (ST-57).
func (t *Tx) NextBrokerEpoch() (int32, error) {
	last, err := t.counter(keyBrokerEpoch, 4, -1)
	if err != nil {
		return 0, err
	}
	if last == math.MaxInt32 {
		return 0, fmt.Errorf("meta.db: broker epochs are used up")
	}
	epoch := int32(last) + 1
	return epoch, t.put(bucketMeta, keyBrokerEpoch, binary.BigEndian.AppendUint32(nil, uint32(epoch)))
}

// ReserveProducerIDs stores that n ids are taken, and returns the first (TX-2).
func (t *Tx) ReserveProducerIDs(n int64) (first int64, err error) {
	first, err = t.counter(keyNextProducerID, 8, 0)
	if err != nil {
		return 0, err
	}
	if n < 1 || first > math.MaxInt64-n {
		return 0, fmt.Errorf("meta.db: can't reserve %d producer ids from %d on", n, first)
	}
	return first, t.put(bucketMeta, keyNextProducerID, binary.BigEndian.AppendUint64(nil, uint64(first+n)))
}

// counter reads a number of 4 or 8 bytes, or its value in a new store.
func (t *Tx) counter(key []byte, size int, initial int64) (int64, error) {
	row := t.get(bucketMeta, key)
	switch {
	case row == nil:
		return initial, nil
	case len(row) != size:
		return 0, fmt.Errorf("meta.db: %s: %w", key, errRow)
	case size == 4:
		return int64(int32(binary.BigEndian.Uint32(row))), nil
	}
	return int64(binary.BigEndian.Uint64(row)), nil
}
