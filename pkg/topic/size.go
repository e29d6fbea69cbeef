package topic

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// Size is how many bytes a partition's segments have, without their indexes.
// It opens no log: of one that is closed it is the length of the files, and 0
// if there are none yet. UNKNOWN_TOPIC_OR_PARTITION for a partition there is not.
func (t *Topic) Size(partition int32) (int64, error) {
	if partition < 0 || partition >= t.partitions {
		return 0, kerr.UnknownTopicOrPartition
	}
	if l, open := t.Opened(partition); open {
		return l.Size(), nil
	}
	entries, err := t.r.o.Shared.FS.ReadDir(t.r.dir(kafka.TopicPartition{Topic: t.name, Partition: partition}))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	size := int64(0)
	for _, e := range entries {
		if filepath.Ext(e.Name()) != segment.LogSuffix {
			continue
		}
		info, err := e.Info()
		switch {
		case err == nil:
			size += info.Size()
		case !errors.Is(err, fs.ErrNotExist): // it was deleted meanwhile
			return 0, err
		}
	}
	return size, err
}

// Space is the size of the volume that the data directory is on, and how much
// of it can still be used, in bytes.
func (r *Registry) Space() (total, usable int64, err error) { return vfs.Space(r.o.DataDir) }
