package classic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/transcript"
)

// GR-3: transcripts are conversations of clients with one group. A command is
// a line; what it does is behind "-> ", and held against what is there.
// NAME is a client; it remembers the member id and generation it was given.
//
//	group [delay=D] [max=N]         a new group; the initial delay is 3s
//	advance D                       time passes; timers fire when they are due
//	NAME join [v=N] [id=ID] [instance=X] [type=T] [offers=P,P] [topics=T,T] [session=D] [rebalance=D]
//	                                v9, no id, consumer, offers=range, 10s and 60s unless given
//	NAME sync [ID=ASSIGNMENT ...] [id=ID] [gen=N] [instance=X] [type=T] [protocol=P]
//	NAME heartbeat [id=ID] [gen=N] [instance=X]
//	NAME commit [id=ID] [gen=N] [instance=X]
//	NAME leave [id=ID] [instance=X] ...   of several members with several ids
//	evict ID
//	restart [max=N]                 what was persisted last of a stable or empty group is loaded again, as after a stop in order
//	kill                            what was persisted last is loaded, and something later may have been lost
//	lose                            what was persisted last is forgotten: the stable or empty group before that is loaded
//	show                            state, generation, members
//	offsets TOPIC ...               what may become of the group's offsets
//
// Answers begin with the name of the client, or with a dash for the group's log.
func TestTranscripts(t *testing.T) {
	transcript.Run(t, func(t *testing.T, script string) string { return (&player{t: t}).play(script) })
}

type player struct {
	t       *testing.T
	cfg     Config
	s       *State
	now     time.Time
	stored  Snapshot
	settled Snapshot // the last of a stable or empty group
	before  Snapshot // the one before that
	clients map[string]*client
}

type client struct {
	name, id   string
	instance   *string
	generation int32
}

func (p *player) play(script string) string {
	var out strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "-> ") {
			continue
		}
		out.WriteString(line + "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		for _, answer := range p.command(strings.Fields(line)) {
			out.WriteString("-> " + answer + "\n")
		}
	}
	return out.String()
}

func (p *player) command(words []string) []string {
	switch words[0] {
	case "group":
		return p.group(words[1:])
	case "advance":
		return p.advance(p.duration(words[1]))
	case "evict":
		return p.effects(p.s.Evict(p.now, words[1], "evicted"))
	case "restart", "kill":
		if len(words) > 1 {
			p.cfg.MaxSize = p.number(strings.TrimPrefix(words[1], "max="))
		}
		if words[0] == "restart" {
			p.stored = p.settled
		}
		s, e := Restore(p.cfg, p.now, p.stored, words[0] == "kill")
		p.s = s
		return p.effects(e)
	case "lose":
		p.stored, p.settled = p.before, p.before
		return nil
	case "show":
		return []string{p.show()}
	case "offsets":
		return p.offsets(words[1:])
	}
	c := p.clients[words[0]]
	if c == nil {
		c = &client{name: words[0], generation: -1}
		p.clients[words[0]] = c
	}
	switch words[1] {
	case "join":
		return p.join(c, words[2:])
	case "sync":
		return p.sync(c, words[2:])
	case "heartbeat":
		id, gen, instance, _ := p.identity(c, words[2:])
		return []string{c.name + ": " + outcome(p.s.Heartbeat(p.now, id, instance, gen))}
	case "commit":
		id, gen, instance, _ := p.identity(c, words[2:])
		return []string{c.name + ": " + outcome(p.s.CheckCommit(p.now, id, instance, gen))}
	case "leave":
		return p.leave(c, words[2:])
	}
	p.t.Fatalf("unknown command %q", words)
	return nil
}

func (p *player) group(words []string) []string {
	given := map[string]int{}
	p.cfg = Config{InitialDelay: 3 * time.Second, MaxSize: 1000, NewMemberID: func(prefix string) string {
		given[prefix]++
		return fmt.Sprintf("%s-%d", prefix, given[prefix])
	}}
	for _, w := range words {
		switch key, v, _ := strings.Cut(w, "="); key {
		case "delay":
			p.cfg.InitialDelay = p.duration(v)
		case "max":
			p.cfg.MaxSize = p.number(v)
		default:
			p.t.Fatalf("unknown option %q", w)
		}
	}
	p.now = time.Unix(1e9, 0)
	p.s = New(p.cfg, p.now)
	p.stored, p.settled, p.before = Snapshot{}, Snapshot{}, Snapshot{}
	p.clients = map[string]*client{}
	return nil
}

// advance stops at each deadline on the way, as a timer would.
func (p *player) advance(d time.Duration) (out []string) {
	begin, end := p.now, p.now.Add(d)
	for {
		at, ok := p.s.Deadline()
		if !ok || at.After(end) {
			p.now = end
			return out
		}
		p.now = at
		for _, line := range p.effects(p.s.Expire(at)) {
			out = append(out, fmt.Sprintf("after %v %s", at.Sub(begin), line))
		}
	}
}

func (p *player) number(v string) int {
	n, err := strconv.Atoi(v)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func (p *player) duration(v string) time.Duration {
	d, err := time.ParseDuration(v)
	if err != nil {
		p.t.Fatal(err)
	}
	return d
}

func (p *player) join(c *client, words []string) []string {
	req := &JoinRequest{ClientID: strings.ToLower(c.name), ClientHost: "/127.0.0.1", ProtocolType: "consumer", SessionTimeout: 10 * time.Second,
		RebalanceTimeout: time.Minute, RequireKnownMember: true, SkipAssignment: true}
	offers, metadata := "range", []byte(c.name)
	for _, w := range words {
		switch key, v, _ := strings.Cut(w, "="); key {
		case "v":
			n := p.number(v)
			req.RequireKnownMember, req.SkipAssignment = n >= 4, n >= 9
		case "id":
			req.MemberID = v
		case "instance":
			req.InstanceID = &v
		case "type":
			req.ProtocolType = v
		case "offers":
			offers = v
		case "topics":
			metadata = subscriptionOf(strings.Split(v, ",")...)
		case "session":
			req.SessionTimeout = p.duration(v)
		case "rebalance":
			req.RebalanceTimeout = p.duration(v)
		default:
			p.t.Fatalf("unknown option %q", w)
		}
	}
	for name := range strings.SplitSeq(offers, ",") {
		if name != "" {
			req.Protocols = append(req.Protocols, Protocol{name, metadata})
		}
	}
	c.instance = req.InstanceID
	return p.effects(p.s.Join(p.now, req, c))
}

func subscriptionOf(topics ...string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0, 1}, uint32(len(topics)))
	for _, t := range topics {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(t))), t...)
	}
	return binary.BigEndian.AppendUint32(b, 1<<32-1) // no user data
}

// identity is how a client names itself, and the words that are left.
func (p *player) identity(c *client, words []string) (id string, generation int32, instance *string, rest []string) {
	id, generation, instance = c.id, c.generation, c.instance
	for _, w := range words {
		switch key, v, _ := strings.Cut(w, "="); key {
		case "id":
			id = v
		case "gen":
			generation = int32(p.number(v))
		case "instance":
			if instance = &v; v == "" {
				instance = nil
			}
		default:
			rest = append(rest, w)
		}
	}
	return id, generation, instance, rest
}

func (p *player) sync(c *client, words []string) []string {
	req := &SyncRequest{Assignments: map[string][]byte{}}
	req.MemberID, req.Generation, req.InstanceID, words = p.identity(c, words)
	for _, w := range words {
		switch key, v, _ := strings.Cut(w, "="); key {
		case "type":
			req.ProtocolType = &v
		case "protocol":
			req.ProtocolName = &v
		default:
			req.Assignments[key] = []byte(v)
		}
	}
	return p.effects(p.s.Sync(p.now, req, c))
}

func (p *player) leave(c *client, words []string) []string {
	var leavers []Leaver
	for _, w := range words {
		switch key, v, _ := strings.Cut(w, "="); key {
		case "id":
			leavers = append(leavers, Leaver{MemberID: v})
		case "instance": // of the id before it, or alone
			if n := len(leavers); n > 0 && leavers[n-1].InstanceID == nil && leavers[n-1].MemberID != "" {
				leavers[n-1].InstanceID = &v
				continue
			}
			leavers = append(leavers, Leaver{InstanceID: &v})
		}
	}
	if len(words) == 0 {
		leavers = []Leaver{{MemberID: c.id, InstanceID: c.instance}}
	}
	errs, e := p.s.Leave(p.now, leavers)
	var told []string
	for _, err := range errs {
		told = append(told, outcome(err))
	}
	return append([]string{c.name + ": " + strings.Join(told, " ")}, p.effects(e)...)
}

// effects prints them and lets the clients take the answers.
func (p *player) effects(e Effects) (out []string) {
	for _, n := range e.Notes {
		out = append(out, "- "+n)
	}
	for _, r := range e.Joins {
		c := r.Ticket.(*client)
		if r.Response.MemberID != "" && !errors.Is(r.Response.Err, kerr.FencedInstanceID) {
			c.id = r.Response.MemberID
		}
		c.generation = r.Response.Generation
		out = append(out, c.name+": "+printJoin(r.Response))
	}
	for _, r := range e.Syncs {
		out = append(out, r.Ticket.(*client).name+": "+printSync(r.Response))
	}
	if e.Persist {
		p.stored = p.s.Snapshot()
		if p.s.Phase() == Stable || p.s.Phase() == Empty {
			p.before, p.settled = p.settled, p.stored
			return append(out, "- persisted")
		}
		out = append(out, "- persisted against a kill")
	}
	return out
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	if e, ok := errors.AsType[*kerr.Error](err); ok {
		return e.Message
	}
	return "not a Kafka error: " + err.Error()
}

func printJoin(r JoinResponse) string {
	if r.Err != nil {
		return strings.TrimSpace(outcome(r.Err) + " " + r.MemberID)
	}
	s := fmt.Sprintf("joined generation %d as %s, %s %s, led by %s", r.Generation, r.MemberID, *r.ProtocolType, *r.ProtocolName, r.Leader)
	for i, m := range r.Members {
		s += [...]string{": ", " "}[min(i, 1)] + m.MemberID
		if m.InstanceID != nil {
			s += "(" + *m.InstanceID + ")"
		}
	}
	if r.SkipAssignment {
		s += ", skip the assignment"
	}
	return s
}

func printSync(r SyncResponse) string {
	if r.Err != nil {
		return outcome(r.Err)
	}
	return fmt.Sprintf("assigned %q by %s %s", r.Assignment, *r.ProtocolType, *r.ProtocolName)
}

func (p *player) show() string {
	d := p.s.Describe()
	s := fmt.Sprintf("%v, generation %d, type %q, protocol %q", p.s.Phase(), p.s.Generation(), p.s.ProtocolType(), d.Protocol)
	for _, m := range d.Members {
		s += fmt.Sprintf("; %s has %q", m.MemberID, m.Assignment)
	}
	return s
}

func (p *player) offsets(topics []string) []string {
	since, ok := p.s.Retention()
	age := "do not age"
	if ok && since.IsZero() {
		age = "age since their commit"
	} else if ok {
		age = fmt.Sprintf("age for %v", p.now.Sub(since))
	}
	slices.Sort(topics)
	for _, t := range topics {
		if p.s.Subscribed(t) {
			age += ", those of " + t + " do not"
		}
	}
	return []string{"offsets " + age, "delete the group: " + outcome(p.s.CheckDelete()), "delete its offsets: " + outcome(p.s.CheckDeleteOffsets())}
}
