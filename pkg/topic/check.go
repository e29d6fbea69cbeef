package topic

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

const (
	clusterMetadata = "__cluster_metadata"

	// maxPartitionsPerRequest is ReplicationControlManager's limit.
	maxPartitionsPerRequest = 10000

	// maxConfigValue is the largest length of a config's value (ConfigRecord holds it in a short).
	maxConfigValue = 32767
)

// ValidateName checks a topic name by Kafka's rules: INVALID_TOPIC_EXCEPTION with Kafka's text (Topic.validate).
func ValidateName(name string) error {
	if p := config.TopicNameProblem(name); p != "" {
		return kafka.Errorf(kerr.InvalidTopicException, "Topic name is invalid: %s", p)
	}
	return nil
}

// checkRequest is what refuses a request as a whole.
func (r *Registry) checkRequest(specs []Spec) error {
	total := int64(0)
	for i := range specs {
		switch s := &specs[i]; {
		case len(s.Assignments) > 0:
			total += int64(len(s.Assignments))
		case s.Partitions == -1:
			total += int64(r.o.Settings.NumPartitions)
		default:
			total += max(0, int64(s.Partitions))
		}
	}
	if total > maxPartitionsPerRequest {
		return kafka.Errorf(kerr.PolicyViolation, "Excessively large number of partitions per request.")
	}
	return nil
}

// plan checks a spec whose name is reserved, in Kafka's order, and returns the
// topic that would be made.
func (r *Registry) plan(ctx context.Context, s *Spec) (*Topic, error) {
	if err := r.checkName(ctx, s.Name); err != nil {
		return nil, err
	}
	overrides, err := r.checkConfigs(s.Configs)
	if err != nil {
		return nil, err
	}
	partitions, err := r.checkPlacement(s)
	if err != nil {
		return nil, err
	}
	return r.newTopic(metastore.Topic{Name: s.Name, ID: kafka.NewTopicID(), Partitions: partitions, Configs: overrides}, nil), nil
}

// checkName checks the rules for names, then whether the name is free. As in
// Kafka a collision is told rather than that the name is invalid, and that it exists rather than either.
func (r *Registry) checkName(ctx context.Context, name string) error {
	if name == clusterMetadata {
		return kafka.Errorf(kerr.InvalidRequest, "Creation of internal topic %s is prohibited.", name)
	}
	if _, exists := r.Lookup(name); exists {
		return kafka.Errorf(kerr.TopicAlreadyExists, "Topic '%s' already exists.", name)
	}
	if other, ok := r.colliding(name); ok {
		return kafka.Errorf(kerr.InvalidTopicException, "Topic '%s' collides with existing topic: %s", name, other)
	}
	if err := ValidateName(name); err != nil {
		return err
	}
	return r.finishStuck(ctx, name)
}

// checkConfigs returns the configs as overrides. Of a name that is there more
// than once the last counts.
func (r *Registry) checkConfigs(entries []ConfigEntry) (map[string]string, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	var null []string
	overrides := make(map[string]string, len(entries))
	for _, e := range entries {
		if e.Value == nil {
			null = append(null, e.Name)
			continue
		}
		overrides[e.Name] = *e.Value
	}
	if null != nil {
		return nil, kafka.Errorf(kerr.InvalidConfig, "Null value not supported for topic configs: %s", strings.Join(null, ","))
	}
	return overrides, r.checkOverrides(overrides)
}

// checkOverrides checks all configs that a topic has of its own: INVALID_CONFIG with Kafka's text.
func (r *Registry) checkOverrides(overrides map[string]string) error {
	if err := checkConfigSizes(overrides); err != nil {
		return err
	}
	err := config.ValidateTopic(r.Settings(), overrides)
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		return kafka.Errorf(kerr.InvalidConfig, "%s", invalid.Message)
	}
	return err
}

func checkConfigSizes(configs map[string]string) error {
	for _, v := range configs {
		if len(v) > maxConfigValue {
			return kafka.Errorf(kerr.InvalidConfig,
				"The configuration value cannot be added because it exceeds the maximum value size of %d bytes.", maxConfigValue)
		}
	}
	return nil
}

// checkPlacement checks replicas and partitions, and returns how many partitions there are.
func (r *Registry) checkPlacement(s *Spec) (int32, error) {
	switch {
	case len(s.Assignments) > 0:
		return r.checkAssignments(s)
	case s.ReplicationFactor < -1 || s.ReplicationFactor == 0:
		return 0, kafka.Errorf(kerr.InvalidReplicationFactor, "Replication factor must be larger than 0, or -1 to use the default value.")
	case s.Partitions < -1 || s.Partitions == 0:
		return 0, kafka.Errorf(kerr.InvalidPartitions, "Number of partitions was set to an invalid non-positive value.")
	case s.ReplicationFactor > 1 && r.o.Settings.StrictReplication: // FX-4: otherwise it is stored as 1
		return 0, kafka.Errorf(kerr.InvalidReplicationFactor, "Unable to replicate the partition %d time(s): "+
			"The target replication factor of %d cannot be reached because only 1 broker(s) are registered or some brokers have all their log directories cordoned.",
			s.ReplicationFactor, s.ReplicationFactor)
	case s.Partitions == -1:
		return r.o.Settings.NumPartitions, nil
	}
	return s.Partitions, nil
}

// checkAssignments checks a manual assignment against the one broker there is.
func (r *Registry) checkAssignments(s *Spec) (int32, error) {
	if s.ReplicationFactor != -1 {
		return 0, kafka.Errorf(kerr.InvalidRequest, "A manual partition assignment was specified, but replication factor was not set to -1.")
	}
	if s.Partitions != -1 {
		return 0, kafka.Errorf(kerr.InvalidRequest, "A manual partition assignment was specified, but numPartitions was not set to -1.")
	}
	seen := make(map[int32]bool, len(s.Assignments))
	for _, a := range s.Assignments {
		if seen[a.Partition] {
			return 0, kafka.Errorf(kerr.InvalidReplicaAssignment, "Found multiple manual partition assignments for partition %d", a.Partition)
		}
		seen[a.Partition] = true
		if err := r.checkReplicas(a.Brokers); err != nil {
			return 0, err
		}
	}
	for i := range int32(len(s.Assignments)) {
		if !seen[i] {
			return 0, kafka.Errorf(kerr.InvalidReplicaAssignment, "partitions should be a consecutive 0-based integer sequence")
		}
	}
	return int32(len(s.Assignments)), nil
}

// checkReplicas is ReplicationControlManager.validateManualPartitionAssignment.
// A list that passes has one broker, so that all lists have the same length.
func (r *Registry) checkReplicas(brokers []int32) error {
	if len(brokers) == 0 {
		return kafka.Errorf(kerr.InvalidReplicaAssignment, "The manual partition assignment includes an empty replica list.")
	}
	sorted := slices.Sorted(slices.Values(brokers))
	for i, b := range sorted {
		if b != r.o.Settings.NodeID {
			return kafka.Errorf(kerr.InvalidReplicaAssignment, "The manual partition assignment includes broker %d, but no such broker is registered.", b)
		}
		if i > 0 && b == sorted[i-1] {
			return kafka.Errorf(kerr.InvalidReplicaAssignment, "The manual partition assignment includes the broker %d more than once.", b)
		}
	}
	return nil
}
