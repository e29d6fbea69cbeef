package topic

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// Grow adds partitions up to n, durably. It never shrinks: INVALID_PARTITIONS,
// with Kafka's text (ReplicationControlManager.createPartitions). UNKNOWN_TOPIC_OR_PARTITION if the topic was
// deleted meanwhile. The logs that are open stay so.
func (r *Registry) Grow(ctx context.Context, t *Topic, n int32) error {
	release, err := r.reserve(ctx, []string{t.name})
	if err != nil {
		return timedOut(err)
	}
	defer release()
	t, ok := r.LookupID(t.id) // as it is now
	switch {
	case !ok:
		return kerr.UnknownTopicOrPartition
	case n == t.partitions:
		return kafka.Errorf(kerr.InvalidPartitions, "Topic already has %d partition(s).", n)
	case n < t.partitions:
		return kafka.Errorf(kerr.InvalidPartitions, "The topic %s currently has %d partition(s); %d would not be an increase.", t.name, t.partitions, n)
	}
	row := t.row()
	row.Partitions = n
	err = r.o.Store.Update(ctx, func(tx *metastore.Tx) error { return tx.PutTopic(row) })
	if err != nil {
		return timedOut(err)
	}
	r.publish([]*Topic{r.newTopic(row, t.slots)}, nil)
	return nil
}
