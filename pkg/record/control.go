package record

import (
	"encoding/binary"
	"fmt"
)

// A ControlType is what a control record means (ControlRecordType).
type ControlType int16

// The control records that end a transaction. Others exist in Kafka's own
// metadata log and never in a topic's.
const (
	Abort  ControlType = 0
	Commit ControlType = 1
)

const (
	controlKeySize  = 4 // version int16, type int16
	markerValueSize = 6 // version int16, coordinator epoch int32
)

// A Marker is the control record that ends a transaction on a partition
// (EndTransactionMarker).
//
//	key    0  2  version 0
//	       2  2  type: 0 abort, 1 commit
//	value  0  2  version 0
//	       2  4  coordinator epoch
type Marker struct {
	Type             ControlType
	CoordinatorEpoch int32
}

// NewMarker makes the batch of one marker, ready to be stamped: timestamp is
// that of the end, in ms; the producer's sequence is not of interest.
func NewMarker(m Marker, producerID int64, producerEpoch int16, timestamp int64) (Batch, error) {
	b := NewBuilder(Options{
		Producer:      &Producer{ID: producerID, Epoch: producerEpoch, BaseSequence: NoSequence},
		Transactional: true,
		Control:       true,
	})
	key := binary.BigEndian.AppendUint16(make([]byte, 2, controlKeySize), uint16(m.Type))
	value := binary.BigEndian.AppendUint32(make([]byte, 2, markerValueSize), uint32(m.CoordinatorEpoch))
	if err := b.Append(timestamp, key, value); err != nil {
		return nil, err
	}
	return b.Batch()
}

// Marker reads the marker of a control batch. INVALID_RECORD: b is none, its
// key or value is too short, or its type does not end a transaction. Versions
// above 0 are read as 0: they only add fields.
func (b Batch) Marker() (Marker, error) {
	if !b.Control() {
		return Marker{}, invalidf("not a control batch")
	}
	for r, err := range b.Records() {
		if err != nil {
			return Marker{}, err
		}
		return r.Marker()
	}
	return Marker{}, invalidf("control batch without a record")
}

// Marker reads the marker of a control batch's record. The errors are those of Batch.Marker.
func (r *Record) Marker() (Marker, error) {
	t, err := ParseControlKey(r.Key)
	if err != nil {
		return Marker{}, err
	}
	if t != Abort && t != Commit {
		return Marker{}, invalidf("control record of type %d does not end a transaction", t)
	}
	if len(r.Value) < markerValueSize {
		return Marker{}, invalidf("Invalid value size found for end transaction marker. Must have at least %d bytes, but found only %d", markerValueSize, len(r.Value))
	}
	if v := int16(binary.BigEndian.Uint16(r.Value)); v < 0 {
		return Marker{}, invalidf("Invalid version found for end transaction marker: %d", v)
	}
	return Marker{Type: t, CoordinatorEpoch: int32(binary.BigEndian.Uint32(r.Value[2:]))}, nil
}

// ParseControlKey reads the type off the key of a control record.
// INVALID_RECORD: it is too short, or its version is negative.
func ParseControlKey(key []byte) (ControlType, error) {
	if len(key) < controlKeySize {
		return 0, invalidf("Invalid value size found for control record key. Must have at least %d bytes, but found only %d", controlKeySize, len(key))
	}
	if v := int16(binary.BigEndian.Uint16(key)); v < 0 {
		return 0, invalidf("Invalid version found for control record: %d", v)
	}
	return ControlType(binary.BigEndian.Uint16(key[2:])), nil
}

// String is the type's name.
func (t ControlType) String() string {
	switch t {
	case Abort:
		return "ABORT"
	case Commit:
		return "COMMIT"
	}
	return fmt.Sprintf("CONTROL(%d)", int16(t))
}
