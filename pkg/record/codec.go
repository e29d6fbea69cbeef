package record

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A Codec says how a batch's records are compressed: bits 0 to 2 of the attributes.
type Codec int8

// The codecs of message format v2.
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)

var codecNames = [...]string{"none", "gzip", "snappy", "lz4", "zstd"}

// String is the codec's name as in the configuration of a producer.
func (c Codec) String() string {
	if c.known() {
		return codecNames[c]
	}
	return fmt.Sprintf("codec %d", int8(c))
}

func (c Codec) known() bool { return c >= None && c <= Zstd }

// check refuses the codecs 5 to 7, which Kafka has not given a meaning: it
// throws an IllegalArgumentException, which is UNKNOWN_SERVER_ERROR to a client
// (recorded: produce-codecs).
func (c Codec) check() error {
	if c.known() {
		return nil
	}
	return &InvalidError{Err: kerr.UnknownServerError, Message: fmt.Sprintf("Unknown compression type id: %d", int8(c))}
}
