package judge

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// masks replaces what differs from run to run by what it is: "<id:orders>", "<pid1>", "<now+1h>".
type masks struct {
	start     time.Time
	host      string
	port      int32
	cluster   string
	ids       map[[16]byte]string
	perName   map[string]int // topic ids seen of a name
	producers map[int64]string
	sessions  map[int32]string
	members   map[string]string // by the UUID in a member id
	perClient map[string]int    // member ids seen of a client id or instance id
}

func newMasks(host string, port int32) *masks {
	return &masks{start: time.Now(), host: host, port: port, ids: map[[16]byte]string{}, perName: map[string]int{},
		producers: map[int64]string{}, sessions: map[int32]string{}, members: map[string]string{}, perClient: map[string]int{}}
}

// learnID gives a topic id its name. A second id of the same name is "<id:orders#2>".
func (m *masks) learnID(id [16]byte, name string) {
	if _, known := m.ids[id]; known || id == ([16]byte{}) {
		return
	}
	m.perName[name]++
	if n := m.perName[name]; n > 1 {
		name = fmt.Sprintf("%s#%d", name, n)
	}
	m.ids[id] = "<id:" + name + ">"
}

func (m *masks) id(id [16]byte) string {
	if name, ok := m.ids[id]; ok {
		return name
	}
	return hex.EncodeToString(id[:])
}

// learnProducer numbers the producer ids that a broker gave out. Those that a scenario made up stay as they are.
func (m *masks) learnProducer(id int64) {
	if _, known := m.producers[id]; !known && id >= 0 {
		m.producers[id] = fmt.Sprintf("<pid%d>", len(m.producers)+1)
	}
}

func (m *masks) producer(id int64) any {
	if name, ok := m.producers[id]; ok {
		return name
	}
	return id
}

// session numbers fetch session ids by their first appearance.
func (m *masks) session(id int32) any {
	if id == 0 {
		return id
	}
	if _, known := m.sessions[id]; !known {
		m.sessions[id] = fmt.Sprintf("<session%d>", len(m.sessions)+1)
	}
	return m.sessions[id]
}

// number replaces a time near now, or a whole number of hours from it.
func (m *masks) number(n int64) any {
	if s, ok := m.time(n); ok {
		return s
	}
	return n
}

const near = 10 * time.Minute

func (m *masks) time(n int64) (string, bool) {
	const week = 7 * 24 * time.Hour
	now := m.start.UnixMilli()
	if n < now-week.Milliseconds() || n > now+week.Milliseconds() {
		return "", false
	}
	d := time.Duration(n-now) * time.Millisecond
	hours := d.Round(time.Hour)
	switch {
	case (d - hours).Abs() > near:
		return "", false
	case hours == 0:
		return "<now>", true
	}
	return fmt.Sprintf("<now%+dh>", int(hours.Hours())), true
}

// memberID is the id that a broker gives to a member of a group: its client id or its instance id, and a UUID.
var memberID = regexp.MustCompile(`([\w.]*)-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`)

// member numbers the ids that were given out for one client id by their first appearance: "judge-<member1>".
func (m *masks) member(id string) string {
	parts := memberID.FindStringSubmatch(id)
	client, uuid := parts[1], parts[2]
	if _, known := m.members[uuid]; !known {
		m.perClient[client]++
		m.members[uuid] = fmt.Sprintf("%s-<member%d>", client, m.perClient[client])
	}
	return m.members[uuid]
}

var millis = regexp.MustCompile(`-?\b\d{13,19}\b`)

// text masks what an error message quotes.
func (m *masks) text(s string) string {
	for _, id := range slices.Collect(maps.Keys(m.ids)) {
		s = strings.ReplaceAll(s, base64.RawURLEncoding.EncodeToString(id[:]), m.ids[id])
	}
	if m.cluster != "" {
		s = strings.ReplaceAll(s, m.cluster, "<cluster>")
	}
	s = strings.ReplaceAll(s, fmt.Sprintf("%s:%d", m.host, m.port), "<host>:<port>")
	s = memberID.ReplaceAllStringFunc(s, m.member)
	return millis.ReplaceAllStringFunc(s, func(digits string) string {
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			return digits
		}
		if masked, ok := m.time(n); ok {
			return masked
		}
		if n < 0 { // now - Long.MAX_VALUE: the lower bound of timestamps by default
			if masked, ok := m.time(n + math.MaxInt64); ok {
				return masked + "-max"
			}
		}
		return digits
	})
}
