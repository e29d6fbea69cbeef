package txn

import (
	"context"

	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// ProducerIDs hands out producer ids, each once, also over a crash (TX-2): a
// block is durably taken before the first of it is handed out, and what is
// left of it at a stop is never used (Kafka's ids jump by 1000 at a restart too).
type ProducerIDs struct {
	store *metastore.Store
	// turn holds the unused part of the block; who has taken it may wait for the disk, and others wait with their contexts.
	turn chan idBlock
}

type idBlock struct{ next, end int64 }

// NewProducerIDs makes the one allocator of a store.
func NewProducerIDs(store *metastore.Store) *ProducerIDs {
	p := &ProducerIDs{store: store, turn: make(chan idBlock, 1)}
	p.turn <- idBlock{}
	return p
}

// Next returns a fresh producer id. It waits for the disk once in a thousand calls.
// KAFKA_STORAGE_ERROR: no block can be reserved.
func (p *ProducerIDs) Next(ctx context.Context) (int64, error) {
	var b idBlock
	select {
	case b = <-p.turn:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { p.turn <- b }()
	if b.next == b.end {
		var first int64
		err := p.store.Update(ctx, func(tx *metastore.Tx) (err error) {
			first, err = tx.ReserveProducerIDs(metastore.ProducerIDBlock)
			return err
		})
		if err != nil {
			return 0, err
		}
		b = idBlock{next: first, end: first + metastore.ProducerIDBlock}
	}
	id := b.next
	b.next++
	return id, nil
}
