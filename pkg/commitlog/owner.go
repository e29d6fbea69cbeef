package commitlog

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// Owner is the topic id that a partition's directory names, and the zero id
// where there is no directory, or no partition.metadata that can be read: Open
// takes such a directory as its topic's.
func Owner(fsys vfs.FS, dir string) (kafka.TopicID, error) {
	content, err := vfs.ReadFile(fsys, filepath.Join(dir, metadataName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return kafka.TopicID{}, err
	}
	id, _ := parseMetadata(string(content))
	return id, nil
}
