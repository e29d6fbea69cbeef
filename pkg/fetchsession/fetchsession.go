// Package fetchsession is the cache of incremental fetch sessions (KIP-227): a
// consumer names its partitions once, and then only tells and is told what has
// changed. It is pure: no I/O, no clock, no protocol.
//
// A request goes through Begin, which gives a Context; its partitions are read;
// and Respond decides which of them the response holds and accounts for them.
//
// It follows Kafka's FetchSession, FetchContext and FetchSessionCacheShard, but
// for the shards: here one cache has all the slots, as its lock is held for no
// longer than a look into a map.
package fetchsession

import (
	"math"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

// The session epochs with a meaning of their own. Both are full requests: they
// name every partition that is to be fetched.
const (
	InitialEpoch int32 = 0  // make a session, if there is room
	FinalEpoch   int32 = -1 // make none; also what requests before v7 mean
)

// A Name identifies a partition in a request: by its topic's id in requests
// from v13 on, by its topic's name in older ones. The other one is zero.
type Name struct {
	ID        kafka.TopicID
	Topic     string
	Partition int32
}

// A Partition is what a request wants of one partition.
type Partition struct {
	Name
	FetchOffset        int64
	LogStart           int64 // of a follower; -1 for a consumer
	MaxBytes           int32
	CurrentLeaderEpoch int32 // -1: don't check
	LastFetchedEpoch   int32 // -1: don't check
}

// A Request is the part of a fetch request that concerns sessions. Its strings
// may be overwritten after Begin: what a session keeps, it copies.
type Request struct {
	SessionID    int32 // 0: none
	Epoch        int32
	UsesTopicIDs bool // version 13 or later
	Partitions   []Partition
	Forgotten    []Name
}

// A Result is what became of one partition, and whether to tell.
type Result struct {
	HighWatermark int64
	LogStart      int64
	Bytes         int  // of records
	Error         bool // any error code
	Diverging     bool // a diverging epoch is told
	Redirected    bool // a preferred read replica is told
	// Include is set by Respond: the partition belongs in the response.
	Include bool
}

// nextEpoch is the epoch that follows e (FetchMetadata.nextEpoch).
func nextEpoch(e int32) int32 {
	switch {
	case e < 0:
		return FinalEpoch
	case e == math.MaxInt32:
		return 1
	default:
		return e + 1
	}
}
