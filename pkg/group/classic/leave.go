package classic

import (
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Heartbeat keeps a member's session: also where it answers
// REBALANCE_IN_PROGRESS, which tells the member to join again.
func (s *State) Heartbeat(now time.Time, id string, instanceID *string, generation int32) error {
	m, err := s.validate(id, instanceID)
	if err != nil {
		return err
	}
	s.catchUp(now, generation)
	if generation != s.generation {
		return kerr.IllegalGeneration
	}
	if s.phase == Empty {
		return kerr.UnknownMemberID
	}
	m.heard(now)
	if s.phase == PreparingRebalance {
		return kerr.RebalanceInProgress
	}
	return nil
}

// Leave removes members, and has the others rebalance once for all of them.
// The errors are in the order of the leavers.
func (s *State) Leave(now time.Time, leavers []Leaver) ([]error, Effects) {
	errs := make([]error, len(leavers))
	var gone []string
	for i, l := range leavers {
		id := l.MemberID
		if id == "" && l.InstanceID != nil { // an administrator names the instance alone
			id = s.static[*l.InstanceID]
		}
		m := s.byID[id]
		if !s.pending.has(id) {
			if m, errs[i] = s.validate(id, l.InstanceID); errs[i] != nil {
				continue
			}
		}
		if m != nil {
			s.answerGone(m)
		}
		s.remove(id)
		gone = append(gone, id)
	}
	if len(gone) == 0 {
		return errs, s.take()
	}
	switch s.phase {
	case Stable, CompletingRebalance:
		s.rebalance(now, "left: "+strings.Join(gone, " "))
	default:
		s.completeIfAllJoined(now)
	}
	return errs, s.take()
}

// Evict removes a member as the end of its session does; nothing happens if there is none of the id.
func (s *State) Evict(now time.Time, id, why string) Effects {
	if s.pending.has(id) {
		s.expirePending(now, id)
	} else if m := s.byID[id]; m != nil {
		s.fail(now, m, why)
	}
	return s.take()
}

// Expire does what is due at now.
func (s *State) Expire(now time.Time) Effects {
	due := func(t time.Time) bool { return !t.IsZero() && !t.After(now) }
	for {
		// The earliest first, as several may be due where time was moved on.
		at, ok := s.Deadline()
		if !ok || at.After(now) {
			return s.take()
		}
		switch {
		case due(s.join.at) && s.join.at.Equal(at):
			s.expireJoin(now)
		case due(s.syncAt) && s.syncAt.Equal(at):
			s.expireSync(now)
		default:
			s.expireSession(now, at)
		}
	}
}

// expireSync removes the members that have not asked for their assignment.
func (s *State) expireSync(now time.Time) {
	s.syncAt = time.Time{}
	var absent []string
	for _, m := range s.members {
		if _, ok := s.pendingSync[m.id]; ok {
			absent = append(absent, m.id)
		}
	}
	if len(absent) == 0 {
		return // they have left
	}
	for _, id := range absent {
		s.remove(id)
	}
	s.rebalance(now, "they did not sync: "+strings.Join(absent, " "))
}

// expireSession ends the session that is over at a time.
func (s *State) expireSession(now, at time.Time) {
	for _, m := range s.members {
		if m.expires.Equal(at) {
			if m.expires = (time.Time{}); !m.waits() {
				s.fail(now, m, "its session ended")
			}
			return
		}
	}
	if p := s.pending.next(); p.at.Equal(at) {
		s.expirePending(now, p.id)
	}
}

func (s *State) expirePending(now time.Time, id string) {
	s.remove(id)
	s.completeAfterRemoval(now)
}

// fail removes a member that is gone.
func (s *State) fail(now time.Time, m *member, why string) {
	s.answerGone(m)
	s.remove(m.id)
	if s.phase == Stable || s.phase == CompletingRebalance {
		s.rebalance(now, "member "+m.id+" is removed: "+why)
		return
	}
	s.note("member %s is removed: %s", m.id, why)
	s.completeAfterRemoval(now)
}

// answerGone answers what a member that is being removed has parked; its
// client may try again if it is still there. (Kafka leaves its SyncGroup without an answer.)
func (s *State) answerGone(m *member) {
	s.answerJoin(m, FailedJoin("", kerr.UnknownMemberID))
	s.answerSync(m, SyncResponse{Err: kerr.UnknownMemberID})
}

// completeAfterRemoval ends also the first rebalance of a group at once, unlike completeIfAllJoined: so does Kafka.
func (s *State) completeAfterRemoval(now time.Time) {
	if s.phase == PreparingRebalance && s.allJoined() {
		s.completeJoin(now)
	}
}
