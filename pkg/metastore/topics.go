package metastore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

// A Topic is one row of the topic registry.
type Topic struct {
	Name       string
	ID         kafka.TopicID
	Partitions int32
	Configs    map[string]string // as set, unparsed
	Deleting   bool              // the delete has begun and a start finishes it
}

// Topics iterates over all topics in the order of their names. Topics must
// not be changed within the loop.
func (t *Tx) Topics() iter.Seq2[Topic, error] {
	return func(yield func(Topic, error) bool) {
		c := t.bolt.Bucket(bucketTopics).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if !yield(decodeTopic(string(k), v)) {
				return
			}
		}
	}
}

// PutTopic stores a topic.
func (t *Tx) PutTopic(topic Topic) error {
	return t.put(bucketTopics, []byte(topic.Name), encodeTopic(topic))
}

// DropTopic removes a topic's row, its log starts and first dirty offsets, by name and id. A row
// of the name with another id stays.
func (t *Tx) DropTopic(name string, id kafka.TopicID) error {
	if row := t.get(bucketTopics, []byte(name)); row != nil {
		topic, err := decodeTopic(name, row)
		if err != nil {
			return err
		}
		if topic.ID == id {
			if err := t.drop(bucketTopics, []byte(name)); err != nil {
				return err
			}
		}
	}
	return errors.Join(t.dropOf(bucketLogStarts, id), t.dropOf(bucketDirty, id))
}

// dropOf removes the rows of a topic's partitions.
func (t *Tx) dropOf(bucket []byte, id kafka.TopicID) error {
	var rows [][]byte
	c := t.bolt.Bucket(bucket).Cursor()
	for k, _ := c.Seek(id[:]); bytes.HasPrefix(k, id[:]); k, _ = c.Next() {
		rows = append(rows, bytes.Clone(k))
	}
	for _, k := range rows {
		if err := t.drop(bucket, k); err != nil {
			return err
		}
	}
	return nil
}

const rowVersion = 1

const flagDeleting = 1

// encodeTopic is a row of the bucket topics:
//
//	uint8 version | 16 topic id | int32 partitions | uint8 flags (1: deleting)
//	see appendConfigs
func encodeTopic(t Topic) []byte {
	b := append([]byte{rowVersion}, t.ID[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(t.Partitions))
	flags := byte(0)
	if t.Deleting {
		flags = flagDeleting
	}
	return appendConfigs(append(b, flags), t.Configs)
}

// appendConfigs appends configs in the order of their names:
//
//	uvarint configs | { uvarint length, name | uvarint length, value } ...
func appendConfigs(b []byte, configs map[string]string) []byte {
	b = binary.AppendUvarint(b, uint64(len(configs)))
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		b = appendText(appendText(b, name), configs[name])
	}
	return b
}

// decodeConfigs reads what appendConfigs wrote to the end of a row; nil for no configs.
func decodeConfigs(b []byte) (map[string]string, error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)) {
		return nil, errRow
	}
	var configs map[string]string
	if b = b[size:]; n > 0 {
		configs = make(map[string]string, n)
	}
	for range n {
		var k, v string
		var ok1, ok2 bool
		k, b, ok1 = cutText(b)
		v, b, ok2 = cutText(b)
		if !ok1 || !ok2 {
			return nil, errRow
		}
		configs[k] = v
	}
	if len(b) != 0 || uint64(len(configs)) != n {
		return nil, errRow
	}
	return configs, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errRow = errors.New("the row is damaged")

func decodeTopic(name string, row []byte) (Topic, error) {
	t := Topic{Name: name}
	err := t.decode(row)
	if err != nil {
		err = fmt.Errorf("meta.db: topic %q: %w", name, err)
	}
	return t, err
}

func (t *Topic) decode(b []byte) error {
	const fixed = 1 + 16 + 4 + 1
	if len(b) < fixed {
		return errRow
	}
	if b[0] != rowVersion {
		return fmt.Errorf("row version %d is not known", b[0])
	}
	copy(t.ID[:], b[1:])
	t.Partitions = int32(binary.BigEndian.Uint32(b[17:]))
	if t.Partitions < 1 || b[21] > flagDeleting {
		return errRow
	}
	t.Deleting = b[21] == flagDeleting
	var err error
	t.Configs, err = decodeConfigs(b[fixed:])
	return err
}

func cutText(b []byte) (text string, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, false
	}
	b = b[size:]
	return string(b[:n]), b[n:], true
}

// LogStart is a partition's log start offset: 0 if it was never moved.
func (t *Tx) LogStart(id kafka.TopicID, partition int32) int64 {
	row := t.get(bucketLogStarts, partitionKey(id, partition))
	switch {
	case row == nil:
		return 0
	case len(row) != 9 || row[0] != rowVersion:
		// 0 would bring back records that were deleted.
		t.fail(fmt.Errorf("meta.db: log start of %s-%d: %w", id, partition, errRow))
		return 0
	}
	return int64(binary.BigEndian.Uint64(row[1:]))
}

// PutLogStart stores it.
func (t *Tx) PutLogStart(id kafka.TopicID, partition int32, offset int64) error {
	row := binary.BigEndian.AppendUint64([]byte{rowVersion}, uint64(offset))
	return t.put(bucketLogStarts, partitionKey(id, partition), row)
}

func partitionKey(id kafka.TopicID, partition int32) []byte {
	return binary.BigEndian.AppendUint32(id[:], uint32(partition))
}

// FirstDirty is the offset from which on a partition has not been compacted. One that was never stored, or
// can't be read, is 0: then all of the log is looked at.
func (t *Tx) FirstDirty(id kafka.TopicID, partition int32) int64 {
	row := t.get(bucketDirty, partitionKey(id, partition))
	if len(row) != 9 || row[0] != rowVersion {
		return 0
	}
	return int64(binary.BigEndian.Uint64(row[1:]))
}

// PutFirstDirty stores it.
func (t *Tx) PutFirstDirty(id kafka.TopicID, partition int32, offset int64) error {
	row := binary.BigEndian.AppendUint64([]byte{rowVersion}, uint64(offset))
	return t.put(bucketDirty, partitionKey(id, partition), row)
}
