package classic

import (
	"math"
	"time"
)

// A Snapshot is what of a group is kept over a restart: what it was when it
// was last stable or empty. While it rebalances, that is what goes on after a crash.
type Snapshot struct {
	Generation   int32
	ProtocolType string  // "" for none
	Protocol     *string // nil without members
	Leader       string
	Since        time.Time // when the phase began
	Members      []SnapshotMember
}

// A SnapshotMember is one member of a Snapshot.
type SnapshotMember struct {
	MemberID         string
	InstanceID       *string
	ClientID         string
	ClientHost       string
	Protocols        []Protocol
	SessionTimeout   time.Duration
	RebalanceTimeout time.Duration
	Assignment       []byte
}

// Snapshot is called when effects have said Persist. It shares memory with the
// State, none of which is ever written again.
func (s *State) Snapshot() Snapshot {
	out := Snapshot{Generation: s.generation, ProtocolType: s.typ, Protocol: s.protocol, Leader: s.leader, Since: s.since}
	for _, m := range s.members {
		out.Members = append(out.Members, SnapshotMember{m.id, m.instanceID, m.clientID, m.clientHost, m.protocols,
			m.sessionTimeout, m.rebalanceTimeout, m.assignment})
	}
	return out
}

// Restore makes the group of a snapshot. The members' sessions start anew: while
// they hold, members go on without a rebalance (GR-6). More members than are allowed rebalance.
// behind says that the snapshot may not be the last one: see catchUp.
func Restore(cfg Config, now time.Time, in Snapshot, behind bool) (*State, Effects) {
	s := New(cfg, now)
	s.behind = behind
	s.generation, s.typ, s.protocol, s.leader, s.since = in.Generation, in.ProtocolType, in.Protocol, in.Leader, in.Since
	for _, sm := range in.Members {
		m := &member{id: sm.MemberID, instanceID: sm.InstanceID, clientID: sm.ClientID, clientHost: sm.ClientHost, protocolType: in.ProtocolType,
			protocols: sm.Protocols, sessionTimeout: sm.SessionTimeout, rebalanceTimeout: sm.RebalanceTimeout, assignment: sm.Assignment}
		if s.byID[m.id] != nil {
			continue
		}
		m.heard(now)
		s.members = append(s.members, m)
		s.byID[m.id] = m
		if m.instanceID != nil {
			s.static[*m.instanceID] = m.id
		}
		s.count(m, 1)
	}
	if len(s.members) > 0 {
		s.phase = Stable
		if s.byID[s.leader] == nil {
			s.leader = s.members[0].id
		}
		if s.protocol == nil {
			s.protocol = new(string)
		}
	}
	s.topics = s.subscribed()
	if len(s.members) > cfg.MaxSize {
		s.rebalance(now, "it has more members than are allowed")
	}
	return s, s.take()
}

// catchUp is for a member that knows a generation after the one that was
// restored: it was agreed on, and the broker was killed before it was written.
// To go on with the one before would give its partitions to members that are not alone
// with them any more, so all join again; what was committed in the lost
// generation counts, and its number is not given out again.
func (s *State) catchUp(now time.Time, generation int32) {
	if !s.behind || generation <= s.generation || generation == math.MaxInt32 {
		return
	}
	s.behind = false
	s.generation = generation
	if s.phase == Stable {
		s.rebalance(now, "the restart has forgotten it")
	}
}

// A Description is what DescribeGroups tells.
type Description struct {
	Protocol string // "" unless the group is stable
	Members  []DescribedMember
}

// A DescribedMember is one member of a Description.
type DescribedMember struct {
	MemberID   string
	InstanceID *string
	ClientID   string
	ClientHost string
	Metadata   []byte // nil unless the group is stable
	Assignment []byte // while the group prepares a rebalance, that of the generation before
}

// Describe tells of the group.
func (s *State) Describe() Description {
	var d Description
	if s.phase == Stable {
		d.Protocol = *s.protocol
	}
	for _, m := range s.members {
		dm := DescribedMember{MemberID: m.id, InstanceID: m.instanceID, ClientID: m.clientID, ClientHost: m.clientHost, Assignment: m.assignment}
		if s.phase == Stable {
			dm.Metadata = m.metadata(d.Protocol)
		}
		d.Members = append(d.Members, dm)
	}
	return d
}
