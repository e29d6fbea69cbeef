package classic

import "time"

// A Protocol is one assignment strategy that a member offers, with the
// metadata (such as its subscription) that the leader gets.
type Protocol struct {
	Name     string
	Metadata []byte
}

// A JoinRequest is a JoinGroup. What is kept of it is not copied.
type JoinRequest struct {
	MemberID         string  // "" for one that has none yet
	InstanceID       *string // static member (KIP-345); nil for a dynamic one
	ClientID         string
	ClientHost       string // as DescribeGroups shows it: "/127.0.0.1"
	ProtocolType     string
	Protocols        []Protocol // the preferred one first
	SessionTimeout   time.Duration
	RebalanceTimeout time.Duration
	// RequireKnownMember has a dynamic member without id get one by
	// MEMBER_ID_REQUIRED, to join with it (v4, KIP-394).
	RequireKnownMember bool
	// SkipAssignment says that the client understands SkipAssignment in the response (v9, KIP-814).
	SkipAssignment bool
}

// A JoinResponse answers a JoinRequest. On an error all but Err and MemberID is as FailedJoin makes it.
type JoinResponse struct {
	Err            error // a kerr value, or nil
	Generation     int32 // -1 with an error
	ProtocolType   *string
	ProtocolName   *string // nil with an error
	Leader         string  // member id
	SkipAssignment bool    // the leader must not assign again (KIP-814)
	MemberID       string
	Members        []JoinMember // for the leader only
}

// A JoinMember is what the leader learns of a member.
type JoinMember struct {
	MemberID   string
	InstanceID *string
	Metadata   []byte // of the chosen protocol
}

// FailedJoin is the response with an error.
func FailedJoin(memberID string, err error) JoinResponse {
	return JoinResponse{Err: err, Generation: -1, MemberID: memberID}
}

// A SyncRequest is a SyncGroup.
type SyncRequest struct {
	MemberID     string
	InstanceID   *string
	Generation   int32
	ProtocolType *string           // v5; nil is not compared
	ProtocolName *string           // v5; nil is not compared
	Assignments  map[string][]byte // by member id; from the leader only
}

// A SyncResponse answers a SyncRequest.
type SyncResponse struct {
	Err          error
	ProtocolType *string // nil with an error
	ProtocolName *string // nil with an error
	Assignment   []byte
}

// A Leaver names a member that leaves: by its id, or a static one by its
// instance id alone.
type Leaver struct {
	MemberID   string
	InstanceID *string
}
