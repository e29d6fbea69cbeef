package topic

import (
	"context"
	"fmt"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// CheckWhole checks every sealed segment of every partition that has a
// directory and that no clean stop vouches for: it is for a data directory of a
// format that did not sync them (ST-4). The newest segments are checked when their logs are opened.
func (r *Registry) CheckWhole(ctx context.Context) error {
	for _, tp := range r.Unverified() {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, ok := r.Lookup(tp.Topic)
		if !ok {
			continue
		}
		o, err := t.logOptions(tp)
		if err == nil {
			err = r.o.Store.View(func(tx *metastore.Tx) error {
				o.LogStart = tx.LogStart(t.id, tp.Partition)
				return nil
			})
		}
		if err == nil {
			err = commitlog.CheckSealed(o)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", tp, err)
		}
	}
	return nil
}
