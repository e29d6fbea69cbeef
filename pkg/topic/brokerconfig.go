package topic

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// effective are the settings with the broker's configs as they were altered
// last, and what they come to for the logs of topics without configs of their own.
type effective struct {
	settings *config.Settings
	defaults *commitlog.Config
}

// Settings are the broker's settings with its configs as they were altered
// last: what topics have that set nothing else.
func (r *Registry) Settings() *config.Settings { return r.effective.Load().settings }

// A BrokerChange alters configs of this broker, or of the whole cluster.
type BrokerChange struct {
	Cluster bool
	Replace bool // configs without an operation go, as in AlterConfigs
	Ops     []ConfigOp
}

// brokersName is reserved for a change of broker configs: no topic can have it.
const brokersName = "\x00brokers"

// AlterBroker changes configs of the broker and the cluster, each on its own;
// the errors are in the order of the changes (ConfigAdminManager, then
// ConfigurationControlManager): INVALID_REQUEST or INVALID_CONFIG with Kafka's text. When it
// returns, the rows are durable, all in one commit, and the logs that are open
// act on them. With validateOnly nothing changes.
func (r *Registry) AlterBroker(ctx context.Context, changes []BrokerChange, validateOnly bool) []error {
	errs := make([]error, len(changes))
	if len(changes) == 0 {
		return errs
	}
	release, err := r.reserve(ctx, []string{brokersName})
	if err != nil {
		failAll(errs, timedOut(err))
		return errs
	}
	defer release()
	before := r.Settings().Dynamic()
	after := before
	for i := range changes {
		errs[i] = changes[i].plan(&after)
	}
	if validateOnly || maps.Equal(before.Broker, after.Broker) && maps.Equal(before.Cluster, after.Cluster) {
		return errs
	}
	if err := r.commitBrokerConfigs(ctx, before, after); err != nil {
		failAll(errs, err)
	}
	return errs
}

// plan checks a change and makes it in d.
func (c *BrokerChange) plan(d *config.Dynamic) error {
	current := &d.Broker
	if c.Cluster {
		current = &d.Cluster
	}
	for _, op := range c.Ops {
		if op.Op < OpSet || op.Op > OpSubtract {
			return kafka.Errorf(kerr.InvalidRequest, "Unknown operations type %d", op.Op)
		}
	}
	configs, err := applyOps(*current, c.Replace, c.Ops, brokerList)
	if err != nil {
		return err
	}
	err = config.ValidateDynamic(c.Cluster, configs)
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		return kafka.Errorf(kerr.InvalidRequest, "%s", invalid.Message)
	}
	if err != nil {
		return err
	}
	if err := c.checkMinInsync(*current, configs); err != nil {
		return err
	}
	if err := checkConfigSizes(configs); err != nil {
		return err
	}
	*current = configs
	return nil
}

// checkMinInsync keeps min.insync.replicas one config of the whole cluster, as Kafka does while ELR is enabled.
func (c *BrokerChange) checkMinInsync(current, configs map[string]string) error {
	_, before := current[config.MinInsyncReplicas]
	_, after := configs[config.MinInsyncReplicas]
	named := slices.ContainsFunc(c.Ops, func(op ConfigOp) bool { return op.Name == config.MinInsyncReplicas })
	switch {
	case c.Cluster && before && !after:
		return kafka.Errorf(kerr.InvalidConfig, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")
	case !c.Cluster && named:
		return kafka.Errorf(kerr.InvalidConfig, "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
	}
	return nil
}

// brokerList is a broker's list as it is set, or Kafka's default.
func brokerList(op ConfigOp, configs map[string]string) (string, error) {
	value, list, known := config.DynamicList(op.Name)
	verb := map[Op]string{OpAppend: "append", OpSubtract: "subtract"}[op.Op]
	switch {
	case !known:
		return "", kafka.Errorf(kerr.InvalidConfig, "Unknown config name: %s", op.Name)
	case !list:
		return "", kafka.Errorf(kerr.InvalidConfig, "Config value %s is not allowed for config key: %s", verb, op.Name)
	}
	if set, ok := configs[op.Name]; ok {
		value = set
	}
	if op.Op == OpAppend { // a topic's list takes an item that is appended twice, once
		have := strings.Split(value, ",")
		added := slices.DeleteFunc(javaSplit(op.Value), func(item string) bool { return slices.Contains(have, item) })
		if slices.Sort(added); len(slices.Compact(slices.Clone(added))) < len(added) {
			return "", kafka.Errorf(kerr.InvalidRequest, "Configuration '%s' values must not be duplicated.", op.Name)
		}
	}
	return value, nil
}

// commitBrokerConfigs stores what differs, publishes it, and tells the logs.
func (r *Registry) commitBrokerConfigs(ctx context.Context, before, after config.Dynamic) error {
	e, err := r.effectiveWith(after)
	if err != nil {
		return err
	}
	err = r.o.Store.Update(ctx, func(tx *metastore.Tx) error {
		if !maps.Equal(before.Broker, after.Broker) {
			if err := tx.PutBrokerConfigs(r.o.Settings.NodeID, after.Broker); err != nil {
				return err
			}
		}
		if !maps.Equal(before.Cluster, after.Cluster) {
			return tx.PutClusterConfigs(after.Cluster)
		}
		return nil
	})
	if err != nil {
		return timedOut(err)
	}
	r.effective.Store(e)
	r.configureLogs(r.All())
	return nil
}

func (r *Registry) effectiveWith(d config.Dynamic) (*effective, error) {
	s := r.o.Settings.WithDynamic(d)
	defaults, err := logConfig(s, nil)
	return &effective{s, defaults}, err
}

// loadBrokerConfigs reads the rows. A config that this version does not take is
// left out with a warning, as in Kafka: no start fails by it.
func (r *Registry) loadBrokerConfigs() error {
	var d config.Dynamic
	err := r.o.Store.View(func(tx *metastore.Tx) error {
		var stored bool
		if d.Cluster, stored = tx.ClusterConfigs(); !stored {
			d.Cluster = config.FirstCluster(r.o.Settings)
		}
		d.Broker = tx.BrokerConfigs(r.o.Settings.NodeID)
		return nil
	})
	if err != nil {
		return err
	}
	var left []string
	d.Cluster, left = config.WithoutInvalid(true, d.Cluster)
	broker, more := config.WithoutInvalid(false, d.Broker)
	d.Broker = broker
	if left = append(left, more...); len(left) > 0 {
		r.o.Shared.Logger.Warn("stored configs of the broker are not known to this version; they have no effect", "names", left)
	}
	e, err := r.effectiveWith(d)
	r.effective.Store(e)
	return err
}
