package topic

import (
	"context"
	"errors"
	"fmt"

	"github.com/dozekafka/doze-kafka/pkg/config"
)

// Seed makes the topics that the settings name (FX-5), all in one commit. One
// that exists grows to the partitions given, never shrinks (a warning), and keeps its configs.
func (r *Registry) Seed(ctx context.Context, seeds []config.Seed) error {
	var specs []Spec
	var errs []error
	for _, s := range seeds {
		if t, ok := r.Lookup(s.Name); ok {
			errs = append(errs, r.growTo(ctx, t, s.Partitions))
			continue
		}
		spec := Spec{Name: s.Name, Partitions: s.Partitions, ReplicationFactor: -1}
		for k, v := range s.Configs {
			spec.Configs = append(spec.Configs, ConfigEntry{k, &v})
		}
		specs = append(specs, spec)
	}
	for i, c := range r.Create(ctx, specs, false) {
		if c.Err != nil {
			errs = append(errs, fmt.Errorf("topic %q: %w", specs[i].Name, c.Err))
		}
	}
	return errors.Join(errs...)
}

func (r *Registry) growTo(ctx context.Context, t *Topic, n int32) error {
	switch {
	case n == -1 || n == t.partitions:
		return nil
	case n < t.partitions:
		r.o.Shared.Logger.Warn("a topic to be made at start has more partitions already; a topic never shrinks",
			"topic", t.name, "partitions", t.partitions, "wanted", n)
		return nil
	}
	if err := r.Grow(ctx, t, n); err != nil {
		return fmt.Errorf("topic %q: %w", t.name, err)
	}
	return nil
}
