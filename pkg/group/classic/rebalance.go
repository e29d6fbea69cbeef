package classic

import (
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// rebalanceOrComplete starts a rebalance, or if one is under way looks whether it is complete.
func (s *State) rebalanceOrComplete(now time.Time, why string) {
	if s.phase != PreparingRebalance {
		s.rebalance(now, why)
		return
	}
	s.completeIfAllJoined(now)
}

// rebalance has all members join again. The first rebalance of an empty group
// waits for InitialDelay, and longer while members come (KIP-134).
func (s *State) rebalance(now time.Time, why string) {
	if s.phase == CompletingRebalance {
		for _, m := range s.members {
			m.assignment = nil
			if s.answerSync(m, SyncResponse{Err: kerr.RebalanceInProgress}) {
				m.heard(now)
			}
		}
	}
	s.syncAt = time.Time{}
	s.note("rebalance after generation %d: %s", s.generation, why)
	initial := s.phase == Empty
	s.enter(now, PreparingRebalance)
	switch {
	case initial:
		d := s.cfg.InitialDelay
		s.join = joinTimer{at: after(now, d), initial: true, delay: d, remaining: max(s.rebalanceTimeout()-d, 0)}
	case s.allJoined():
		s.completeJoin(now)
	default:
		s.join = joinTimer{at: after(now, s.rebalanceTimeout())}
	}
}

// completeIfAllJoined ends a rebalance that waits for nobody. The first one of
// an empty group waits for those that are not known yet.
func (s *State) completeIfAllJoined(now time.Time) {
	if s.phase == PreparingRebalance && s.previous != Empty && s.allJoined() {
		s.completeJoin(now)
	}
}

// expireJoin is the end of the wait for members.
func (s *State) expireJoin(now time.Time) {
	if t := s.join; t.initial && s.newcomer && t.remaining > 0 {
		s.newcomer = false
		d := min(s.cfg.InitialDelay, t.remaining)
		s.join = joinTimer{at: after(now, d), initial: true, delay: d, remaining: max(t.remaining-t.delay, 0)}
		return
	}
	s.completeJoin(now)
}

// completeJoin begins the next generation with those that have joined, and
// with static members, whose session alone decides.
func (s *State) completeJoin(now time.Time) {
	s.join = joinTimer{}
	var absent []string
	for _, m := range s.members {
		if m.join == nil && m.instanceID == nil {
			absent = append(absent, m.id)
		}
	}
	for _, id := range absent {
		s.remove(id)
	}
	if len(absent) > 0 {
		s.note("removed, as they did not join: %s", strings.Join(absent, " "))
	}
	if len(s.members) > 0 && !s.electLeader() {
		s.note("no member has joined, the rebalance goes on")
		s.join = joinTimer{at: after(now, s.rebalanceTimeout())}
		return
	}
	s.generation++
	s.behind = false
	s.out.Persist = true // no other generation gets this number
	if len(s.members) == 0 {
		s.protocol = nil
		s.topics = s.subscribed()
		s.enter(now, Empty)
		s.note("generation %d is empty", s.generation)
		return
	}
	name := s.selectProtocol()
	s.protocol = &name
	s.topics = s.subscribed()
	s.enter(now, CompletingRebalance)
	s.note("generation %d has %d members, protocol %s", s.generation, len(s.members), name)
	for _, m := range s.members {
		s.answerJoin(m, s.joined(m))
		m.heard(now)
		m.fresh = false
		s.pendingSync[m.id] = struct{}{}
	}
	s.syncAt = after(now, s.rebalanceTimeout())
}

// electLeader has a member that has joined lead; false if none has.
func (s *State) electLeader() bool {
	if s.byID[s.leader].join != nil {
		return true
	}
	for _, m := range s.members {
		if m.join != nil {
			s.leader = m.id
			return true
		}
	}
	return false
}
