package topic

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// An Op is what a ConfigOp does, numbered as IncrementalAlterConfigs does (KIP-339).
type Op int8

// The operations. Append and Subtract are for configs that are lists.
const (
	OpSet      Op = 0
	OpDelete   Op = 1
	OpAppend   Op = 2
	OpSubtract Op = 3
)

// A ConfigOp is one operation on one config. Value means nothing to OpDelete.
type ConfigOp struct {
	Op          Op
	Name, Value string
}

// A ConfigChange alters the configs of one topic.
type ConfigChange struct {
	Topic   string
	Replace bool // configs without an operation go, as in AlterConfigs
	Ops     []ConfigOp
}

// AlterConfigs changes the configs of topics, each named once and each on its
// own; the errors are in the order of the changes
// (ConfigurationControlManager). What a topic's configs come to is checked as
// a whole, INVALID_CONFIG with Kafka's text, and after that whether the topic
// exists. When it returns, the rows are durable, all in one commit, and the
// logs that are open act on them. With validateOnly nothing changes.
func (r *Registry) AlterConfigs(ctx context.Context, changes []ConfigChange, validateOnly bool) []error {
	errs := make([]error, len(changes))
	names := make([]string, len(changes))
	for i := range changes {
		names[i] = changes[i].Topic
	}
	release, err := r.reserve(ctx, names)
	if err != nil {
		failAll(errs, timedOut(err))
		return errs
	}
	defer release()
	var altered []*Topic
	for i := range changes {
		var t *Topic
		if t, errs[i] = r.planConfigs(&changes[i]); t != nil {
			altered = append(altered, t)
		}
	}
	if validateOnly {
		return errs
	}
	if err := r.commitConfigs(ctx, altered); err != nil {
		failAll(errs, err)
	}
	return errs
}

// planConfigs checks a change of a topic, whose name is reserved, and returns
// the topic as it would be; nil if nothing about it changes.
func (r *Registry) planConfigs(c *ConfigChange) (*Topic, error) {
	t, exists := r.Lookup(c.Topic)
	var current map[string]string
	if exists {
		current = t.overrides
	}
	overrides, err := c.apply(current)
	switch {
	case err != nil:
		return nil, err
	case c.Topic == "":
		return nil, kafka.Errorf(kerr.InvalidRequest, "Default topic resources are not allowed.")
	}
	if err := ValidateName(c.Topic); err != nil {
		return nil, err
	}
	if err := r.checkOverrides(overrides); err != nil {
		return nil, err
	}
	switch {
	case !exists:
		return nil, kafka.Errorf(kerr.UnknownTopicOrPartition, "The topic '%s' does not exist.", c.Topic)
	case maps.Equal(overrides, current):
		return nil, nil
	}
	row := t.row()
	row.Configs = overrides
	return r.newTopic(row, t.slots), nil
}

// commitConfigs stores topics as they are now, publishes them, and tells their logs.
func (r *Registry) commitConfigs(ctx context.Context, altered []*Topic) error {
	if len(altered) == 0 {
		return nil
	}
	for _, t := range altered {
		if _, err := t.config(); err != nil { // what was checked is what is stored
			return err
		}
	}
	err := r.o.Store.Update(ctx, func(tx *metastore.Tx) error {
		for _, t := range altered {
			if err := tx.PutTopic(t.row()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return timedOut(err)
	}
	r.publish(altered, nil)
	r.configureLogs(altered)
	return nil
}

// configureLogs gives the logs of topics that are open the configuration of
// now, after the change was published. One that is being opened is waited for:
// it may have been begun with that of before. One that is opened later takes what is published.
func (r *Registry) configureLogs(topics []*Topic) {
	for _, t := range topics {
		for _, s := range t.slots {
			s.configure(t)
		}
	}
}

// configure reads the configuration under the slot's lock: of two changes side
// by side, such as of the topic's configs and the broker's, the later one sees both.
func (s *slot) configure(t *Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.log.Load()
	if l == nil {
		return
	}
	c, err := t.now().config()
	if err != nil {
		t.r.o.Shared.Logger.Error("a topic's configs can't be read; its logs go on with those of before", "topic", t.name, "error", err)
		return
	}
	l.SetConfig(c)
}

// apply is what the overrides come to, nil if there are none left. The current ones stay as they are.
func (c *ConfigChange) apply(current map[string]string) (map[string]string, error) {
	return applyOps(current, c.Replace, c.Ops, topicList)
}

// applyOps applies operations. list is what an operation on a list starts from, or says that it can't be.
func applyOps(current map[string]string, replace bool, ops []ConfigOp, list func(ConfigOp, map[string]string) (string, error)) (map[string]string, error) {
	out := make(map[string]string, len(current)+len(ops))
	if !replace {
		maps.Copy(out, current)
	}
	for _, op := range ops {
		switch op.Op {
		case OpSet:
			out[op.Name] = op.Value
		case OpDelete:
			delete(out, op.Name)
		case OpAppend, OpSubtract:
			value, err := list(op, out)
			if err != nil {
				return nil, err
			}
			out[op.Name] = op.list(value)
		default:
			return nil, kafka.Errorf(kerr.InvalidRequest, "Unknown operations type %d", op.Op)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// topicList is a topic's list as it is set, or Kafka's default.
func topicList(op ConfigOp, overrides map[string]string) (string, error) {
	verb := map[Op]string{OpAppend: "APPEND", OpSubtract: "SUBTRACT"}[op.Op]
	value, ok := config.TopicListDefault(op.Name)
	if !ok {
		return "", kafka.Errorf(kerr.InvalidConfig, "Can't %s to key %s because its type is not LIST.", verb, op.Name)
	}
	if set, ok := overrides[op.Name]; ok {
		value = set
	}
	return value, nil
}

// list is a list after OpAppend or OpSubtract. Its items are compared as they are spelled.
func (op ConfigOp) list(value string) string {
	items := slices.DeleteFunc(strings.Split(value, ","), func(item string) bool { return item == "" })
	for _, item := range javaSplit(op.Value) {
		i := slices.Index(items, item)
		switch {
		case op.Op == OpAppend && i < 0:
			items = append(items, item)
		case op.Op == OpSubtract && i >= 0:
			items = slices.Delete(items, i, i+1)
		}
	}
	return strings.Join(items, ",")
}

// javaSplit is Java's String.split at commas: empty items at the end are left
// out, unless there is nothing else to split.
func javaSplit(s string) []string {
	if s == "" {
		return []string{""}
	}
	items := strings.Split(s, ",")
	for len(items) > 0 && items[len(items)-1] == "" {
		items = items[:len(items)-1]
	}
	return items
}
