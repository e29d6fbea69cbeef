package kafka

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
)

// A TopicID is the 128-bit id of a topic (KIP-516). A topic that is deleted
// and created again has another one. The zero value means "no id".
type TopicID [16]byte

// metadataTopicID is reserved by Kafka for __cluster_metadata (Uuid.METADATA_TOPIC_ID).
var metadataTopicID = TopicID{15: 1}

// NewTopicID returns a random (version 4) id. Like Kafka's Uuid.randomUuid it
// is never a reserved one, and its text never starts with a dash, so that it
// can be given to a command line tool.
func NewTopicID() TopicID {
	for {
		var id TopicID
		rand.Read(id[:]) // never fails (crypto/rand since Go 1.24)
		id[6] = id[6]&0x0f | 0x40
		id[8] = id[8]&0x3f | 0x80
		if id != (TopicID{}) && id != metadataTopicID && id.String()[0] != '-' {
			return id
		}
	}
}

// ParseTopicID reads the 22 characters that String writes.
func ParseTopicID(s string) (TopicID, error) {
	var id TopicID
	b, err := base64.RawURLEncoding.DecodeString(s)
	// The length of the text too: the decoder skips line breaks.
	if err != nil || len(b) != len(id) || len(s) != base64.RawURLEncoding.EncodedLen(len(id)) {
		return TopicID{}, fmt.Errorf("topic id %q: want 22 characters of URL-safe base64", s)
	}
	copy(id[:], b)
	return id, nil
}

// IsZero says whether this is no id.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// String is Kafka's form: URL-safe base64 without padding, 22 characters.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }
