package classic

import (
	"encoding/binary"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// CheckCommit says whether offsets may be committed by a member, or by a
// consumer that is none (generation -1) while the group is empty. A member's session starts anew with it.
func (s *State) CheckCommit(now time.Time, id string, instanceID *string, generation int32) error {
	if generation < 0 && s.phase == Empty {
		return nil
	}
	if generation < 0 && id == "" && instanceID == nil {
		return kerr.UnknownMemberID
	}
	m, err := s.validate(id, instanceID)
	if err == nil {
		s.catchUp(now, generation)
	}
	switch {
	case err != nil:
		return err
	case generation != s.generation:
		return kerr.IllegalGeneration
	case s.phase == CompletingRebalance:
		// The member knows the generation but not yet its partitions, so what it commits is of the last one.
		return kerr.RebalanceInProgress
	}
	m.heard(now)
	return nil
}

// CheckStage says whether a transaction may stage offsets: for a member as in
// CheckCommit, but also while a rebalance completes, and without a word about members at any time
// (ClassicGroup.validateOffsetCommit).
func (s *State) CheckStage(now time.Time, id string, instanceID *string, generation int32) error {
	if generation < 0 && (s.phase == Empty || id == "" && instanceID == nil) {
		return nil
	}
	m, err := s.validate(id, instanceID)
	if err != nil {
		return err
	}
	s.catchUp(now, generation)
	if generation != s.generation {
		return kerr.IllegalGeneration
	}
	m.heard(now)
	return nil
}

// CheckDelete says whether the group may be deleted.
func (s *State) CheckDelete() error {
	if s.phase != Empty {
		return kerr.NonEmptyGroup
	}
	return nil
}

// CheckDeleteOffsets says whether offsets of the group may be deleted: with
// members only if it is known what they are subscribed to (see Subscribed).
func (s *State) CheckDeleteOffsets() error {
	if s.phase != Empty && s.typ != ConsumerProtocol {
		return kerr.NonEmptyGroup
	}
	return nil
}

// Subscribed says whether members are subscribed to a topic; of consumers
// whose subscription is not known it is assumed.
func (s *State) Subscribed(topic string) bool {
	if s.topics == nil {
		return s.typ == ConsumerProtocol
	}
	_, ok := s.topics[topic]
	return ok
}

// Retention says from when on offsets age (those of topics that are
// Subscribed do not): since the group is empty, or since is zero, each since
// its commit. ok is false if none do.
func (s *State) Retention() (since time.Time, ok bool) {
	switch {
	case s.typ == "":
		return time.Time{}, true
	case s.phase == Empty:
		return s.since, true
	case s.phase == Stable && s.typ == ConsumerProtocol && s.topics != nil:
		return time.Time{}, true
	}
	return time.Time{}, false
}

// subscribed reads the topics that consumers are subscribed to; nil if that is not known.
func (s *State) subscribed() map[string]struct{} {
	if s.typ != ConsumerProtocol {
		return nil
	}
	topics := map[string]struct{}{}
	for _, m := range s.members {
		if !subscription(m.metadata(*s.protocol), topics) {
			return nil
		}
	}
	return topics
}

// subscription adds the topics of a consumer's metadata: int16 version, int32
// count, and each name with an int16 length. All versions begin with
// that (ConsumerProtocolSubscription).
func subscription(b []byte, topics map[string]struct{}) bool {
	if len(b) < 6 || int16(binary.BigEndian.Uint16(b)) < 0 {
		return false
	}
	n := int32(binary.BigEndian.Uint32(b[2:]))
	for b = b[6:]; n > 0; n-- {
		if len(b) < 2 {
			return false
		}
		size := int(int16(binary.BigEndian.Uint16(b)))
		if b = b[2:]; size < 0 || size > len(b) {
			return false
		}
		topics[string(b[:size])] = struct{}{}
		b = b[size:]
	}
	return n == 0 && userData(b)
}

// userData says whether b begins with an int32 length, -1 for none, and so many bytes.
func userData(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	size := int32(binary.BigEndian.Uint32(b))
	return size == -1 || size >= 0 && int(size) <= len(b)-4
}
