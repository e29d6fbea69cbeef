package record

import (
	"iter"
	"math"
)

// A Record is one record of a batch. Key, Value and the headers' values alias
// a buffer that is reused by the next step of an iteration.
type Record struct {
	OffsetDelta int32
	Timestamp   int64  // ms; the batch's max timestamp where it is LogAppendTime
	Key, Value  []byte // nil: null
	Headers     []Header
}

// A Header is one header of a record.
type Header struct {
	Key   string
	Value []byte // nil: null
}

// Records iterates over the records of a batch, through its codec, one at a
// time: only the record of the step is held. A record that can't be read ends
// it with an *InvalidError, and so do bytes that are left after the last.
//
// The body of the loop must not read another compressed batch: it holds the
// memory of its decompressor, for which another one might wait.
func (b Batch) Records() iter.Seq2[Record, error] { return b.RecordsWithin(math.MaxInt32) }

// RecordsWithin is Records that ends with an error at a record of more than
// most bytes: whoever has not validated the batch does not know how much one inflates to.
func (b Batch) RecordsWithin(most int32) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := b.eachRecord(most, yield); err != nil {
			yield(Record{}, err)
		}
	}
}

// eachRecord yields all records, and returns nil also where yield stopped it.
func (b Batch) eachRecord(most int32, yield func(Record, error) bool) error {
	count := b.Count()
	if count < 0 {
		return errCount
	}
	if count == 0 {
		return nil // nothing is compressed in an empty batch, whatever its codec
	}
	var s scanner
	if err := s.open(b); err != nil {
		return err
	}
	defer s.close()
	s.most = most
	var rec Record
	var held []byte
	for range count {
		var body []byte
		var err error
		if body, held, err = s.body(held); err != nil {
			return err
		}
		if err := rec.parse(body, b); err != nil {
			return err
		}
		if !yield(rec, nil) {
			return nil
		}
	}
	if end, err := s.atEnd(); err != nil {
		return err
	} else if !end {
		return errTrailing
	}
	return nil
}

// body returns the bytes of the next record: in place if the block has all of
// them, else gathered in held, which grows with what arrives and not by what
// the record's size promises.
func (s *scanner) body(held []byte) (body, buf []byte, err error) {
	size, ok := s.varint()
	if !ok {
		return nil, held, s.failure()
	}
	if size < 0 {
		return nil, held, errSize
	}
	if size > s.most {
		return nil, held, invalidf("a record of %d bytes, where at most %d are wanted", size, s.most)
	}
	n := int(size)
	if n <= len(s.buf)-s.pos {
		s.pos += n
		return s.buf[s.pos-n : s.pos : s.pos], held, nil
	}
	if s.more == nil {
		return nil, held, errSize
	}
	held = held[:0]
	for len(held) < n {
		if s.pos == len(s.buf) && !s.refill() {
			return nil, held, s.failure()
		}
		take := min(n-len(held), len(s.buf)-s.pos)
		held = append(held, s.buf[s.pos:s.pos+take]...)
		s.pos += take
	}
	return held[:n:n], held, nil
}

// parse reads a record off its body. The slice of headers, and a header's key
// that is the same as in the record before, are used again.
func (r *Record) parse(body []byte, b Batch) error {
	var delta int64
	var i int
	if delta, i = varlongAt(body, 1); i <= 0 {
		return errStructure
	}
	r.Timestamp = b.timestamp(delta)
	if r.OffsetDelta, i = varintAt(body, i); i <= 0 {
		return errStructure
	}
	if r.Key, i = bytesAt(body, i); i <= 0 {
		return errStructure
	}
	if r.Value, i = bytesAt(body, i); i <= 0 {
		return errStructure
	}
	count, i := varintAt(body, i)
	if i <= 0 || count < 0 {
		return errStructure
	}
	if i = r.parseHeaders(body, i, int(count)); i <= 0 {
		return errStructure
	}
	if i != len(body) {
		return errSize
	}
	return nil
}

// parseHeaders reads count headers at p[i], and returns what follows them.
func (r *Record) parseHeaders(p []byte, i, count int) int {
	old := r.Headers[:cap(r.Headers)]
	r.Headers = r.Headers[:0]
	for n := range count {
		var key []byte
		var h Header
		if key, i = bytesAt(p, i); i <= 0 || key == nil {
			return 0
		}
		if h.Value, i = bytesAt(p, i); i <= 0 {
			return 0
		}
		if n < len(old) && old[n].Key == string(key) {
			h.Key = old[n].Key
		} else {
			h.Key = string(key)
		}
		r.Headers = append(r.Headers, h)
	}
	return i
}

// bytesAt returns the bytes of a length at p[i], nil where it is negative, and
// what follows them; 0 if they are not there.
func bytesAt(p []byte, i int) ([]byte, int) {
	n, after := fieldAt(p, i)
	if after <= 0 || n < 0 {
		return nil, after
	}
	return p[after-int(n) : after : after], after
}

// timestamp is that of a record with this delta, in ms.
func (b Batch) timestamp(delta int64) int64 {
	if b.LogAppendTime() {
		return b.MaxTimestamp()
	}
	return b.BaseTimestamp() + delta
}

// FirstAtOrAfter finds the first record with a timestamp of at least ts (ms),
// without holding any (FileRecords.searchForTimestamp).
func (b Batch) FirstAtOrAfter(ts int64) (offset, timestamp int64, ok bool, err error) {
	return b.FirstAtOrAfterFrom(ts, math.MinInt64)
}

// FirstAtOrAfterFrom is FirstAtOrAfter among the records at the offset from
// and after it: a log may start within a batch.
func (b Batch) FirstAtOrAfterFrom(ts, from int64) (offset, timestamp int64, ok bool, err error) {
	if b.MaxTimestamp() < ts || b.LastOffset() < from || b.Count() == 0 {
		return 0, 0, false, nil
	}
	var s scanner
	if err := s.open(b); err != nil {
		return 0, 0, false, err
	}
	defer s.close()
	var h head
	for range b.Count() {
		if err := s.next(&h); err != nil {
			return 0, 0, false, err
		}
		offset, timestamp = b.BaseOffset()+int64(h.offsetDelta), b.timestamp(h.timestampDelta)
		if timestamp >= ts && offset >= from {
			return offset, timestamp, true, nil
		}
	}
	return 0, 0, false, nil
}

// FirstWithMaxTimestamp finds the first record whose timestamp is the batch's
// max timestamp (RecordBatch.offsetOfMaxTimestamp).
func (b Batch) FirstWithMaxTimestamp() (offset, timestamp int64, ok bool, err error) {
	return b.FirstAtOrAfter(b.MaxTimestamp())
}
