package classic

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// A Phase is a group's state, by Kafka's name of it.
type Phase int8

// The phases. Kafka's fifth, Dead, is that of a group there is not.
const (
	Empty Phase = iota
	PreparingRebalance
	CompletingRebalance
	Stable
)

// String is the name on the wire.
func (p Phase) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}[p]
}

// NewMemberJoinTimeout is how long the JoinGroup of a member that never had a
// generation may be parked: its client can't heartbeat, and may be gone
// (group.new.member.join.timeout.ms is internal to Kafka and 5 minutes).
const NewMemberJoinTimeout = 5 * time.Minute

// ConsumerProtocol is the protocol type of consumers.
const ConsumerProtocol = "consumer"

// Config is what a State is told once.
type Config struct {
	InitialDelay time.Duration // group.initial.rebalance.delay.ms
	MaxSize      int           // group.max.size
	// NewMemberID makes an id that no member has or had: the prefix, a dash and a UUID.
	NewMemberID func(prefix string) string
}

// A Ticket is what a caller gives with a request that may be parked, to know
// its answer by. It is compared with nothing but nil.
type Ticket any

// Effects are what a call wants done.
type Effects struct {
	Joins []JoinReply
	Syncs []SyncReply
	// Persist: Snapshot has changed since it was last asked for, and what is
	// answered relies on it. That of a group which rebalances matters after a kill
	// alone: a stop in order goes back to what was last stable or empty, as Kafka's does.
	Persist bool
	// Joining is the id of the member whose JoinGroup this call has parked or answered, for who keeps track of clients.
	Joining string
	// Notes say what happened to the group, for the log.
	Notes []string
}

// A JoinReply answers the JoinGroup that came with the ticket.
type JoinReply struct {
	Ticket   Ticket
	Response JoinResponse
}

// A SyncReply answers the SyncGroup that came with the ticket.
type SyncReply struct {
	Ticket   Ticket
	Response SyncResponse
}

// A State is one group. It is not safe for concurrent use.
type State struct {
	cfg        Config
	phase      Phase
	previous   Phase     // the phase before, once there was one
	since      time.Time // when the phase began
	generation int32
	typ        string  // protocol type; "" for none yet
	protocol   *string // the chosen one
	leader     string  // member id; "" for none

	members     []*member // in the order they came
	byID        map[string]*member
	static      map[string]string // member id by instance id
	pending     pendingIDs
	pendingSync map[string]struct{} // members that have not asked for this generation's assignment
	supported   map[string]int      // how many members offer a protocol
	topics      map[string]struct{} // that members are subscribed to; nil if not known
	parked      int                 // members whose JoinGroup waits

	join     joinTimer
	syncAt   time.Time // members that have not synced by then are removed; zero: not running
	newcomer bool      // one came during the initial delay
	behind   bool      // restored, and members may know a later generation

	out Effects
}

// A joinTimer ends the wait for members to join.
type joinTimer struct {
	at      time.Time // zero: not running
	initial bool      // of an empty group: extended while members come
	// delay is how long this wait was, and remaining how much longer later ones may be.
	delay, remaining time.Duration
}

// New makes an empty group.
func New(cfg Config, now time.Time) *State {
	return &State{cfg: cfg, since: now, byID: map[string]*member{}, static: map[string]string{},
		pendingSync: map[string]struct{}{}, supported: map[string]int{}}
}

// Phase is the group's state.
func (s *State) Phase() Phase { return s.phase }

// Generation is the number of the last generation; 0 before the first.
func (s *State) Generation() int32 { return s.generation }

// ProtocolType is that of the members, also of those that were the last; "" if
// there was none: a simple group.
func (s *State) ProtocolType() string { return s.typ }

// Size is how many members the group has.
func (s *State) Size() int { return len(s.members) }

// HasMember says whether id is a member's, or given to one that has yet to join with it.
func (s *State) HasMember(id string) bool {
	return s.pending.has(id) || s.byID[id] != nil
}

// Pristine says that the group is as New made it.
func (s *State) Pristine() bool {
	return s.generation == 0 && s.phase == Empty && s.typ == "" && len(s.pending.until) == 0
}

func (s *State) take() Effects {
	out := s.out
	s.out = Effects{}
	return out
}

func (s *State) note(format string, args ...any) {
	s.out.Notes = append(s.out.Notes, fmt.Sprintf(format, args...))
}

func (s *State) enter(now time.Time, p Phase) {
	s.previous, s.phase, s.since = s.phase, p, now
}

// Deadline is when Expire is to be called at the latest; false: no need to.
func (s *State) Deadline() (at time.Time, ok bool) {
	consider := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	consider(s.join.at)
	consider(s.syncAt)
	for _, m := range s.members {
		consider(m.expires)
	}
	consider(s.pending.next().at)
	return at, !at.IsZero()
}

// rebalanceTimeout is how long the members may take to join.
func (s *State) rebalanceTimeout() time.Duration {
	var d time.Duration
	for _, m := range s.members {
		d = max(d, m.rebalanceTimeout)
	}
	return d
}

// after is the deadline of a timer. None is due at once, so that one which
// sets itself anew does not run in circles.
func after(now time.Time, d time.Duration) time.Time { return now.Add(max(d, time.Millisecond)) }

// allJoined says that nobody is waited for.
func (s *State) allJoined() bool { return len(s.members) == s.parked && len(s.pending.until) == 0 }

// add makes a member of a joining client.
func (s *State) add(m *member, t Ticket) {
	if m.instanceID != nil {
		s.static[*m.instanceID] = m.id
	}
	if len(s.members) == 0 {
		s.typ = m.protocolType
	}
	if s.leader == "" {
		s.leader = m.id
	}
	s.members = append(s.members, m)
	s.byID[m.id] = m
	s.count(m, 1)
	m.join = t
	s.parked++
	s.pending.remove(m.id)
}

// count adds to the number of members that offer a protocol.
func (s *State) count(m *member, by int) {
	for _, p := range m.protocols {
		if s.supported[p.Name] += by; s.supported[p.Name] == 0 {
			delete(s.supported, p.Name)
		}
	}
}

// remove drops a member, or an id that was given to one. A leader that goes is
// followed by the member that came first.
func (s *State) remove(id string) {
	if m := s.byID[id]; m != nil {
		s.out.Persist = s.out.Persist || !m.fresh // it is refused from here on
		s.members = slices.DeleteFunc(s.members, func(o *member) bool { return o == m })
		delete(s.byID, id)
		s.count(m, -1)
		if m.join != nil {
			s.parked--
		}
		if m.instanceID != nil {
			delete(s.static, *m.instanceID)
		}
	}
	if s.leader == id {
		s.leader = ""
		if len(s.members) > 0 {
			s.leader = s.members[0].id
		}
	}
	s.pending.remove(id)
	delete(s.pendingSync, id)
}

// answerJoin answers a member's parked JoinGroup, if there is one.
func (s *State) answerJoin(m *member, r JoinResponse) {
	if m.join == nil {
		return
	}
	s.out.Joins = append(s.out.Joins, JoinReply{m.join, r})
	m.join = nil
	s.parked--
}

// answerSync answers a member's parked SyncGroup and says whether there was one.
func (s *State) answerSync(m *member, r SyncResponse) bool {
	if m.sync == nil {
		return false
	}
	s.out.Syncs = append(s.out.Syncs, SyncReply{m.sync, r})
	m.sync = nil
	return true
}

// supports says whether a client fits to the group: in an empty one it has
// only to name a type and a protocol, else the type is the same and one protocol is offered by all members.
func (s *State) supports(typ string, protocols []Protocol) bool {
	if s.phase == Empty {
		return typ != "" && len(protocols) > 0
	}
	return s.typ == typ && slices.ContainsFunc(protocols, func(p Protocol) bool { return s.supported[p.Name] == len(s.members) })
}

// Abort answers everything that is parked with an error and stops all timers:
// the group is being left by its coordinator.
func (s *State) Abort(err error) Effects {
	for _, m := range s.members {
		s.answerJoin(m, FailedJoin(m.id, err))
		s.answerSync(m, SyncResponse{Err: err})
		m.expires = time.Time{}
	}
	s.join, s.syncAt = joinTimer{}, time.Time{}
	s.pending = pendingIDs{}
	return s.take()
}

// selectProtocol picks the protocol of the next generation among those that
// all members offer: each votes for its first. Kafka's choice where votes
// are equal is the order of its HashMap, which is followed here.
func (s *State) selectProtocol() string {
	votes := map[string]int{}
	for _, m := range s.members {
		for _, p := range m.protocols {
			if s.supported[p.Name] == len(s.members) {
				votes[p.Name]++
				break
			}
		}
	}
	best, most := "", -1
	for _, name := range slices.SortedFunc(maps.Keys(votes), hashOrder) {
		if votes[name] > most {
			best, most = name, votes[name]
		}
	}
	return best
}

// hashOrder is the order of a Java HashMap of up to 12 strings.
func hashOrder(a, b string) int {
	if x, y := bucket(a), bucket(b); x != y {
		return x - y
	}
	return slices.Compare([]byte(a), []byte(b)) // one bucket: Kafka's is the order of the votes
}

func bucket(s string) int {
	var h uint32
	for _, r := range s {
		if r > math.MaxUint16 { // two UTF-16 units
			r -= 0x10000
			h = 31*h + uint32(0xd800+r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + uint32(r)
	}
	return int((h ^ h>>16) & 15)
}
