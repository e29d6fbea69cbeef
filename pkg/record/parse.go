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
	// minLength is the least length field of a v2 batch.
	minLength = HeaderSize - LengthEnd
)

// Parse splits the first whole batch off buf; b aliases it and has at least
// HeaderSize bytes. Neither the checksum nor the records are looked at.
//
// ErrShort: buf ends within the batch. ErrCorrupt (CORRUPT_MESSAGE): the
// length field is below a header's, or the magic is no format's. A message set
// of format v0 or v1 is INVALID_RECORD, as in ProduceRequest.validateRecords.
func Parse(buf []byte) (b Batch, rest []byte, err error) {
	if len(buf) < LengthEnd {
		return nil, nil, ErrShort
	}
	// The length is judged before anything else of the batch is there
	// (ByteBufferLogInputStream.nextBatchSize).
	length := int64(int32(binary.BigEndian.Uint32(buf[8:])))
	if length < minOldLength {
		return nil, nil, corruptf("Record size %d is less than the minimum record overhead (%d)", length, minOldLength)
	}
	if len(buf) < headerToMagic {
		return nil, nil, ErrShort
	}
	magic := int8(buf[magicOffset])
	if magic < 0 || magic > Magic {
		return nil, nil, corruptf("Invalid magic found in record: %d", magic)
	}
	size := length + LengthEnd
	if size > int64(len(buf)) {
		return nil, nil, ErrShort
	}
	if magic != Magic {
		return nil, nil, &InvalidError{Err: kerr.InvalidRecord, Message: fmt.Sprintf("Only record batches with magic version 2 are accepted, not %d", magic)}
	}
	if length < minLength {
		return nil, nil, corruptf("Record batch is corrupt (the size %d is smaller than the minimum allowed overhead %d)", size, HeaderSize)
	}
	return Batch(buf[:size:size]), buf[size:], nil
}

// ParseHeader is the view of a batch's header alone, for a reader that takes
// the header first and learns from Size how much there is to read. h has at
// least HeaderSize bytes; CheckHeader says whether they are a header.
func ParseHeader(h []byte) (Batch, error) {
	if err := CheckHeader(h); err != nil {
		return nil, err
	}
	return Batch(h[:HeaderSize:HeaderSize]), nil
}

// CheckHeader says whether the first HeaderSize bytes of h can be the header
// of a stored batch: its length holds a header, its magic is 2, and neither
// its offset, its span nor its count is negative or the count beyond the span.
// ErrShort: h is shorter than a header. ErrCorrupt: it is none.
func CheckHeader(h []byte) error {
	if len(h) < HeaderSize {
		return ErrShort
	}
	b := Batch(h)
	switch {
	case b.Size() < HeaderSize:
		return corruptf("batch of %d bytes is smaller than its header", b.Size())
	case b.MagicByte() != Magic:
		return corruptf("magic %d is not %d", b.MagicByte(), Magic)
	case b.BaseOffset() < 0 || b.LastOffsetDelta() < 0 || b.LastOffset() < 0:
		return corruptf("offsets %d + %d", b.BaseOffset(), b.LastOffsetDelta())
	case b.Count() < 0 || int64(b.Count()) > int64(b.LastOffsetDelta())+1:
		return corruptf("%d records at %d offsets", b.Count(), int64(b.LastOffsetDelta())+1)
	}
	return nil
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
