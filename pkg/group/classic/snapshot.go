package classic

import (
	"math"
	"time"
)

// A Snapshot is what of a group is kept over a restart. One of a group that
// rebalances has the members that ever had a generation: the others join anew.
type Snapshot struct {
	Phase        Phase
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
	out := Snapshot{Phase: s.phase, Generation: s.generation, ProtocolType: s.typ, Protocol: s.protocol, Leader: s.leader, Since: s.since}
	for _, m := range s.members {
		if m.fresh {
			continue // it was told nothing yet
		}
		out.Members = append(out.Members, SnapshotMember{m.id, m.instanceID, m.clientID, m.clientHost, m.protocols,
			m.sessionTimeout, m.rebalanceTimeout, m.assignment})
	}
	return out
}

// Restore makes the group of a snapshot. The members' sessions start anew: while
// they hold, members go on without a rebalance (GR-6), or with the one that was under way. More members than are allowed rebalance.
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
	if len(s.members) == 0 {
		s.protocol, s.leader, s.topics = nil, "", s.subscribed()
		return s, s.take()
	}
	if s.byID[s.leader] == nil {
		s.leader = s.members[0].id
	}
	if s.protocol == nil {
		s.protocol = new(string)
	}
	s.topics = s.subscribed()
	s.resume(now, in.Phase)
	return s, s.take()
}

// resume puts a group with members into the phase that it was in. What was
// parked is gone with its connection, and its client asks again.
func (s *State) resume(now time.Time, phase Phase) {
	s.phase = Stable
	switch {
	case len(s.members) > s.cfg.MaxSize:
		s.rebalance(now, "it has more members than are allowed")
	case phase == PreparingRebalance:
		s.rebalance(now, "one was under way")
	case phase == CompletingRebalance:
		s.phase = CompletingRebalance
		for _, m := range s.members {
			s.pendingSync[m.id] = struct{}{}
		}
		s.syncAt = after(now, s.rebalanceTimeout())
	}
}

// catchUp is for a member that knows a generation after the one that was
// restored: it was agreed on, and a power cut took what told of it.
// To go on with the one before would give its partitions to members that are not alone
// with them any more, so all join again; what was committed in the lost
// generation counts, and its number is not given out again.
func (s *State) catchUp(now time.Time, generation int32) {
	if !s.behind || generation <= s.generation || generation == math.MaxInt32 {
		return
	}
	s.behind = false
	s.generation = generation
	if s.phase == Stable || s.phase == CompletingRebalance {
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
