package record

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

const (
	magicOffset = 16
	// headerToMagic is what must be there before the format of a message set can be told.
	headerToMagic = magicOffset + 1
	// minOldLength is the least length field of any format: that of a v0 message.
	minOldLength = 14
)

// Next splits the first whole batch off buf, of whatever format, as Kafka does
// before it looks closer (ByteBufferLogInputStream.nextBatch). b aliases buf,
// and may be shorter than a header of format v2.
//
// ErrShort: buf ends within the batch. ErrCorrupt (CORRUPT_MESSAGE): the length
// field is below that of any format's smallest, or the magic is no format's.
func Next(buf []byte) (b Batch, rest []byte, err error) {
	if len(buf) < LengthEnd {
		return nil, nil, ErrShort
	}
	// The length is judged before anything else of the batch is there.
	length := int64(int32(binary.BigEndian.Uint32(buf[8:])))
	if length < minOldLength {
		return nil, nil, corruptf("Record size %d is less than the minimum record overhead (%d)", length, minOldLength)
	}
	if len(buf) < headerToMagic {
		return nil, nil, ErrShort
	}
	if magic := int8(buf[magicOffset]); magic < 0 || magic > Magic {
		return nil, nil, corruptf("Invalid magic found in record: %d", magic)
	}
	size := length + LengthEnd
	if size > int64(len(buf)) {
		return nil, nil, ErrShort
	}
	return Batch(buf[:size:size]), buf[size:], nil
}

// Parse splits the first whole batch off buf, which is to be of format v2; b
// aliases it and has at least HeaderSize bytes. Neither the checksum nor the
// records are looked at.
//
// Errors are those of Next, and ErrCorrupt for a length below a header's. A
// batch of format v0 or v1 is INVALID_RECORD.
func Parse(buf []byte) (b Batch, rest []byte, err error) {
	b, rest, err = Next(buf)
	switch {
	case err != nil:
		return nil, nil, err
	case b.MagicByte() != Magic:
		return nil, nil, &InvalidError{Err: kerr.InvalidRecord, Message: fmt.Sprintf("Only record batches with magic version 2 are accepted, not %d", b.MagicByte())}
	case len(b) < HeaderSize:
		return nil, nil, corruptf("Record batch is corrupt (the size %d is smaller than the minimum allowed overhead %d)", len(b), HeaderSize)
	}
	return b, rest, nil
}

// CheckCRC says whether the whole batch b is as long as its header says and
// has the checksum that its header says: ErrCorrupt if not.
func (b Batch) CheckCRC() error {
	if len(b) < HeaderSize || len(b) != b.Size() {
		return corruptf("%d bytes are not one batch", len(b))
	}
	if sum := b.ComputeCRC(); sum != b.CRC() {
		return corruptf("Record is corrupt (stored crc = %d, computed crc = %d)", b.CRC(), sum)
	}
	return nil
}

func corruptf(format string, args ...any) error {
	return &InvalidError{Err: kerr.CorruptMessage, Message: fmt.Sprintf(format, args...)}
}
