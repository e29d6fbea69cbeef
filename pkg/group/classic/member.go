package classic

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A member of a group.
type member struct {
	id               string
	instanceID       *string
	clientID         string
	clientHost       string
	protocolType     string
	protocols        []Protocol
	sessionTimeout   time.Duration
	rebalanceTimeout time.Duration
	assignment       []byte

	fresh   bool      // it has had no generation yet, so that its client can't heartbeat
	expires time.Time // zero: not before its parked request is answered
	join    Ticket    // of its parked JoinGroup
	sync    Ticket    // of its parked SyncGroup
}

func newMember(id string, req *JoinRequest) *member {
	return &member{id: id, instanceID: req.InstanceID, clientID: req.ClientID, clientHost: req.ClientHost, protocolType: req.ProtocolType,
		protocols: req.Protocols, sessionTimeout: req.SessionTimeout, rebalanceTimeout: req.RebalanceTimeout, fresh: true}
}

// metadata is what the member sent with a protocol.
func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.Name == protocol {
			return p.Metadata
		}
	}
	return nil
}

// offers says whether these are the member's protocols, in order and with their metadata.
func (m *member) offers(protocols []Protocol) bool {
	return slices.EqualFunc(m.protocols, protocols, func(a, b Protocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

// heard starts the member's session anew.
func (m *member) heard(now time.Time) { m.expires = after(now, m.sessionTimeout) }

// waits says that the member has a request parked, so that no heartbeat is
// expected of it. A fresh one can expire all the same: see NewMemberJoinTimeout.
func (m *member) waits() bool { return !m.fresh && (m.join != nil || m.sync != nil) }

// validate finds the member that a request names. An instance id that is
// mapped to another member fences the request (KIP-345).
func (s *State) validate(id string, instanceID *string) (*member, error) {
	if instanceID != nil {
		switch current, ok := s.static[*instanceID]; {
		case !ok:
			return nil, kerr.UnknownMemberID
		case current != id:
			return nil, kerr.FencedInstanceID
		}
	}
	if m := s.byID[id]; m != nil {
		return m, nil
	}
	return nil, kerr.UnknownMemberID
}
