package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/control"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// topic is the topic of a name.
func (b *Broker) topic(name string) (*topic.Topic, error) {
	t, ok := b.storage.topics.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("there is no topic %q: %w", name, kerr.UnknownTopicOrPartition)
	}
	return t, nil
}

// compact compacts a topic; where its policy has delete, too, retention acts afterwards (ST-49).
func (b *Broker) compact(ctx context.Context, name string) (control.Compacted, error) {
	t, err := b.topic(name)
	if err != nil {
		return control.Compacted{}, err
	}
	done, err := b.cleaner.CompactTopic(ctx, t)
	if err == nil {
		_, err = b.cleaner.RetainTopic(ctx, t)
	}
	return control.Compacted{Partitions: done.Partitions, Segments: done.Segments, ReclaimedBytes: done.Reclaimed, RemovedRecords: done.Removed}, err
}

// retain has retention act on a topic.
func (b *Broker) retain(ctx context.Context, name string) (control.Retained, error) {
	t, err := b.topic(name)
	if err != nil {
		return control.Retained{}, err
	}
	moved, err := b.cleaner.RetainTopic(ctx, t)
	return control.Retained{Partitions: moved}, err
}

// roll seals the active segments of a topic, so that compaction and retention may have their records.
func (b *Broker) roll(ctx context.Context, name string) (control.Rolled, error) {
	t, err := b.topic(name)
	if err != nil {
		return control.Rolled{}, err
	}
	return control.Rolled{Partitions: int(t.Partitions())}, errors.Join(t.Roll(), ctx.Err())
}
