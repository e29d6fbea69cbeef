// Package group is the group coordinator: the lock, the clock and the disk
// around the state machines of groups, and the offsets that they commit.
//
// Membership lives in memory and is written behind: no reply waits for meta.db,
// but for a journal in the page cache, so that a kill takes nothing back (see journal).
// Offsets are strict: a commit is answered once it is on disk, and many share
// one transaction of meta.db (ST-80). Each group has one mutex, which is never
// held over the disk or a wait.
package group

import (
	"log/slog"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/clock"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/group/classic"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// Options open a Coordinator. All fields are required but Unclean; Epoch may be 0.
type Options struct {
	Store    *metastore.Store
	FS       vfs.FS      // the disk of the journal
	Dir      string      // the data directory, where it is
	Epoch    int32       // of the broker: higher with each start
	Clock    clock.Clock // sessions, rebalances, retention of offsets
	Logger   *slog.Logger
	Settings *config.Settings
	// Topic finds a topic by name: Open drops the offsets of topics that are
	// gone, or are there with another id (GR-7).
	Topic func(name string) (kafka.TopicImage, bool)
	// Unclean says that the last run was cut off, so that a power cut may have taken the last generation of a group.
	Unclean bool
}

// Requests may alias memory of the caller: what is kept is copied.

// A JoinRequest is a JoinGroup of one member.
type JoinRequest struct {
	Group            string
	Conn             uint64  // the connection it came over, for GR-9; 0 is none
	MemberID         string  // "" for one that has none yet
	InstanceID       *string // v5; nil for a dynamic member
	ClientID         string
	ClientHost       string // as DescribeGroups shows it: "/127.0.0.1"
	ProtocolType     string
	Protocols        []Protocol    // the preferred one first
	SessionTimeout   time.Duration // INVALID_SESSION_TIMEOUT outside group.min/max.session.timeout.ms
	RebalanceTimeout time.Duration // v0: the session timeout
	// RequireKnownMember: v4 and later. A dynamic member without id is
	// answered MEMBER_ID_REQUIRED and joins again with the id it got (KIP-394).
	RequireKnownMember bool
	// SkipAssignment: v9 and later (KIP-814).
	SkipAssignment bool
	Reason         string // v8; logged at level debug
}

// The words of the classic protocol.
type (
	// Protocol is an assignment strategy that a member offers.
	Protocol = classic.Protocol
	// JoinResponse answers a JoinRequest.
	JoinResponse = classic.JoinResponse
	// JoinMember is a member as the leader learns of it.
	JoinMember = classic.JoinMember
	// SyncResponse answers a SyncRequest.
	SyncResponse = classic.SyncResponse
)

// A SyncRequest is a SyncGroup of one member. That v5 must name type and
// protocol is checked here if Named is set.
type SyncRequest struct {
	Group        string
	Conn         uint64
	MemberID     string
	InstanceID   *string
	Generation   int32
	Named        bool // v5 and later: ProtocolType and ProtocolName must be there
	ProtocolType *string
	ProtocolName *string
	Assignments  []Assignment // from the leader; of two for one member the last counts
}

// An Assignment is what the leader gives to a member.
type Assignment struct {
	MemberID string
	Data     []byte
}

// A HeartbeatRequest is a Heartbeat.
type HeartbeatRequest struct {
	Group      string
	Conn       uint64
	MemberID   string
	InstanceID *string
	Generation int32
}

// A LeaveRequest is a LeaveGroup of some members of a group; of one before v3.
type LeaveRequest struct {
	Group   string
	Members []Leaver
}

// A Leaver names a member: by its id, or a static one by its instance id alone.
type Leaver struct {
	MemberID   string
	InstanceID *string
	Reason     string // v5; logged at level debug
}

// A LeaveResponse answers a LeaveRequest. Before v3 the one member's error is
// the error of the whole response where Err is nil.
type LeaveResponse struct {
	Err     error
	Members []error // in the order of the request; nil if Err is not
}

// A CommitRequest is an OffsetCommit. It holds only partitions that exist: what
// is wrong with the others is the caller's to say, and without any left there
// is nothing to ask the group for (KafkaApis.handleOffsetCommitRequest).
type CommitRequest struct {
	Group      string
	MemberID   string
	InstanceID *string
	Generation int32 // negative for a consumer without a group's membership
	// Version is the request's: from 9 on an unknown group is GROUP_ID_NOT_FOUND and not ILLEGAL_GENERATION.
	Version int16
	// Retention is retention_time_ms of v2 to v4; negative for the broker's own.
	Retention time.Duration
	Offsets   []OffsetToCommit
}

// An OffsetToCommit is one partition of a CommitRequest.
type OffsetToCommit struct {
	Topic       string
	TopicID     kafka.TopicID // of the topic as it is now
	Partition   int32
	Offset      int64 // not checked against the log; may be negative
	LeaderEpoch int32 // -1 for none
	Metadata    string
}

// A FetchOffsetsRequest is an OffsetFetch of one group.
type FetchOffsetsRequest struct {
	Group string
	// All asks for everything the group has, Partitions is empty then.
	All bool
	// Stable: v7. UNSTABLE_OFFSET_COMMIT for a partition that an open transaction has staged an offset of (KIP-447).
	Stable     bool
	Partitions []OffsetOf
}

// An OffsetOf names a partition. If TopicID is set (v10), an offset that was
// committed for another topic of the name is none.
type OffsetOf struct {
	Topic     string
	TopicID   kafka.TopicID
	Partition int32
}

// A FetchOffsetsResponse answers a FetchOffsetsRequest: in its order, or by
// topic and partition if everything was asked for.
type FetchOffsetsResponse struct {
	Err     error // of the whole group; Offsets is nil then
	Offsets []FetchedOffset
}

// A FetchedOffset is a committed offset: offset -1, leader epoch -1 and no
// metadata if there is none, which is no error.
type FetchedOffset struct {
	Topic       string
	TopicID     kafka.TopicID // of the topic it was committed for; zero if there is none
	Partition   int32
	Offset      int64
	LeaderEpoch int32
	Metadata    string
	Err         error
}

// A DeleteOffsetsRequest is an OffsetDelete. The caller has refused partitions that do not exist.
type DeleteOffsetsRequest struct {
	Group      string
	Partitions []kafka.TopicPartition
}

// A DeleteOffsetsResponse answers a DeleteOffsetsRequest.
type DeleteOffsetsResponse struct {
	Err        error   // of the whole request
	Partitions []error // in the order of the request; nil if Err is not
}

// A ListFilter picks groups; an empty list picks all. Names are compared as
// Kafka does: without regard to case, and one that does not exist matches nothing.
type ListFilter struct {
	States []string // v4
	Types  []string // v5
}

// A Listed group is one of ListGroups.
type Listed struct {
	Group        string
	ProtocolType string // "" for a group with offsets alone
	State        string // "Empty", "PreparingRebalance", "CompletingRebalance", "Stable"
	Type         string // "classic"
}

// A Description is what DescribeGroups tells of a group.
type Description struct {
	Group        string
	State        string // "Dead" beside an error
	ProtocolType string
	Protocol     string // "" unless the group is stable
	Members      []Member
}

// A Member is one of a Description. Metadata and Assignment are empty unless the group is stable.
type Member struct {
	MemberID   string
	InstanceID *string
	ClientID   string
	ClientHost string
	Metadata   []byte
	Assignment []byte
}
