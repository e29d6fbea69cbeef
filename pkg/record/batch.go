// Package record is the record batch, message format v2 (KIP-98): a view of
// its header, its checksum, one streaming pass through its records whatever
// codec they are compressed with, and a builder.
//
//	offset  size  field
//	     0     8  base offset                 the broker's
//	     8     4  batch length                bytes after this field
//	    12     4  partition leader epoch      the broker's
//	    16     1  magic                       2
//	    17     4  CRC-32C                     of all bytes from 21 on
//	    21     2  attributes                  codec, timestamp type, transactional, control, horizon
//	    23     4  last offset delta
//	    27     8  base timestamp              ms
//	    35     8  max timestamp               ms; the broker recomputes it
//	    43     8  producer id                 -1: none
//	    51     2  producer epoch
//	    53     4  base sequence
//	    57     4  record count
//	    61        records, compressed together
package record

import (
	"encoding/binary"
	"hash/crc32"
)

const (
	// HeaderSize is the length of a batch's header, in bytes: no batch is shorter.
	HeaderSize = 61
	// LengthEnd is the offset after the batch length field, which counts the bytes after itself.
	LengthEnd = 12
	// Magic is the message format that is spoken and stored.
	Magic = 2
	// NoTimestamp is the timestamp of a record that has none.
	NoTimestamp int64 = -1
	// NoProducerID is the producer id of a batch that is not idempotent.
	NoProducerID int64 = -1
	// NoProducerEpoch is the producer epoch of such a batch.
	NoProducerEpoch int16 = -1
	// NoSequence is the base sequence of such a batch, and of a control batch.
	NoSequence int32 = -1
)

// Attribute bits of a batch.
const (
	attrCodec         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
	attrHorizon       = 0x40
	attrKnown         = 0x7f // the other bits are cleared when the broker patches the word
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Batch is the bytes of one whole record batch. Its methods read and patch
// the header in place; they want at least HeaderSize bytes, which Parse
// sees to.
type Batch []byte

// BaseOffset is the offset of the first record.
func (b Batch) BaseOffset() int64 { return int64(binary.BigEndian.Uint64(b)) }

// SetBaseOffset patches the base offset, which the checksum does not cover.
func (b Batch) SetBaseOffset(o int64) { binary.BigEndian.PutUint64(b, uint64(o)) }

// Size is the length of the whole batch in bytes, as its header says.
func (b Batch) Size() int { return LengthEnd + int(int32(binary.BigEndian.Uint32(b[8:]))) }

// LeaderEpoch is the partition leader epoch that the batch was appended in.
func (b Batch) LeaderEpoch() int32 { return int32(binary.BigEndian.Uint32(b[12:])) }

// SetLeaderEpoch patches the epoch, which the checksum does not cover.
func (b Batch) SetLeaderEpoch(e int32) { binary.BigEndian.PutUint32(b[12:], uint32(e)) }

// MagicByte is the message format.
func (b Batch) MagicByte() int8 { return int8(b[16]) }

// CRC is the stored checksum.
func (b Batch) CRC() uint32 { return binary.BigEndian.Uint32(b[17:]) }

// ComputeCRC is the checksum that the batch's bytes have.
func (b Batch) ComputeCRC() uint32 { return crc32.Checksum(b[21:], castagnoli) }

// SetCRC stores the checksum that the batch's bytes have.
func (b Batch) SetCRC() { binary.BigEndian.PutUint32(b[17:], b.ComputeCRC()) }

// Attributes is the attribute word.
func (b Batch) Attributes() int16 { return int16(binary.BigEndian.Uint16(b[21:])) }

// SetAttributes patches the attribute word. The checksum covers it.
func (b Batch) SetAttributes(a int16) { binary.BigEndian.PutUint16(b[21:], uint16(a)) }

// Codec is how the records are compressed.
func (b Batch) Codec() Codec { return Codec(b.Attributes() & attrCodec) }

// LogAppendTime says whether max timestamp, set by the broker, is the timestamp of every record.
func (b Batch) LogAppendTime() bool { return b.Attributes()&attrLogAppendTime != 0 }

// Transactional says whether the batch belongs to a transaction.
func (b Batch) Transactional() bool { return b.Attributes()&attrTransactional != 0 }

// Control says whether the batch is a marker that consumers skip.
func (b Batch) Control() bool { return b.Attributes()&attrControl != 0 }

// DeleteHorizon is when tombstones and markers of the batch may go, in ms;
// the first cleaning of the batch sets it, in place of the base timestamp.
func (b Batch) DeleteHorizon() (ms int64, ok bool) {
	if b.Attributes()&attrHorizon == 0 {
		return 0, false
	}
	return b.BaseTimestamp(), true
}

// LastOffsetDelta is the last offset less the base offset.
func (b Batch) LastOffsetDelta() int32 { return int32(binary.BigEndian.Uint32(b[23:])) }

// LastOffset is the offset of the last record.
func (b Batch) LastOffset() int64 { return b.BaseOffset() + int64(b.LastOffsetDelta()) }

// BaseTimestamp is what the records' timestamp deltas count from, in ms.
func (b Batch) BaseTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[27:])) }

// MaxTimestamp is the largest timestamp of the batch, in ms.
func (b Batch) MaxTimestamp() int64 { return int64(binary.BigEndian.Uint64(b[35:])) }

// SetMaxTimestamp patches the largest timestamp. The checksum covers it.
func (b Batch) SetMaxTimestamp(ms int64) { binary.BigEndian.PutUint64(b[35:], uint64(ms)) }

// ProducerID is the idempotent producer's id, or NoProducerID.
func (b Batch) ProducerID() int64 { return int64(binary.BigEndian.Uint64(b[43:])) }

// ProducerEpoch is the producer's epoch.
func (b Batch) ProducerEpoch() int16 { return int16(binary.BigEndian.Uint16(b[51:])) }

// BaseSequence is the sequence number of the first record, or NoSequence.
func (b Batch) BaseSequence() int32 { return int32(binary.BigEndian.Uint32(b[53:])) }

// LastSequence is the sequence number of the last record; it wraps from 2^31-1 to 0.
func (b Batch) LastSequence() int32 {
	base := b.BaseSequence()
	if base == NoSequence {
		return NoSequence
	}
	return AddSequence(base, b.LastOffsetDelta())
}

// Count is the number of records that the header declares.
func (b Batch) Count() int32 { return int32(binary.BigEndian.Uint32(b[57:])) }

// AddSequence is sequence plus n, wrapping from 2^31-1 to 0 (DefaultRecordBatch.incrementSequence).
func AddSequence(sequence, n int32) int32 {
	return int32((int64(sequence) + int64(n)) & 0x7fffffff)
}
