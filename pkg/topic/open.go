package topic

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// Open reads the rows (no partition is opened, ST-21) and finishes deletes that were under way.
func Open(ctx context.Context, o Options) (*Registry, error) {
	r := &Registry{
		o:          o,
		busy:       map[string]chan struct{}{},
		stuck:      map[string]stuckDelete{},
		unified:    map[string][]string{},
		unverified: map[kafka.TopicPartition]struct{}{},
	}
	if o.Shared.Logger == nil {
		shared := *o.Shared
		shared.Logger = slog.New(slog.DiscardHandler)
		r.o.Shared = &shared
	}
	if err := r.loadBrokerConfigs(); err != nil {
		return nil, err
	}
	r.topics.Store(&snapshot{})
	live, deleting, err := r.readRows()
	if err != nil {
		return nil, err
	}
	r.topics.Store(&snapshot{byName: make(map[string]*Topic, len(live)), byID: make(map[kafka.TopicID]*Topic, len(live))})
	r.publish(live, nil)
	if err := r.finishDeletes(ctx, deleting); err != nil {
		return nil, err
	}
	return r, r.survey()
}

func (r *Registry) readRows() (live []*Topic, deleting []metastore.Topic, err error) {
	err = r.o.Store.View(func(tx *metastore.Tx) error {
		for row, err := range tx.Topics() {
			if err != nil {
				return err
			}
			if row.Deleting {
				deleting = append(deleting, row)
				continue
			}
			live = append(live, r.newTopic(row, nil))
		}
		return nil
	})
	return live, deleting, err
}

// survey looks at the names in the data directory: it notes the partitions
// that no clean stop has flushed, removes what a delete has left behind (its
// removal was not synced), and tells of directories that are nobody's.
func (r *Registry) survey() error {
	entries, err := r.o.Shared.FS.ReadDir(r.o.DataDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var stray []string
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if id, ok := deletedID(e.Name()); ok {
			if _, live := r.LookupID(id); !live {
				if err := r.o.Shared.FS.RemoveAll(filepath.Join(r.o.DataDir, e.Name())); err != nil {
					return err
				}
			}
			continue
		}
		tp, ok := parseDir(e.Name())
		if !ok {
			continue
		}
		if t, known := r.Lookup(tp.Topic); !known || tp.Partition >= t.partitions {
			stray = append(stray, e.Name())
			continue
		}
		if r.o.Clean == nil || !r.o.Clean(tp) {
			r.unverified[tp] = struct{}{}
		}
	}
	if len(stray) > 0 {
		r.o.Shared.Logger.Warn("directories of no known topic are left alone; remove them if they are not wanted",
			"count", len(stray), "first", strings.Join(stray[:min(5, len(stray))], " "))
	}
	return nil
}

// parseDir is the partition whose directory has the name.
func parseDir(name string) (kafka.TopicPartition, bool) {
	at := strings.LastIndexByte(name, '-')
	if at < 1 {
		return kafka.TopicPartition{}, false
	}
	n, err := strconv.ParseInt(name[at+1:], 10, 32)
	tp := kafka.TopicPartition{Topic: name[:at], Partition: int32(n)}
	return tp, err == nil && n >= 0 && tp.String() == name && ValidateName(tp.Topic) == nil
}

// PartitionDirs are the directories in a data directory that look like
// partitions, so that a start without a meta.db can refuse to lose them (ST-4).
func PartitionDirs(fsys vfs.FS, dataDir string) ([]string, error) {
	entries, err := fsys.ReadDir(dataDir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, ok := parseDir(e.Name()); ok && e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return slices.Clip(names), nil
}
