package producer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// The layout of a snapshot, all big endian:
//
//	offset  size  field
//	     0     4  magic "DZPS"
//	     4     2  version, 1 or 2
//	     6     4  CRC-32C of all bytes from 10 on
//	    10     8  offset: the state after all batches below it
//	    18     1  1 if there is a batch before the offset, else 0
//	    19     4  that batch's CRC field, or 0
//	          +4  version 2 alone, at 23: another CRC field that it may have, not 0; the rest follows
//	    23     4  number of producers
//	    27        the producers, by ascending id:
//	     +0    8  producer id
//	     +8    2  epoch
//	    +10    4  coordinator epoch
//	    +14    8  last timestamp
//	    +22    8  first offset of the open transaction, or -1
//	    +30    1  number of cached batches, 0 to 5
//	    +31       the batches, oldest first:
//	      +0   4  last sequence
//	      +4   4  last offset delta
//	      +8   8  last offset
//	     +16   8  timestamp
//
// Kafka's own snapshot keeps one batch a producer and so forgets duplicates
// over a restart (ST-9). The CRC of the batch before binds the snapshot to one history of the
// log: after a crash that cut the log, and other appends, it does not fit any more. Version 2 is written
// before compaction puts a rewritten batch in that one's place: the snapshot fits before and after.
const (
	snapshotMagic     = "DZPS"
	snapshotVersion   = 1
	snapshotRewritten = 2
	snapshotHeader    = 27
	snapshotChecked   = 10
	snapshotProducer  = 31
	snapshotBatch     = 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrSnapshot is wrapped by all errors of Decode: the snapshot is of no use.
var ErrSnapshot = errors.New("unusable producer snapshot")

// A Binding ties a snapshot to the place in the log where it was taken.
type Binding struct {
	Offset int64  // the state is that after all batches below it
	After  bool   // there is a batch before Offset
	CRC    uint32 // its CRC field; 0 without one
	// Also is the CRC field of the batch that compaction is putting in its place; 0: it is not.
	Also uint32
}

// Fits says whether a batch with this CRC field is the one before Offset.
func (at Binding) Fits(crc uint32) bool {
	return at.After && (crc == at.CRC || at.Also != 0 && crc == at.Also)
}

// Encode appends the snapshot to buf.
func (s *State) Encode(buf []byte, at Binding) []byte {
	start := len(buf)
	buf = slices.Grow(buf, snapshotHeader+len(s.producers)*(snapshotProducer+CachedBatches*snapshotBatch))
	buf = append(buf, snapshotMagic...)
	version := snapshotVersion
	if at.Also != 0 {
		version = snapshotRewritten
	}
	buf = binary.BigEndian.AppendUint16(buf, uint16(version))
	buf = binary.BigEndian.AppendUint32(buf, 0)
	buf = binary.BigEndian.AppendUint64(buf, uint64(at.Offset))
	after := byte(0)
	if at.After {
		after = 1
	}
	buf = append(buf, after)
	buf = binary.BigEndian.AppendUint32(buf, at.CRC)
	if at.Also != 0 {
		buf = binary.BigEndian.AppendUint32(buf, at.Also)
	}
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(s.producers)))
	for _, id := range s.IDs() {
		buf = s.producers[id].encode(buf, id)
	}
	crc := crc32.Checksum(buf[start+snapshotChecked:], castagnoli)
	binary.BigEndian.PutUint32(buf[start+6:], crc)
	return buf
}

func (e *entry) encode(buf []byte, id int64) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(id))
	buf = binary.BigEndian.AppendUint16(buf, uint16(e.epoch))
	buf = binary.BigEndian.AppendUint32(buf, uint32(e.coordinatorEpoch))
	buf = binary.BigEndian.AppendUint64(buf, uint64(e.lastTimestamp))
	buf = binary.BigEndian.AppendUint64(buf, uint64(e.txnFirst))
	buf = append(buf, e.count)
	for i := range e.count {
		b := e.at(i)
		buf = binary.BigEndian.AppendUint32(buf, uint32(b.LastSequence))
		buf = binary.BigEndian.AppendUint32(buf, uint32(b.LastOffsetDelta))
		buf = binary.BigEndian.AppendUint64(buf, uint64(b.LastOffset))
		buf = binary.BigEndian.AppendUint64(buf, uint64(b.Timestamp))
	}
	return buf
}

// Decode reads a snapshot. The caller compares the binding with its log.
func Decode(buf []byte) (*State, Binding, error) {
	fail := func(format string, args ...any) (*State, Binding, error) {
		return nil, Binding{}, fmt.Errorf("%w: %s", ErrSnapshot, fmt.Sprintf(format, args...))
	}
	if len(buf) < snapshotHeader || string(buf[:4]) != snapshotMagic {
		return fail("no snapshot header in %d bytes", len(buf))
	}
	version := binary.BigEndian.Uint16(buf[4:])
	if version != snapshotVersion && version != snapshotRewritten {
		return fail("version %d", version)
	}
	if crc := crc32.Checksum(buf[snapshotChecked:], castagnoli); crc != binary.BigEndian.Uint32(buf[6:]) {
		return fail("checksum does not match")
	}
	if buf[18] > 1 {
		return fail("flag %d", buf[18])
	}
	at := Binding{Offset: int64(binary.BigEndian.Uint64(buf[10:])), After: buf[18] == 1, CRC: binary.BigEndian.Uint32(buf[19:])}
	if at.Offset < 0 || !at.After && at.CRC != 0 {
		return fail("offset %d", at.Offset)
	}
	if version == snapshotRewritten {
		at.Also = binary.BigEndian.Uint32(buf[23:])
		if buf = buf[4:]; len(buf) < snapshotHeader || !at.After || at.Also == 0 {
			return fail("a rewritten batch of CRC %d", at.Also)
		}
	}
	count, rest := binary.BigEndian.Uint32(buf[23:]), buf[snapshotHeader:]
	if uint64(count)*snapshotProducer > uint64(len(rest)) {
		return fail("%d producers in %d bytes", count, len(rest))
	}
	s := &State{producers: make(map[int64]*entry, count)}
	previous := int64(-1)
	for range count {
		id, e, tail, err := decodeEntry(rest)
		if err != nil {
			return nil, Binding{}, err
		}
		if id <= previous || e.txnFirst >= at.Offset {
			return fail("producer %d out of place", id)
		}
		if first := e.txnFirst; first != noOffset {
			s.setOpen(id, e, first)
		}
		s.producers[id], previous, rest = e, id, tail
	}
	if len(rest) > 0 {
		return fail("%d bytes too many", len(rest))
	}
	return s, at, nil
}

func decodeEntry(buf []byte) (id int64, e *entry, rest []byte, err error) {
	if len(buf) < snapshotProducer {
		return 0, nil, nil, fmt.Errorf("%w: a producer is cut short", ErrSnapshot)
	}
	id = int64(binary.BigEndian.Uint64(buf))
	e = &entry{
		epoch:            int16(binary.BigEndian.Uint16(buf[8:])),
		coordinatorEpoch: int32(binary.BigEndian.Uint32(buf[10:])),
		lastTimestamp:    int64(binary.BigEndian.Uint64(buf[14:])),
		txnFirst:         int64(binary.BigEndian.Uint64(buf[22:])),
	}
	count := buf[30]
	buf = buf[snapshotProducer:]
	if count > CachedBatches || len(buf) < int(count)*snapshotBatch || e.txnFirst < noOffset {
		return 0, nil, nil, fmt.Errorf("%w: producer %d is not one", ErrSnapshot, id)
	}
	for range count {
		e.push(Batch{
			LastSequence:    int32(binary.BigEndian.Uint32(buf)),
			LastOffsetDelta: int32(binary.BigEndian.Uint32(buf[4:])),
			LastOffset:      int64(binary.BigEndian.Uint64(buf[8:])),
			Timestamp:       int64(binary.BigEndian.Uint64(buf[16:])),
		})
		buf = buf[snapshotBatch:]
	}
	return id, e, buf, nil
}
