package commitlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

// metadataName is the file that says whose a partition's directory is, in
// Kafka's layout (PartitionMetadataFile):
//
//	version: 0
//	topic_id: <22 characters>
const metadataName = "partition.metadata"

// A TopicIDError says that a directory belongs to another topic, of the same
// name: one that was deleted (ST-1).
type TopicIDError struct {
	Dir         string
	Found, Want kafka.TopicID
}

func (e *TopicIDError) Error() string {
	return fmt.Sprintf("%s belongs to the topic with id %s, not to %s", e.Dir, e.Found, e.Want)
}

// checkTopicID compares the id in a directory with the topic's. Without a
// readable one (the power went before it was synced, so before anything
// else in the directory was) the directory is taken as the topic's, and the next append writes the file anew: a
// directory of a deleted topic has been renamed, durably, before its name is free.
func (l *Log) checkTopicID() error {
	found, err := Owner(l.o.FS, l.o.Dir)
	switch {
	case err != nil:
		return err
	case found.IsZero():
		l.logger().Warn("partition.metadata is missing or torn and will be written anew")
		return nil
	case found != l.o.TopicID:
		return &TopicIDError{Dir: l.o.Dir, Found: found, Want: l.o.TopicID}
	}
	l.made = true
	return nil
}

func parseMetadata(content string) (kafka.TopicID, bool) {
	version, rest, _ := strings.Cut(content, "\n")
	text, ok := strings.CutPrefix(strings.TrimSpace(rest), "topic_id: ")
	if !ok || strings.TrimSpace(version) != "version: 0" {
		return kafka.TopicID{}, false
	}
	id, err := kafka.ParseTopicID(text)
	return id, err == nil
}

// makeDirLocked makes the partition's directory with its partition.metadata,
// if it is not there. Their syncs are left to the flush that comes before the first acks=all answer.
func (l *Log) makeDirLocked() error {
	if l.made {
		return nil
	}
	if err := l.o.FS.Mkdir(l.o.Dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	content := fmt.Sprintf("version: 0\ntopic_id: %s", l.o.TopicID)
	if err := l.writeFileLocked(metadataName, []byte(content)); err != nil {
		return err
	}
	l.dirty.dir, l.dirty.parent = true, true
	l.made = true
	return nil
}

// writeFileLocked writes a small file; the next flush syncs it.
func (l *Log) writeFileLocked(name string, content []byte) error {
	f, err := l.o.FS.OpenFile(l.path(name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt(content, 0); err != nil {
		return errors.Join(err, f.Close())
	}
	l.dirty.files = append(l.dirty.files, f)
	l.dirty.dir = true
	return nil
}
