package classic

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Join handles a JoinGroup. The answer is among the effects of this or of a
// later call, under the ticket, which is not nil; of a second JoinGroup of one member, the
// first is not answered, since its client has given it up.
func (s *State) Join(now time.Time, req *JoinRequest, t Ticket) Effects {
	switch {
	case !s.accepts(req.MemberID):
		s.remove(req.MemberID)
		s.refuse(t, "", kerr.GroupMaxSizeReached)
	case req.MemberID == "":
		s.joinNew(now, req, t)
	default:
		s.joinKnown(now, req, t)
	}
	return s.take()
}

func (s *State) refuse(t Ticket, memberID string, err error) {
	s.out.Joins = append(s.out.Joins, JoinReply{t, FailedJoin(memberID, err)})
}

// accepts says whether the group has room. While it rebalances those that have
// joined count, and not the members: they may not come back, and were the limit lowered, the last ones are sent away.
func (s *State) accepts(id string) bool {
	m := s.byID[id]
	switch s.phase {
	case Empty:
		return true
	case PreparingRebalance:
		return m != nil && m.join != nil || s.parked < s.cfg.MaxSize
	default:
		return m != nil || len(s.members) < s.cfg.MaxSize
	}
}

// joinNew is for a client without a member id.
func (s *State) joinNew(now time.Time, req *JoinRequest, t Ticket) {
	if !s.supports(req.ProtocolType, req.Protocols) {
		s.refuse(t, "", kerr.InconsistentGroupProtocol)
		return
	}
	if req.InstanceID != nil {
		id := s.cfg.NewMemberID(*req.InstanceID)
		if old := s.byID[s.static[*req.InstanceID]]; old != nil {
			s.replace(now, req, old, id, t)
			return
		}
		s.addAndRebalance(now, req, id, t)
		return
	}
	id := s.cfg.NewMemberID(req.ClientID)
	if req.RequireKnownMember {
		// A client that gives up its first JoinGroup would leave a member that nobody is behind (KIP-394).
		s.pending.add(id, after(now, req.SessionTimeout))
		s.out.Joining = id
		s.refuse(t, id, kerr.MemberIDRequired)
		return
	}
	s.addAndRebalance(now, req, id, t)
}

// joinKnown is for a client with a member id.
func (s *State) joinKnown(now time.Time, req *JoinRequest, t Ticket) {
	id := req.MemberID
	if !s.supports(req.ProtocolType, req.Protocols) {
		s.refuse(t, id, kerr.InconsistentGroupProtocol)
		return
	}
	if s.pending.has(id) {
		if req.InstanceID != nil { // only dynamic members are given such ids
			s.refuse(t, "", kerr.UnknownServerError)
			return
		}
		s.addAndRebalance(now, req, id, t)
		return
	}
	m, err := s.validate(id, req.InstanceID)
	if err != nil {
		s.refuse(t, id, err)
		return
	}
	s.out.Joining = id
	switch leads := s.leader == id; {
	case s.phase == PreparingRebalance:
		s.updateAndRebalance(now, req, m, t, "member "+id+" joins again")
	case s.phase == Stable && leads:
		// Its view of the topics may have changed, which its metadata does not show.
		s.updateAndRebalance(now, req, m, t, "leader "+id+" joins again")
	case !m.offers(req.Protocols):
		s.updateAndRebalance(now, req, m, t, "member "+id+" joins again with other metadata")
	default: // it may have missed the answer
		s.out.Joins = append(s.out.Joins, JoinReply{t, s.joined(m)})
	}
}

// joined is the response with the current generation; the leader gets the members.
func (s *State) joined(m *member) JoinResponse {
	r := JoinResponse{Generation: s.generation, ProtocolType: s.typeOrNil(), ProtocolName: s.protocol, Leader: s.leader, MemberID: m.id}
	if m.id == s.leader {
		r.Members = make([]JoinMember, 0, len(s.members))
		for _, m := range s.members {
			r.Members = append(r.Members, JoinMember{m.id, m.instanceID, m.metadata(*s.protocol)})
		}
	}
	return r
}

func (s *State) typeOrNil() *string {
	if s.typ == "" {
		return nil
	}
	typ := s.typ // the response outlives the lock
	return &typ
}

func (s *State) addAndRebalance(now time.Time, req *JoinRequest, id string, t Ticket) {
	if s.phase == PreparingRebalance && s.previous == Empty {
		s.newcomer = true
	}
	m := newMember(id, req)
	s.add(m, t)
	s.out.Joining = id
	m.expires = after(now, NewMemberJoinTimeout)
	s.rebalanceOrComplete(now, "new member "+id)
}

func (s *State) updateAndRebalance(now time.Time, req *JoinRequest, m *member, t Ticket, why string) {
	s.update(m, req, t)
	s.rebalanceOrComplete(now, why)
}

func (s *State) update(m *member, req *JoinRequest, t Ticket) {
	s.count(m, -1)
	m.protocols = req.Protocols
	s.count(m, 1)
	m.sessionTimeout, m.rebalanceTimeout = req.SessionTimeout, req.RebalanceTimeout
	if m.join == nil {
		s.parked++
	}
	m.join = t
}

// replace gives a static member a new id: its instance was started anew
// (KIP-345). While the group is stable that alone is no reason to rebalance.
func (s *State) replace(now time.Time, req *JoinRequest, old *member, id string, t Ticket) {
	leader := s.leader
	m := s.exchange(old, id)
	m.heard(now)
	s.update(m, req, t)
	s.out.Joining = id
	switch s.phase {
	case Stable:
		if s.selectProtocol() != *s.protocol {
			s.rebalanceOrComplete(now, "static member "+id+" changes the protocol")
			return
		}
		s.note("static member %s replaces %s without a rebalance", id, old.id)
		r := s.joined(m)
		if req.SkipAssignment {
			r.SkipAssignment = id == s.leader
		} else {
			// A client that does not know SkipAssignment would assign anew if it
			// were told that it leads, so it hears of its former self as the leader.
			r.Leader, r.Members = leader, nil
		}
		s.answerJoin(m, r)
	case CompletingRebalance:
		// The leader may have the old id already, and assign nothing to the new one.
		s.rebalance(now, "static member "+id+" joins again")
	default:
		s.completeIfAllJoined(now)
	}
}

// exchange puts a member under another id and fences who has the old one.
func (s *State) exchange(old *member, id string) *member {
	failed := FailedJoin(old.id, kerr.FencedInstanceID)
	s.answerJoin(old, failed)
	s.answerSync(old, SyncResponse{Err: kerr.FencedInstanceID})
	m := *old
	m.id, m.fresh = id, false
	delete(s.byID, old.id)
	s.byID[id] = &m
	for i := range s.members {
		if s.members[i] == old {
			s.members[i] = &m
		}
	}
	if s.leader == old.id {
		s.leader = id
	}
	s.static[*m.instanceID] = id
	s.out.Persist = true // the old id is fenced from here on
	return &m
}
