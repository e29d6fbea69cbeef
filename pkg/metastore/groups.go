package metastore

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"time"
)

// A Group is one row of the groups: its membership when it was last stable or
// empty, or, after a kill, while it rebalanced.
type Group struct {
	Name string
	// Version tells which of two states of a group is the later one. It ascends over all groups and all starts.
	Version      uint64
	Rebalance    GroupRebalance
	Generation   int32
	ProtocolType string    // "" for none
	Protocol     *string   // nil without members
	Leader       string    // member id; "" without members
	Since        time.Time // of that state, in milliseconds
	Members      []GroupMember
}

// A GroupRebalance says how far the rebalance of a Group was.
type GroupRebalance uint8

// The steps of a rebalance.
const (
	NoRebalance         GroupRebalance = iota
	PreparingRebalance                 // members are to join
	CompletingRebalance                // the generation is agreed on, and its assignment is not there yet
)

// A GroupMember is one member of a Group.
type GroupMember struct {
	MemberID         string
	InstanceID       *string // nil for a dynamic member
	ClientID         string
	ClientHost       string
	SessionTimeout   time.Duration // in milliseconds
	RebalanceTimeout time.Duration // in milliseconds
	Protocols        []GroupProtocol
	Assignment       []byte
}

// A GroupProtocol is what a member offered.
type GroupProtocol struct {
	Name     string
	Metadata []byte
}

// Groups iterates over all groups, in no order that means anything. Groups must
// not be changed within the loop.
func (t *Tx) Groups() iter.Seq2[Group, error] {
	return func(yield func(Group, error) bool) {
		c := t.bolt.Bucket(bucketGroups).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if !yield(decodeGroup(k, v)) {
				return
			}
		}
	}
}

// HasGroup says whether there is a row of the name.
func (t *Tx) HasGroup(name string) bool { return t.get(bucketGroups, groupKey(name)) != nil }

// PutGroup stores a group. Its name has at most MaxGroupName bytes.
func (t *Tx) PutGroup(g Group) error { return t.put(bucketGroups, groupKey(g.Name), encodeGroup(g)) }

// GroupsFloor is the version up to which all that was ever written of a group
// elsewhere is in its row, or the group is gone.
func (t *Tx) GroupsFloor() (uint64, error) {
	n, err := t.counter(keyGroupsFloor, 8, 0)
	return uint64(n), err
}

// RaiseGroupsFloor stores that version, unless it is not above the one there is.
func (t *Tx) RaiseGroupsFloor(version uint64) error {
	floor, err := t.GroupsFloor()
	if err != nil || version <= floor {
		return err
	}
	return t.put(bucketMeta, keyGroupsFloor, binary.BigEndian.AppendUint64(nil, version))
}

// DropGroup removes a group, its offsets, and what transactions have staged for it.
func (t *Tx) DropGroup(name string) error {
	if t.HasGroup(name) {
		if err := t.drop(bucketGroups, groupKey(name)); err != nil {
			return err
		}
	}
	for _, bucket := range [][]byte{bucketOffsets, bucketStaged} {
		for _, k := range t.keys(bucket, groupKey(name)) {
			if err := t.drop(bucket, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// MaxGroupName is how long a group's name may be in bytes: bbolt bounds a key
// to 32 KiB, and that of an offset has a topic's name too.
const MaxGroupName = 16 << 10

// groupKey is the key of a group, and what the keys of its offsets begin with:
// a uint16 length keeps one group's from being those of another. "" is a name.
func groupKey(name string) []byte {
	return append(binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(name)+32), uint16(len(name))), name...)
}

// cutKey takes a name with its uint16 length off a key.
func cutKey(b []byte) (name string, rest []byte, ok bool) {
	if len(b) < 2 {
		return "", nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if b = b[2:]; n > len(b) {
		return "", nil, false
	}
	return string(b[:n]), b[n:], true
}

// AppendGroup appends a group as one piece, for a journal of them: its key and
// its row, as they are in meta.db.
func AppendGroup(b []byte, g Group) []byte {
	return appendGroup(append(b, groupKey(g.Name)...), g)
}

// ReadGroup reads what AppendGroup has made.
func ReadGroup(b []byte) (Group, error) {
	name, row, ok := cutKey(b)
	if !ok {
		return Group{}, errRow
	}
	g := Group{Name: name}
	return g, g.decode(row)
}

// groupRow is the version of a group's row. Those of version 1 have neither Version nor Rebalance.
const groupRow = 2

// encodeGroup is a row of the bucket groups. A text is a uvarint length and its
// bytes; an optional one has a byte before it, 0 if there is none:
//
//	uint8 version | uint64 version of the state | uint8 rebalance | int32 generation | int64 since
//	text protocol type | optional protocol | text leader | uvarint members
//	{ text member id | optional instance id | text client id | text client host
//	  uvarint session ms | uvarint rebalance ms | text assignment | uvarint protocols
//	  { text name | text metadata } ... } ...
func encodeGroup(g Group) []byte { return appendGroup(nil, g) }

func appendGroup(b []byte, g Group) []byte {
	b = append(binary.BigEndian.AppendUint64(append(b, groupRow), g.Version), byte(g.Rebalance))
	b = binary.BigEndian.AppendUint32(b, uint32(g.Generation))
	b = binary.BigEndian.AppendUint64(b, uint64(g.Since.UnixMilli()))
	b = appendText(appendOptional(appendText(b, g.ProtocolType), g.Protocol), g.Leader)
	b = binary.AppendUvarint(b, uint64(len(g.Members)))
	for i := range g.Members {
		m := &g.Members[i]
		b = appendOptional(appendText(b, m.MemberID), m.InstanceID)
		b = appendText(appendText(b, m.ClientID), m.ClientHost)
		b = appendMillis(appendMillis(b, m.SessionTimeout), m.RebalanceTimeout)
		b = append(binary.AppendUvarint(b, uint64(len(m.Assignment))), m.Assignment...)
		b = binary.AppendUvarint(b, uint64(len(m.Protocols)))
		for _, p := range m.Protocols {
			b = appendText(b, p.Name)
			b = append(binary.AppendUvarint(b, uint64(len(p.Metadata))), p.Metadata...)
		}
	}
	return b
}

func appendOptional(b []byte, s *string) []byte {
	if s == nil {
		return append(b, 0)
	}
	return appendText(append(b, 1), *s)
}

// appendMillis writes a timeout; a negative one, which a client may send, is none.
func appendMillis(b []byte, d time.Duration) []byte {
	return binary.AppendUvarint(b, uint64(min(max(d.Milliseconds(), 0), math.MaxInt32)))
}

func decodeGroup(key, row []byte) (Group, error) {
	name, rest, ok := cutKey(key)
	g := Group{Name: name}
	err := errRow
	if ok && len(rest) == 0 {
		err = g.decode(row)
	}
	if err != nil {
		err = fmt.Errorf("meta.db: group %q: %w", name, err)
	}
	return g, err
}

func (g *Group) decode(row []byte) error {
	if len(row) == 0 {
		return errRow
	}
	version, row := row[0], row[1:]
	const state, fixed = 8 + 1, 4 + 8
	switch {
	case version > groupRow || version == 0:
		return fmt.Errorf("row version %d is not known", version)
	case version == groupRow && len(row) < state:
		return errRow
	case version == groupRow:
		g.Version, g.Rebalance = binary.BigEndian.Uint64(row), GroupRebalance(row[8])
		row = row[state:]
	}
	if len(row) < fixed || g.Rebalance > CompletingRebalance {
		return errRow
	}
	g.Generation = int32(binary.BigEndian.Uint32(row))
	g.Since = time.UnixMilli(int64(binary.BigEndian.Uint64(row[4:])))
	r := rowReader{b: row[fixed:]}
	g.ProtocolType, g.Protocol, g.Leader = r.text(), r.optional(), r.text()
	for range r.count() {
		m := GroupMember{MemberID: r.text(), InstanceID: r.optional(), ClientID: r.text(), ClientHost: r.text(),
			SessionTimeout: r.millis(), RebalanceTimeout: r.millis(), Assignment: r.bytes()}
		for range r.count() {
			m.Protocols = append(m.Protocols, GroupProtocol{r.text(), r.bytes()})
		}
		if r.bad {
			break
		}
		g.Members = append(g.Members, m)
	}
	if r.bad || len(r.b) > 0 {
		return errRow
	}
	return nil
}

// A rowReader reads the parts of a row; after a part that is not there it is bad, and reads nothing.
type rowReader struct {
	b   []byte
	bad bool
}

func (r *rowReader) fail() { r.b, r.bad = nil, true }

func (r *rowReader) uvarint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

// count is a number of parts that follow, each of a byte at least.
func (r *rowReader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *rowReader) text() string {
	n := r.count()
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *rowReader) bytes() []byte {
	s := r.text()
	if s == "" {
		return nil
	}
	return []byte(s)
}

func (r *rowReader) optional() *string {
	if len(r.b) == 0 || r.b[0] > 1 {
		r.fail()
		return nil
	}
	there := r.b[0] == 1
	r.b = r.b[1:]
	if !there {
		return nil
	}
	s := r.text()
	return &s
}

func (r *rowReader) millis() time.Duration {
	n := r.uvarint()
	if n > math.MaxInt32 { // Kafka's INT32
		r.fail()
		return 0
	}
	return time.Duration(n) * time.Millisecond
}
