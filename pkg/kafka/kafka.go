// Package kafka holds the words that every other package shares: partitions,
// topic ids, isolation levels, and the one mapping from Go errors to Kafka's
// error codes.
package kafka

import "strconv"

// A TopicPartition names one partition of a topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the name of the partition's directory, such as "demo-0".
func (tp TopicPartition) String() string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}

// Isolation is what a consumer may see of open and aborted transactions.
type Isolation int8

// The isolation levels of Fetch and ListOffsets, as on the wire.
const (
	ReadUncommitted Isolation = 0 // everything below the high watermark
	ReadCommitted   Isolation = 1 // everything below the last stable offset
)

// A TopicImage is what the group machines know of a topic.
type TopicImage struct {
	Name       string
	ID         TopicID
	Partitions int32
}
