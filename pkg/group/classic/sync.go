package classic

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Sync handles a SyncGroup: the leader's brings the assignments, and the others
// wait for it. The answer is among the effects of this or of a later call, under the ticket, which is not nil.
func (s *State) Sync(now time.Time, req *SyncRequest, t Ticket) Effects {
	m, err := s.checkSync(now, req)
	if err != nil {
		s.out.Syncs = append(s.out.Syncs, SyncReply{t, SyncResponse{Err: err}})
		return s.take()
	}
	delete(s.pendingSync, m.id)
	if len(s.pendingSync) == 0 {
		s.syncAt = time.Time{}
	}
	if s.phase == Stable {
		s.out.Syncs = append(s.out.Syncs, SyncReply{t, s.assigned(m)})
		return s.take()
	}
	m.sync = t
	if m.id == s.leader {
		s.assign(now, req.Assignments)
	}
	return s.take()
}

func (s *State) checkSync(now time.Time, req *SyncRequest) (*member, error) {
	if s.phase == Empty {
		return nil, kerr.UnknownMemberID
	}
	m, err := s.validate(req.MemberID, req.InstanceID)
	if err == nil {
		s.catchUp(now, req.Generation)
	}
	switch {
	case err != nil:
		return nil, err
	case req.Generation != s.generation:
		return nil, kerr.IllegalGeneration
	case req.ProtocolType != nil && s.typ != "" && *req.ProtocolType != s.typ,
		req.ProtocolName != nil && s.protocol != nil && *req.ProtocolName != *s.protocol:
		return nil, kerr.InconsistentGroupProtocol
	case s.phase == PreparingRebalance:
		return nil, kerr.RebalanceInProgress
	}
	return m, nil
}

// assign makes the group stable: every member gets its assignment, an empty
// one if the leader has left it out.
func (s *State) assign(now time.Time, assignments map[string][]byte) {
	for _, m := range s.members {
		m.assignment = assignments[m.id]
		if s.answerSync(m, s.assigned(m)) {
			m.heard(now)
		}
	}
	s.enter(now, Stable)
	s.note("generation %d is stable", s.generation)
	s.out.Persist = true
}

func (s *State) assigned(m *member) SyncResponse {
	return SyncResponse{ProtocolType: s.typeOrNil(), ProtocolName: s.protocol, Assignment: m.assignment}
}
