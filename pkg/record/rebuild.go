package record

import "encoding/binary"

// maxRebuilt bounds a batch that Rebuild makes: no request is larger (socket.request.max.bytes).
const maxRebuilt = 100 << 20

// Rebuild makes a new batch of the same records in another codec, with inner
// offsets 0..n-1 (LogValidator's "recompress" path). Offsets, epochs, producer,
// sequence and the transactional and control bits stay; the delete horizon
// goes. level is the codec's (0: its default); ignored where the codec has none.
// Max timestamp is the records'; the timestamp type stays, for Stamp to set.
//
// Records are streamed from codec to codec, so that the result is all that is
// held. MESSAGE_TOO_LARGE: it is larger than any request may be; see RebuildWithin.
func Rebuild(b Batch, codec Codec, level int) (Batch, error) {
	return RebuildWithin(b, codec, level, maxRebuilt)
}

// RebuildWithin is Rebuild that gives up with MESSAGE_TOO_LARGE once the new
// batch is larger than maxBytes (max.message.bytes), however much b inflates to.
func RebuildWithin(b Batch, codec Codec, level, maxBytes int) (Batch, error) {
	to := NewBuilder(Options{
		Codec: codec, Level: level, MaxBytes: max(maxBytes, 1),
		BaseOffset: b.BaseOffset(), LeaderEpoch: b.LeaderEpoch(),
		Producer:      &Producer{ID: b.ProducerID(), Epoch: b.ProducerEpoch(), BaseSequence: b.BaseSequence()},
		Transactional: b.Transactional(), Control: b.Control(),
		LogAppendTime: b.LogAppendTime(), AppendTime: b.MaxTimestamp(),
	})
	if to.err != nil {
		return nil, to.err
	}
	var s scanner
	if err := s.open(b); err != nil {
		return nil, to.fail(err)
	}
	defer s.close()
	to.base = b.timestamp(0)
	for range b.Count() {
		if err := to.copyRecord(&s, b); err != nil {
			return nil, to.fail(err)
		}
	}
	if end, err := s.atEnd(); err != nil {
		return nil, to.fail(err)
	} else if !end {
		return nil, to.fail(errTrailing)
	}
	return to.Batch()
}

// copyRecord takes the next record of s over: a new head, and the rest of its
// bytes as they come.
func (b *Builder) copyRecord(s *scanner, from Batch) error {
	var h head
	end, err := s.start(&h)
	if err != nil {
		return err
	}
	rest := end - s.offset()
	if rest < 0 {
		return errSize
	}
	timestamp := from.timestamp(h.timestampDelta)
	var fields [1 + binary.MaxVarintLen64 + binary.MaxVarintLen32]byte // the attributes stay 0
	n := 1 + binary.PutVarint(fields[1:], timestamp-b.base)
	n += binary.PutVarint(fields[n:], int64(b.last)+1)
	b.scratch = binary.AppendVarint(b.scratch[:0], int64(n)+rest)
	b.scratch = append(b.scratch, fields[:n]...)
	if err := b.write(b.scratch); err != nil {
		return err
	}
	for rest > 0 {
		if s.pos == len(s.buf) && !s.refill() {
			return s.failure()
		}
		take := min(rest, int64(len(s.buf)-s.pos))
		if err := b.write(s.buf[s.pos : s.pos+int(take)]); err != nil {
			return err
		}
		s.pos += int(take)
		rest -= take
	}
	b.count, b.last, b.max = b.count+1, b.last+1, max(b.max, timestamp)
	return nil
}
