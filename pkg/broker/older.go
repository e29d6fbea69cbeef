package broker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// metaPath says where meta.db is: in the data directory, unless --meta-db says
// otherwise, or it is only beside the data directory, where older layouts had it
// (ST-3). If both files are ours nobody knows which one the topics are in.
func metaPath(s *config.Settings, o *options) (string, error) {
	if s.MetaDB != "" {
		return s.MetaDB, nil
	}
	dir, err := filepath.Abs(o.metaDir(s.DataDir))
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	inside := filepath.Join(o.metaDir(s.DataDir), metaFile)
	beside := filepath.Join(filepath.Dir(dir), metaFile)
	if filepath.Dir(dir) == dir {
		return inside, nil // a root has nothing beside it
	}
	old, err := metastore.Ours(beside)
	if err != nil || !old {
		return inside, err
	}
	both, err := metastore.Ours(inside)
	switch {
	case err != nil:
		return "", err
	case both:
		return "", fmt.Errorf("both %s and %s are meta.db files of this broker: remove the one that is not the data directory's, or name the other with --meta-db", inside, beside)
	}
	o.logger.Info("meta.db is beside the data directory, as older versions kept it, and is used where it is; to move it in, stop the broker and rename it",
		"file", beside, "to", inside)
	return beside, nil
}

// isOlder says whether the data directory was written by a broker that did not
// sync its segments at a roll, so that any of them can be torn (ST-4).
func (st *storage) isOlder() (older bool) {
	// A View fails for a row that can't be read, and this reads none.
	_ = st.store.View(func(tx *metastore.Tx) error {
		older = !tx.Sealing()
		return nil
	})
	return older
}

// checkWhole checks every segment of such a directory, and says in meta.db that this was done.
// A power cut before that has the next start do it again.
func (st *storage) checkWhole(ctx context.Context, o *options) error {
	o.logger.Warn("the data directory has an older format, whose segments may be torn anywhere: every batch is checked, once", "data", st.dir)
	if err := st.topics.CheckWhole(ctx); err != nil {
		return fmt.Errorf("check the data directory of an older format: %w", err)
	}
	err := st.store.Update(ctx, (*metastore.Tx).RaiseFormat)
	return errors.Join(err, ctx.Err())
}
