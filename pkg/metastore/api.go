// Package metastore is meta.db: everything of the broker that is not a record,
// as typed rows in bbolt, with a group commit.
package metastore

// This file is the agreed surface of the package. The implementation may move
// the declarations to better files; names and meanings stay.

import (
	"context"
	"iter"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

// FormatVersion is the version of the data directory's layout (ST-4).
const FormatVersion = 1

// A Store is an open meta.db.
type Store struct{ _ int }

// Options open a Store.
type Options struct {
	Path string
	// Fail, if set, is asked before each commit and may make it fail as a
	// failing disk would (faults in tests, ST-70).
	Fail func() error
}

// Open opens or creates the file. A lock held by another process is an error after 1 s
// (ST-3); a newer format version is refused in one line (ST-4).
func Open(o Options) (*Store, error) { panic("not built") }

// Close closes the file after the last commit.
func (s *Store) Close() error { panic("not built") }

// Run commits until ctx ends: at most one committer, which commits whatever queued
// while the last commit ran.
func (s *Store) Run(ctx context.Context) error { panic("not built") }

// Update queues fn for the next commit and waits until it is durable. An
// error of fn takes back fn's changes alone and is returned. A failed commit stops all further ones (ST-64): KAFKA_STORAGE_ERROR.
func (s *Store) Update(ctx context.Context, fn func(*Tx) error) error { panic("not built") }

// View reads a consistent state.
func (s *Store) View(fn func(*Tx) error) error { panic("not built") }

// A Tx is a transaction, valid within its closure.
type Tx struct{ _ int }

// A Topic is one row of the topic registry.
type Topic struct {
	Name       string
	ID         kafka.TopicID
	Partitions int32
	Configs    map[string]string // as set, unparsed
	Deleting   bool              // the delete has begun and a start finishes it
}

// Topics iterates over all topics in the order of their names.
func (t *Tx) Topics() iter.Seq2[Topic, error] { panic("not built") }

// PutTopic stores a topic.
func (t *Tx) PutTopic(Topic) error { panic("not built") }

// DropTopic removes a topic's row, and its log starts, by name and id.
func (t *Tx) DropTopic(name string, id kafka.TopicID) error { panic("not built") }

// LogStart is a partition's log start offset: 0 if it was never moved.
func (t *Tx) LogStart(id kafka.TopicID, partition int32) int64 { panic("not built") }

// PutLogStart stores it.
func (t *Tx) PutLogStart(id kafka.TopicID, partition int32, offset int64) error { panic("not built") }

// ClusterID is the stored cluster id, "" in a new store.
func (t *Tx) ClusterID() string { panic("not built") }

// PutClusterID stores it.
func (t *Tx) PutClusterID(string) error { panic("not built") }

// NextBrokerEpoch stores and returns the epoch of this start: 0 the first time, then one more at each (ST-57).
func (t *Tx) NextBrokerEpoch() (int32, error) { panic("not built") }

// ReserveProducerIDs stores that n ids are taken, and returns the first (TX-2).
func (t *Tx) ReserveProducerIDs(n int64) (first int64, err error) { panic("not built") }
