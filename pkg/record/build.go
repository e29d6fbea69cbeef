package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Options are what a batch that is built says about itself. The zero value is
// an uncompressed batch at offset 0 of no producer, as clients send it.
type Options struct {
	Codec       Codec
	Level       int // of the codec, as in compression.<codec>.level; 0: its default
	BaseOffset  int64
	LeaderEpoch int32

	Producer      *Producer // nil: not idempotent
	Transactional bool
	Control       bool

	// LogAppendTime makes AppendTime (ms) the timestamp of every record.
	LogAppendTime bool
	AppendTime    int64
	// DeleteHorizon is set where it is above 0 (ms); see Batch.DeleteHorizon.
	DeleteHorizon int64
	// LastOffsetDelta is the least span of the batch: compaction keeps the
	// span of a batch whose last records are gone.
	LastOffsetDelta int32
	// MaxBytes is the most that the batch may take; 0: what an int32 counts.
	MaxBytes int
}

// A Producer names who sent a batch, and where it is in the sequence.
type Producer struct {
	ID           int64
	Epoch        int16
	BaseSequence int32
}

// A Builder makes one batch out of records, compressing them as they come.
// After an error it is of no more use.
type Builder struct {
	o       Options
	out     bytes.Buffer // header, then the records as they go out
	w       *deflater    // nil: uncompressed
	scratch []byte
	count   int32
	last    int32 // offset delta of the last record; -1: none
	base    int64 // timestamp that deltas count from, ms
	max     int64
	err     error
}

// NewBuilder starts a batch.
func NewBuilder(o Options) *Builder {
	b := new(Builder)
	b.start(o, 0)
	return b
}

var noHeader [HeaderSize]byte

// start begins another batch, of about size bytes, in the memory of the one before.
func (b *Builder) start(o Options, size int) {
	if o.MaxBytes == 0 {
		o.MaxBytes = math.MaxInt32
	}
	b.o, b.count, b.last, b.base, b.max = o, 0, -1, NoTimestamp, NoTimestamp
	if o.DeleteHorizon > 0 {
		b.base = o.DeleteHorizon
	}
	b.out.Reset()
	b.out.Grow(HeaderSize + size)
	b.out.Write(noHeader[:])
	k, err := kindOf(o.Codec, o.Level)
	if err == nil && o.Codec != None {
		b.w, err = newDeflater(k, &b.out)
	}
	b.err = err
}

// Append adds a record at the next offset.
func (b *Builder) Append(timestamp int64, key, value []byte, headers ...Header) error {
	return b.Add(Record{OffsetDelta: b.last + 1, Timestamp: timestamp, Key: key, Value: value, Headers: headers})
}

// Add adds a record at its own OffsetDelta, which is above that of the one
// before. MESSAGE_TOO_LARGE: the batch has become larger than Options.MaxBytes.
func (b *Builder) Add(r Record) error {
	if b.err != nil {
		return b.err
	}
	if r.OffsetDelta <= b.last {
		return b.fail(fmt.Errorf("record: offset delta %d after %d", r.OffsetDelta, b.last))
	}
	if b.count == 0 && b.o.DeleteHorizon <= 0 {
		b.base = r.Timestamp
	}
	b.scratch = appendRecord(b.scratch[:0], r, b.base)
	if err := b.write(b.scratch); err != nil {
		return err
	}
	b.count, b.last, b.max = b.count+1, r.OffsetDelta, max(b.max, r.Timestamp)
	return nil
}

// write compresses p, and watches the size of what came out.
func (b *Builder) write(p []byte) error {
	var err error
	if b.w == nil {
		_, err = b.out.Write(p)
	} else {
		_, err = b.w.Write(p)
	}
	if err == nil && b.out.Len() > b.o.MaxBytes {
		err = tooLarge(b.out.Len(), b.o.MaxBytes, "the log")
	}
	if err != nil {
		return b.fail(err)
	}
	return nil
}

// fail makes err the answer from now on.
func (b *Builder) fail(err error) error {
	b.err = err
	if b.w != nil {
		b.w.giveBack()
		b.w = nil
	}
	return err
}

var errBuilt = errors.New("record: the batch has been built")

// Batch ends the batch and returns it, checksum and all. A batch without
// records is a header alone, as compaction leaves one to keep a producer's
// sequence (DefaultRecordBatch.writeEmptyHeader).
func (b *Builder) Batch() (Batch, error) {
	if b.err != nil {
		return nil, b.err
	}
	if b.w != nil {
		if err := b.w.finish(); err != nil {
			return nil, b.fail(err)
		}
		b.w = nil
	}
	if b.count == 0 {
		b.out.Truncate(HeaderSize)
		b.o.Codec = None
	}
	if err := b.write(nil); err != nil {
		return nil, err
	}
	b.err = errBuilt
	batch := Batch(b.out.Bytes())
	b.header(batch)
	return batch, nil
}

func (b *Builder) header(h Batch) {
	o := &b.o
	attributes := int16(o.Codec)
	highest := b.max
	if o.LogAppendTime {
		attributes, highest = attributes|attrLogAppendTime, o.AppendTime
	}
	if o.Transactional {
		attributes |= attrTransactional
	}
	if o.Control {
		attributes |= attrControl
	}
	if o.DeleteHorizon > 0 {
		attributes |= attrHorizon
	}
	p := Producer{ID: NoProducerID, Epoch: NoProducerEpoch, BaseSequence: NoSequence}
	if o.Producer != nil {
		p = *o.Producer
	}
	h.SetBaseOffset(o.BaseOffset)
	binary.BigEndian.PutUint32(h[8:], uint32(len(h)-LengthEnd))
	h.SetLeaderEpoch(o.LeaderEpoch)
	h[magicOffset] = Magic
	h.SetAttributes(attributes)
	binary.BigEndian.PutUint32(h[23:], uint32(max(b.last, o.LastOffsetDelta)))
	binary.BigEndian.PutUint64(h[27:], uint64(b.base))
	h.SetMaxTimestamp(highest)
	binary.BigEndian.PutUint64(h[43:], uint64(p.ID))
	binary.BigEndian.PutUint16(h[51:], uint16(p.Epoch))
	binary.BigEndian.PutUint32(h[53:], uint32(p.BaseSequence))
	binary.BigEndian.PutUint32(h[57:], uint32(b.count))
	h.SetCRC()
}

// appendRecord appends r as DefaultRecord.writeTo writes it.
func appendRecord(p []byte, r Record, base int64) []byte {
	// The size comes first and its length depends on it: leave room for the
	// longest, and move what follows down.
	start := len(p)
	p = append(p, make([]byte, binary.MaxVarintLen32)...)
	p = append(p, 0) // attributes
	p = binary.AppendVarint(p, r.Timestamp-base)
	p = binary.AppendVarint(p, int64(r.OffsetDelta))
	p = appendField(p, r.Key)
	p = appendField(p, r.Value)
	p = binary.AppendVarint(p, int64(len(r.Headers)))
	for _, h := range r.Headers {
		p = binary.AppendVarint(p, int64(len(h.Key)))
		p = append(p, h.Key...)
		p = appendField(p, h.Value)
	}
	body := p[start+binary.MaxVarintLen32:]
	n := binary.PutVarint(p[start:], int64(len(body)))
	copy(p[start+n:], body)
	return p[:start+n+len(body)]
}

func appendField(p, field []byte) []byte {
	if field == nil {
		return append(p, 1) // -1
	}
	p = binary.AppendVarint(p, int64(len(field)))
	return append(p, field...)
}
