package topic

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// A Spec asks for a topic, as CreateTopics does.
type Spec struct {
	Name              string
	Partitions        int32 // -1: num.partitions
	ReplicationFactor int16 // -1: the default
	Assignments       []Assignment
	Configs           []ConfigEntry
}

// An Assignment is a manual replica assignment.
type Assignment struct {
	Partition int32
	Brokers   []int32
}

// A ConfigEntry is one config as a client gave it; Value nil is null.
type ConfigEntry struct {
	Name  string
	Value *string
}

// Created is the outcome of one Spec: Err, or the topic as it is (or would be).
type Created struct {
	Err   error
	Topic *Topic
}

// Create makes topics, each on its own: the outcomes are in the order of the
// specs (ControllerApis.createTopics, ReplicationControlManager.createTopics). When it returns, appends are taken and
// the rows are durable (FX-21), all in one commit. A name that is there more
// than once is refused each time. Errors that the client sees have Kafka's
// text; KAFKA_STORAGE_ERROR if the commit failed. With validateOnly nothing is made, and the
// topics returned have no logs.
func (r *Registry) Create(ctx context.Context, specs []Spec, validateOnly bool) []Created {
	outcomes := make([]Created, len(specs))
	if err := r.checkRequest(specs); err != nil {
		for i := range outcomes {
			outcomes[i].Err = err
		}
		return outcomes
	}
	names := markRepeated(specs, outcomes)
	release, err := r.reserve(ctx, names)
	if err != nil {
		failUndecided(outcomes, timedOut(err))
		return outcomes
	}
	defer release()

	for i := range specs {
		if o := &outcomes[i]; o.Err == nil {
			o.Topic, o.Err = r.plan(ctx, &specs[i])
		}
	}
	if validateOnly {
		for _, o := range outcomes {
			if o.Topic != nil {
				o.Topic.endAll(kerr.UnknownTopicOrPartition)
			}
		}
		return outcomes
	}
	r.commitCreated(ctx, outcomes)
	return outcomes
}

// commitCreated stores what was planned, and then publishes it: nobody sees a
// topic that a power cut could take back.
func (r *Registry) commitCreated(ctx context.Context, outcomes []Created) {
	var made []*Topic
	for _, o := range outcomes {
		if o.Err == nil {
			made = append(made, o.Topic)
		}
	}
	if len(made) == 0 {
		return
	}
	err := r.o.Store.Update(ctx, func(tx *metastore.Tx) error {
		for _, t := range made {
			if err := tx.PutTopic(t.row()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		failUndecided(outcomes, timedOut(err))
		return
	}
	r.publish(made, nil)
}

// markRepeated refuses the names that are there more than once, and returns the others.
func markRepeated(specs []Spec, outcomes []Created) (names []string) {
	count := make(map[string]int, len(specs))
	for i := range specs {
		count[specs[i].Name]++
	}
	for i := range specs {
		if count[specs[i].Name] > 1 {
			outcomes[i].Err = kafka.Errorf(kerr.InvalidRequest, "Duplicate topic name.")
			continue
		}
		names = append(names, specs[i].Name)
	}
	return names
}

func failUndecided(outcomes []Created, err error) {
	for i := range outcomes {
		if outcomes[i].Err == nil {
			outcomes[i] = Created{Err: err}
		}
	}
}

// timedOut gives the end of a request's context the code of a request that took too long.
func timedOut(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", kerr.RequestTimedOut, err)
	}
	return err
}

// Ensure is auto-creation: the topic named, made with the defaults if need be.
// Many that ask for one name at once get the same topic.
func (r *Registry) Ensure(ctx context.Context, name string) (*Topic, error) {
	for {
		if t, ok := r.Lookup(name); ok {
			return t, nil
		}
		made := r.Create(ctx, []Spec{{Name: name, Partitions: -1, ReplicationFactor: -1}}, false)[0]
		if !errors.Is(made.Err, kerr.TopicAlreadyExists) {
			return made.Topic, made.Err
		}
	}
}
