package metastore

import (
	"bytes"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
)

// The buckets and their rows. Numbers are big endian; a row begins with the
// version of its layout, so that it can change alone.
//
//	meta        "format"            -> uint32
//	            "cluster-id"        -> text
//	            "broker-epoch"      -> int32, that of the last start
//	            "next-producer-id"  -> int64, the first that is not taken
//	            "groups-floor"      -> uint64, see GroupsFloor
//	topics      name                -> see encodeTopic
//	log-starts  topic id, int32     -> uint8 version 1, int64
//	first-dirty topic id, int32     -> uint8 version 1, int64
//	groups      group               -> see encodeGroup
//	offsets     group, topic, int32 -> see encodeOffset
//	transactions id                 -> see encodeTransaction
//	staged      group, topic, int32, int64 producer id -> see encodeOffset
//	brokers     see ClusterConfigs  -> uint8 version 1, see appendConfigs
//
// Log starts and first dirty offsets are keyed by topic id, so that those of a deleted topic are never
// taken for those of another of its name.
var (
	bucketMeta      = []byte("meta")
	bucketTopics    = []byte("topics")
	bucketLogStarts = []byte("log-starts")
	bucketDirty     = []byte("first-dirty")
	bucketGroups    = []byte("groups")
	bucketOffsets   = []byte("offsets")
	bucketBrokers   = []byte("brokers")

	bucketTransactions = []byte("transactions")
	bucketStaged       = []byte("staged")

	buckets = [][]byte{bucketMeta, bucketTopics, bucketLogStarts, bucketGroups, bucketOffsets, bucketBrokers, bucketTransactions, bucketStaged, bucketDirty}
	// firstBuckets are in every file; the others are added to one of an earlier build.
	firstBuckets = buckets[:3]

	keyFormat         = []byte("format")
	keyClusterID      = []byte("cluster-id")
	keyBrokerEpoch    = []byte("broker-epoch")
	keyNextProducerID = []byte("next-producer-id")
	keyGroupsFloor    = []byte("groups-floor")
)

var errReadOnly = errors.New("meta.db: a change in a View")

// A Tx is a transaction, valid within its closure.
type Tx struct {
	bolt     *bbolt.Tx
	writable bool
	changes  []change // so that undo can take them back
	bad      error    // a row that can't be read; it fails the transaction
}

// A change is what a key was before it was put or deleted.
type change struct {
	bucket, key, before []byte // before nil: it was not there
}

func (t *Tx) get(bucket, key []byte) []byte { return t.bolt.Bucket(bucket).Get(key) }

func (t *Tx) put(bucket, key, value []byte) error {
	if err := t.remember(bucket, key); err != nil {
		return err
	}
	return t.bolt.Bucket(bucket).Put(key, value)
}

func (t *Tx) drop(bucket, key []byte) error {
	if err := t.remember(bucket, key); err != nil {
		return err
	}
	return t.bolt.Bucket(bucket).Delete(key)
}

func (t *Tx) remember(bucket, key []byte) error {
	if !t.writable {
		return errReadOnly
	}
	t.changes = append(t.changes, change{bucket, bytes.Clone(key), bytes.Clone(t.get(bucket, key))})
	return nil
}

// undo takes the changes back, last first. They were made in this
// transaction, so that putting back what was there can't fail.
func (t *Tx) undo() {
	for i := len(t.changes) - 1; i >= 0; i-- {
		c := t.changes[i]
		b := t.bolt.Bucket(c.bucket)
		var err error
		if c.before == nil {
			err = b.Delete(c.key)
		} else {
			err = b.Put(c.key, c.before)
		}
		if err != nil {
			panic(fmt.Sprintf("metastore: take back a change of %s: %v", c.bucket, err))
		}
	}
	t.changes = nil
}

// fail remembers that a row can't be read, where the caller has no error to return it by.
func (t *Tx) fail(err error) { t.bad = errors.Join(t.bad, err) }

// errorOf is the outcome of a closure that returned err.
func (t *Tx) errorOf(err error) error {
	if t.bad != nil {
		return errors.Join(err, t.bad)
	}
	return err
}
