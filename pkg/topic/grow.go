package topic

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// A Growth asks for a topic to have more partitions, as CreatePartitions does.
type Growth struct {
	Name       string
	Partitions int32 // in all
	// Assignments are the brokers of each new partition; nil leaves them to the broker.
	Assignments [][]int32
}

// Grow adds partitions up to n, durably. It never shrinks: INVALID_PARTITIONS,
// with Kafka's text. UNKNOWN_TOPIC_OR_PARTITION if the topic was
// deleted meanwhile. The logs that are open stay so.
func (r *Registry) Grow(ctx context.Context, t *Topic, n int32) error {
	release, err := r.reserve(ctx, []string{t.name})
	if err != nil {
		return timedOut(err)
	}
	defer release()
	t, ok := r.LookupID(t.id) // as it is now
	if !ok {
		return kerr.UnknownTopicOrPartition
	}
	grown, err := r.planGrowth(t, &Growth{Name: t.name, Partitions: n})
	if err != nil {
		return err
	}
	return r.commitGrown(ctx, []*Topic{grown})
}

// GrowAll is Grow for several topics, each named once, in one commit. The
// errors are in the order of the growths, each on its own
// (ReplicationControlManager.createPartitions); INVALID_REPLICA_ASSIGNMENT
// if the assignments do not fit. With validateOnly nothing grows.
func (r *Registry) GrowAll(ctx context.Context, growths []Growth, validateOnly bool) []error {
	errs := make([]error, len(growths))
	names := make([]string, len(growths))
	for i := range growths {
		names[i] = growths[i].Name
	}
	release, err := r.reserve(ctx, names)
	if err != nil {
		failAll(errs, timedOut(err))
		return errs
	}
	defer release()
	var grown []*Topic
	for i := range growths {
		t, ok := r.Lookup(growths[i].Name)
		if !ok {
			errs[i] = kerr.UnknownTopicOrPartition
			continue
		}
		if t, errs[i] = r.planGrowth(t, &growths[i]); errs[i] == nil {
			grown = append(grown, t)
		}
	}
	if validateOnly {
		return errs
	}
	if err := r.commitGrown(ctx, grown); err != nil {
		failAll(errs, err)
	}
	return errs
}

// failAll gives err to everything that has no error of its own.
func failAll(errs []error, err error) {
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
}

// planGrowth checks a growth of a topic, whose name is reserved, and returns the topic as it would be.
func (r *Registry) planGrowth(t *Topic, g *Growth) (*Topic, error) {
	switch n, added := g.Partitions, g.Partitions-t.partitions; {
	case n == t.partitions:
		return nil, kafka.Errorf(kerr.InvalidPartitions, "Topic already has %d partition(s).", n)
	case n < t.partitions:
		return nil, kafka.Errorf(kerr.InvalidPartitions, "The topic %s currently has %d partition(s); %d would not be an increase.", t.name, t.partitions, n)
	case g.Assignments != nil && len(g.Assignments) != int(added):
		return nil, kafka.Errorf(kerr.InvalidReplicaAssignment,
			"Attempted to add %d additional partition(s), but only %d assignment(s) were specified.", added, len(g.Assignments))
	}
	for _, brokers := range g.Assignments {
		if err := r.checkReplicas(brokers); err != nil {
			return nil, err
		}
	}
	row := t.row()
	row.Partitions = g.Partitions
	return r.newTopic(row, t.slots), nil
}

// commitGrown stores topics as they are now, and then publishes them: nobody
// sees a partition that a power cut could take back.
func (r *Registry) commitGrown(ctx context.Context, grown []*Topic) error {
	if len(grown) == 0 {
		return nil
	}
	err := r.o.Store.Update(ctx, func(tx *metastore.Tx) error {
		for _, t := range grown {
			if err := tx.PutTopic(t.row()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return timedOut(err)
	}
	r.publish(grown, nil)
	return nil
}
