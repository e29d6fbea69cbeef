package group

import (
	"context"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

// A Coordinator is all groups of the broker. Its methods may be called by any
// goroutine. Those without a context never wait: for a lock in memory at most.
// Errors are, or wrap, kerr values. After Close all of them answer
// COORDINATOR_NOT_AVAILABLE, as Kafka does once its coordinator is not active.
type Coordinator struct{}

// Open loads the groups from the store; their members' sessions start anew (GR-6).
func Open(o Options) (*Coordinator, error) { panic("not built") }

// Close stops all timers, and answers what is parked with NOT_COORDINATOR. It
// waits for what is being written behind; an error says that the last state of
// some group did not reach the disk. The store is closed after it.
func (c *Coordinator) Close() error { panic("not built") }

// Join starts a JoinGroup. The answer comes, now or once the group is complete,
// as one value in the channel, which has room for it: a caller whose client is
// gone may leave it there. A caller that gives up (the broker stops) answers
// NOT_COORDINATOR by itself.
func (c *Coordinator) Join(req *JoinRequest) <-chan JoinResponse { panic("not built") }

// Sync starts a SyncGroup; the answer comes as that of Join does.
func (c *Coordinator) Sync(req *SyncRequest) <-chan SyncResponse { panic("not built") }

// Heartbeat keeps a member's session; nil, or what the client is told:
// REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
// INVALID_GROUP_ID.
func (c *Coordinator) Heartbeat(req *HeartbeatRequest) error { panic("not built") }

// Leave removes members from a group.
func (c *Coordinator) Leave(req *LeaveRequest) LeaveResponse { panic("not built") }

// CommitOffsets stores offsets and returns once they are on disk (ST-80): the
// errors in the order of the request, nil for what is committed. An error of
// the group is that of all partitions. NOT_COORDINATOR if meta.db can't be
// written (ST-60, ST-64): clients find the coordinator and try again.
// UNKNOWN_TOPIC_OR_PARTITION for a topic that was deleted meanwhile. The
// request is not used once it returned; it waits in spite of ctx once the commit has begun.
func (c *Coordinator) CommitOffsets(ctx context.Context, req *CommitRequest) []error {
	panic("not built")
}

// FetchOffsets reads committed offsets. A group there is not has none. It
// reads meta.db's pages and so may touch the page cache.
func (c *Coordinator) FetchOffsets(req *FetchOffsetsRequest) FetchOffsetsResponse { panic("not built") }

// DeleteOffsets deletes committed offsets, durably: GROUP_ID_NOT_FOUND,
// NON_EMPTY_GROUP for one with members whose protocol type is not "consumer",
// and for a partition GROUP_SUBSCRIBED_TO_TOPIC. An offset that is not there is no error.
func (c *Coordinator) DeleteOffsets(ctx context.Context, req *DeleteOffsetsRequest) DeleteOffsetsResponse {
	panic("not built")
}

// List tells of the groups that the filter picks, by name.
func (c *Coordinator) List(f ListFilter) []Listed { panic("not built") }

// Describe tells of a group. For one that is not there the description is
// that of a dead group beside GROUP_ID_NOT_FOUND with its text
// (kafka.ErrorMessage), which only v6 and later tell.
func (c *Coordinator) Describe(group string) (Description, error) { panic("not built") }

// Delete removes groups and their offsets, durably and in one commit; the
// errors are in the order of the names: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP,
// NOT_COORDINATOR if meta.db can't be written. Each name is there once.
func (c *Coordinator) Delete(ctx context.Context, groups []string) []error { panic("not built") }

// TopicsDeleted removes all offsets of topics, which are gone from the
// registry by now. What fails, or a crash cuts off, is done by the next Open.
func (c *Coordinator) TopicsDeleted(ctx context.Context, topics []kafka.TopicImage) error {
	panic("not built")
}

// Disconnected says that a connection is gone. With GROUP_EVICT_ON_DISCONNECT
// a member that has no other connection is removed 500 ms later, unless it was
// heard of by then (GR-9).
func (c *Coordinator) Disconnected(conn uint64) { panic("not built") }

// ExpireOffsets drops the offsets whose retention has passed, and groups that
// have neither members nor offsets any more (GR-7). It runs by itself every 10
// minutes (offsets.retention.check.interval.ms). The result is how many offsets were dropped.
func (c *Coordinator) ExpireOffsets(ctx context.Context) (int, error) { panic("not built") }
