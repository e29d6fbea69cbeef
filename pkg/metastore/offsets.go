package metastore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

// An Offset is what a group has committed for a partition.
type Offset struct {
	Topic       string
	Partition   int32
	TopicID     kafka.TopicID // of the topic it was committed for
	Offset      int64
	LeaderEpoch int32 // -1 for none
	Metadata    string
	Committed   time.Time // in milliseconds
	Expires     time.Time // in milliseconds; zero: by the broker's retention
}

// Offset is a group's offset of a partition, and whether there is one.
func (t *Tx) Offset(group, topic string, partition int32) (o Offset, ok bool, err error) {
	k := offsetKey(group, topic, partition)
	row := t.get(bucketOffsets, k)
	if row == nil {
		return Offset{}, false, nil
	}
	_, o, err = decodeOffset(k, row)
	return o, true, err
}

// Offsets iterates over a group's offsets; those of one topic follow each
// other, by partition. Offsets must not be changed within the loop.
func (t *Tx) Offsets(group string) iter.Seq2[Offset, error] {
	return func(yield func(Offset, error) bool) {
		prefix := groupKey(group)
		c := t.bolt.Bucket(bucketOffsets).Cursor()
		for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
			_, o, err := decodeOffset(k, v)
			if !yield(o, err) {
				return
			}
		}
	}
}

// DropOffsetsIf removes the offsets that drop says, of all groups, committed or staged. It reads
// all there are: that is for what happens seldom.
func (t *Tx) DropOffsetsIf(drop func(group string, o Offset) bool) error {
	if err := t.dropOffsetsIf(bucketOffsets, 0, drop); err != nil {
		return err
	}
	return t.dropOffsetsIf(bucketStaged, producerIDSize, drop)
}

// dropOffsetsIf does so in a bucket whose keys have so many bytes after an offset's.
func (t *Tx) dropOffsetsIf(bucket []byte, tail int, drop func(group string, o Offset) bool) error {
	var keys [][]byte
	c := t.bolt.Bucket(bucket).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		group, o, err := decodeOffset(k[:max(0, len(k)-tail)], v)
		if err != nil {
			return err
		}
		if drop(group, o) {
			keys = append(keys, bytes.Clone(k))
		}
	}
	for _, k := range keys {
		if err := t.drop(bucket, k); err != nil {
			return err
		}
	}
	return nil
}

// PutOffset stores a group's offset of a partition.
func (t *Tx) PutOffset(group string, o Offset) error {
	return t.put(bucketOffsets, offsetKey(group, o.Topic, o.Partition), encodeOffset(o))
}

// DropOffset removes one, if it is there.
func (t *Tx) DropOffset(group, topic string, partition int32) error {
	k := offsetKey(group, topic, partition)
	if t.get(bucketOffsets, k) == nil {
		return nil
	}
	return t.drop(bucketOffsets, k)
}

// HasOffsets says whether a group has any.
func (t *Tx) HasOffsets(group string) bool {
	prefix := groupKey(group)
	k, _ := t.bolt.Bucket(bucketOffsets).Cursor().Seek(prefix)
	return bytes.HasPrefix(k, prefix)
}

// HasTopic says whether the topic of a name is the one with the id, and is not being deleted.
func (t *Tx) HasTopic(name string, id kafka.TopicID) (bool, error) {
	row := t.get(bucketTopics, []byte(name))
	if row == nil {
		return false, nil
	}
	topic, err := decodeTopic(name, row)
	return err == nil && topic.ID == id && !topic.Deleting, err
}

// keys are those with a prefix, copied, so that they can be dropped.
func (t *Tx) keys(bucket, prefix []byte) (keys [][]byte) {
	c := t.bolt.Bucket(bucket).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	return keys
}

// offsetKey is a group's key, and the topic as that has the group.
func offsetKey(group, topic string, partition int32) []byte {
	k := binary.BigEndian.AppendUint16(groupKey(group), uint16(len(topic)))
	return binary.BigEndian.AppendUint32(append(k, topic...), uint32(partition))
}

// encodeOffset is a row of the bucket offsets; times are milliseconds, -1 is none:
//
//	uint8 version | 16 topic id | int64 offset | int32 leader epoch
//	int64 committed | int64 expires | metadata, to the end
func encodeOffset(o Offset) []byte {
	b := make([]byte, 0, offsetFixed+len(o.Metadata))
	b = append(append(b, rowVersion), o.TopicID[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(o.Offset))
	b = binary.BigEndian.AppendUint32(b, uint32(o.LeaderEpoch))
	b = binary.BigEndian.AppendUint64(b, uint64(o.Committed.UnixMilli()))
	expires := int64(-1)
	if !o.Expires.IsZero() {
		expires = o.Expires.UnixMilli()
	}
	b = binary.BigEndian.AppendUint64(b, uint64(expires))
	return append(b, o.Metadata...)
}

const offsetFixed = 1 + 16 + 8 + 4 + 8 + 8

func decodeOffset(key, row []byte) (group string, o Offset, err error) {
	group, rest, ok1 := cutKey(key)
	topic, rest, ok2 := cutKey(rest)
	switch {
	case !ok1, !ok2, len(rest) != 4, len(row) < offsetFixed:
		err = errRow
	case row[0] != rowVersion:
		err = fmt.Errorf("row version %d is not known", row[0])
	}
	if err != nil {
		return group, Offset{}, fmt.Errorf("meta.db: an offset of group %q, topic %q: %w", group, topic, err)
	}
	o = Offset{Topic: topic, Partition: int32(binary.BigEndian.Uint32(rest)), TopicID: kafka.TopicID(row[1:17]),
		Offset: int64(binary.BigEndian.Uint64(row[17:])), LeaderEpoch: int32(binary.BigEndian.Uint32(row[25:])),
		Committed: time.UnixMilli(int64(binary.BigEndian.Uint64(row[29:]))), Metadata: string(row[offsetFixed:])}
	if expires := int64(binary.BigEndian.Uint64(row[37:])); expires != -1 {
		o.Expires = time.UnixMilli(expires)
	}
	return group, o, nil
}
