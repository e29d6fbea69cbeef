package group

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/dozekafka/doze-kafka/pkg/group/classic"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// newMemberID is a member id as Kafka makes it: the client's or the instance's
// id and a random UUID (version 4).
func newMemberID(prefix string) string {
	var u [16]byte
	rand.Read(u[:]) // never fails (crypto/rand since Go 1.24)
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", prefix, u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

func clone(s string) string { return strings.Clone(s) }

func clonePtr(s *string) *string {
	if s == nil {
		return nil
	}
	c := clone(*s)
	return &c
}

// kept is a request in memory of its own: a member keeps what is in it.
func kept(req *JoinRequest) *classic.JoinRequest {
	out := &classic.JoinRequest{MemberID: clone(req.MemberID), InstanceID: clonePtr(req.InstanceID), ClientID: clone(req.ClientID),
		ClientHost: clone(req.ClientHost), ProtocolType: clone(req.ProtocolType), Protocols: make([]Protocol, len(req.Protocols)),
		SessionTimeout: req.SessionTimeout, RebalanceTimeout: req.RebalanceTimeout,
		RequireKnownMember: req.RequireKnownMember, SkipAssignment: req.SkipAssignment}
	for i, p := range req.Protocols {
		out.Protocols[i] = Protocol{Name: clone(p.Name), Metadata: bytes.Clone(p.Metadata)}
	}
	return out
}

// keptSync is a request whose assignments are in memory of their own.
func keptSync(req *SyncRequest) *classic.SyncRequest {
	out := &classic.SyncRequest{MemberID: req.MemberID, InstanceID: req.InstanceID, Generation: req.Generation,
		ProtocolType: req.ProtocolType, ProtocolName: req.ProtocolName}
	if len(req.Assignments) > 0 {
		out.Assignments = make(map[string][]byte, len(req.Assignments))
	}
	for _, a := range req.Assignments {
		out.Assignments[a.MemberID] = bytes.Clone(a.Data)
	}
	return out
}

// rebalances are what a row says of a phase.
var rebalances = [...]metastore.GroupRebalance{
	classic.PreparingRebalance:  metastore.PreparingRebalance,
	classic.CompletingRebalance: metastore.CompletingRebalance,
	classic.Stable:              metastore.NoRebalance,
}

// phaseOf is the phase that a row tells of.
func phaseOf(row metastore.Group) classic.Phase {
	switch {
	case len(row.Members) == 0:
		return classic.Empty
	case row.Rebalance == metastore.PreparingRebalance:
		return classic.PreparingRebalance
	case row.Rebalance == metastore.CompletingRebalance:
		return classic.CompletingRebalance
	}
	return classic.Stable
}

// rowOf is a snapshot as meta.db has it.
func rowOf(name string, s classic.Snapshot) metastore.Group {
	row := metastore.Group{Name: name, Rebalance: rebalances[s.Phase], Generation: s.Generation, ProtocolType: s.ProtocolType, Protocol: s.Protocol, Leader: s.Leader, Since: s.Since}
	for _, m := range s.Members {
		protocols := make([]metastore.GroupProtocol, len(m.Protocols))
		for i, p := range m.Protocols {
			protocols[i] = metastore.GroupProtocol(p)
		}
		row.Members = append(row.Members, metastore.GroupMember{MemberID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID,
			ClientHost: m.ClientHost, SessionTimeout: m.SessionTimeout, RebalanceTimeout: m.RebalanceTimeout, Protocols: protocols, Assignment: m.Assignment})
	}
	return row
}

// snapshotOf is the inverse of rowOf.
func snapshotOf(row metastore.Group) classic.Snapshot {
	s := classic.Snapshot{Phase: phaseOf(row), Generation: row.Generation, ProtocolType: row.ProtocolType, Protocol: row.Protocol, Leader: row.Leader, Since: row.Since}
	for _, m := range row.Members {
		protocols := make([]Protocol, len(m.Protocols))
		for i, p := range m.Protocols {
			protocols[i] = Protocol(p)
		}
		s.Members = append(s.Members, classic.SnapshotMember{MemberID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID,
			ClientHost: m.ClientHost, Protocols: protocols, SessionTimeout: m.SessionTimeout, RebalanceTimeout: m.RebalanceTimeout, Assignment: m.Assignment})
	}
	return s
}
