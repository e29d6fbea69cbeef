package broker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/group"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/topic"
	"github.com/dozekafka/doze-kafka/pkg/txn"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

const (
	lockFile = "LOCK"
	metaFile = "meta.db"
	// openSealed is how many descriptors of sealed segments stay open (ST-8).
	openSealed = 512
	// syncsAtATime is how many logs are made durable side by side: more than
	// the disk's queue gains by, and few threads.
	syncsAtATime = 32
)

// storage is everything of a broker that stands on the disk: it is opened
// before the listeners and closed after them.
type storage struct {
	fs        vfs.FS
	dir       string
	lock      io.Closer
	last      *lastStop
	store     *metastore.Store
	topics    *topic.Registry
	groups    *group.Coordinator
	txns      *txn.Coordinator
	stats     *commitlog.Stats
	older     bool // the data directory is of a layout whose segments have to be checked (ST-4)
	clusterID string
	epoch     int32
}

// openStorage opens the data directory. The order is that of the design, each
// step relying on those before it; what was opened is closed again on an error.
func openStorage(ctx context.Context, s *config.Settings, o *options) (_ *storage, err error) {
	st := &storage{fs: o.fs, dir: s.DataDir, stats: new(commitlog.Stats)}
	defer func() {
		if err != nil {
			st.abandon()
			err = explainAccess(err, s, o.fs)
		}
	}()
	if err := vfs.MkdirAll(o.fs, s.DataDir, 0o755); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if st.lock, err = o.fs.Lock(filepath.Join(s.DataDir, lockFile)); err != nil {
		if errors.Is(err, vfs.ErrLocked) {
			return nil, fmt.Errorf("data directory %s is in use by another broker: stop it, or give this one another --data-dir", s.DataDir)
		}
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if st.last, err = takeMark(o.fs, s.DataDir); err != nil {
		return nil, err
	}
	if err := st.openStore(s, o); err != nil {
		return nil, err
	}
	st.topics, err = topic.Open(ctx, topic.Options{
		Shared: &commitlog.Shared{
			FS: o.fs, Clock: o.clock, Logger: o.logger, Files: segment.NewFiles(openSealed),
			Epoch: st.epoch, FsyncInterval: s.FsyncInterval, AcksAllSync: s.AcksAllSync,
			ProducerExpiration: config.ProducerIDExpiration, Stats: st.stats, Syncs: commitlog.NewSyncs(syncsAtATime),
		},
		Store: st.store, DataDir: s.DataDir, Settings: s, Clean: st.last.covers,
	})
	if err == nil && st.older {
		err = st.checkWhole(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	// The offsets of topics that are gone go with them, so the topics are known by now.
	st.groups, err = group.Open(group.Options{Store: st.store, FS: o.fs, Dir: s.DataDir, Epoch: st.epoch, Clock: o.clock, Logger: o.logger, Settings: s, Topic: st.image, Unclean: !st.last.clean})
	if err != nil {
		return nil, err
	}
	st.txns, err = txn.Open(txn.Options{
		Store: st.store, Topics: st.topics, Groups: st.groups, Clock: o.clock, Logger: o.logger, Settings: s, Epoch: st.epoch,
		Clean: st.last.clean,
	})
	if err != nil {
		return nil, err
	}
	// Before anybody can ask: a read_committed consumer finds what was committed (TX-6).
	st.txns.Recover(ctx)
	return st, nil
}

// image is what the groups know of a topic.
func (st *storage) image(name string) (kafka.TopicImage, bool) {
	t, ok := st.topics.Lookup(name)
	if !ok {
		return kafka.TopicImage{}, false
	}
	return kafka.TopicImage{Name: name, ID: t.ID(), Partitions: t.Partitions()}, true
}

// openStore opens meta.db.
func (st *storage) openStore(s *config.Settings, o *options) error {
	name, err := metaPath(s, o)
	if err != nil {
		return err
	}
	if err := st.refuseOrphans(name); err != nil {
		return err
	}
	store, err := metastore.Open(metastore.Options{
		Path: name, Fail: o.metaFail, Logger: o.logger,
		Start: func(tx *metastore.Tx) error { return st.begin(tx, s) },
	})
	if err != nil {
		return err
	}
	st.store = store
	if st.older = st.isOlder(); st.older {
		st.last = new(lastStop) // its clean stops do not count
	}
	if s.ClusterID != "" && s.ClusterID != st.clusterID {
		o.logger.Warn("the data directory belongs to another cluster id, which is kept", "stored", st.clusterID, "set", s.ClusterID)
	}
	return nil
}

// refuseOrphans stops a start that would take partition directories without
// the meta.db that knows them for nobody's (ST-4).
func (st *storage) refuseOrphans(meta string) error {
	// meta.db is always on the operating system's disk: bbolt needs a real file.
	if _, err := vfs.OS.Stat(meta); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dirs, err := topic.PartitionDirs(st.fs, st.dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if len(dirs) > 0 {
		return fmt.Errorf("%s is missing, but data directory %s holds partitions (such as %s): put the file back, or start with an empty data directory",
			meta, st.dir, dirs[0])
	}
	return nil
}

// begin makes this start's epoch and, the first time, the cluster id.
func (st *storage) begin(tx *metastore.Tx, s *config.Settings) (err error) {
	st.clusterID = tx.ClusterID()
	if st.clusterID == "" {
		st.clusterID = s.ClusterID
		if st.clusterID == "" {
			st.clusterID = kafka.NewTopicID().String()
		}
		if err := tx.PutClusterID(st.clusterID); err != nil {
			return err
		}
	}
	st.epoch, err = tx.NextBrokerEpoch()
	return err
}

// close flushes and closes everything, and then says so on the disk. It undoes
// openStorage from the last step to the first.
func (st *storage) close() error {
	// What groups have not written says nothing of partitions: the mark does not depend on it.
	st.txns.Close() // before the groups and logs, which the ends of transactions still write to
	groups := st.groups.Close()
	err := st.topics.Close()
	unverified := st.topics.Unverified()
	err = errors.Join(err, st.store.Close())
	if err == nil {
		// No mark if any flush failed: the next start must check everything (ST-50).
		err = putMark(st.fs, st.dir, unverified)
	}
	return errors.Join(groups, err, st.lock.Close())
}

// abandon closes what a failed start had opened. It leaves no mark: the start
// took away the one there was.
func (st *storage) abandon() {
	// The start's own error is the one to tell.
	if st.topics != nil {
		_ = st.topics.Close()
	}
	if st.store != nil {
		_ = st.store.Close()
	}
	if st.lock != nil {
		_ = st.lock.Close()
	}
}
