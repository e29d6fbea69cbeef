package record

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Rules are what a partition demands of the records of a client's batch.
type Rules struct {
	Partition     string // such as "demo-0", for the texts of errors
	Now           int64  // ms, of the domain clock
	LogAppendTime bool   // message.timestamp.type=LogAppendTime
	BeforeMaxMs   int64  // message.timestamp.before.max.ms
	AfterMaxMs    int64  // message.timestamp.after.max.ms
	RequireKey    bool   // cleanup.policy has compact
	MaxBytes      int    // max.message.bytes, of the whole batch
	// MaxRecordBytes is max.decompressed.message.bytes: the largest record of a
	// compressed batch, its own size field not counted. 0: no limit.
	MaxRecordBytes int32
}

// A Verdict is what the one pass over a valid batch has found.
type Verdict struct {
	MaxTimestamp      int64 // of the records, in ms; NoTimestamp if none has one
	MaxTimestampDelta int32 // offset delta of the first record that has it; -1 if none has one
	// Consecutive says that the inner offsets are 0..n-1. A compressed batch
	// whose are not is one that Kafka rebuilds (LogValidator); see Rebuild.
	Consecutive bool
}

// Validate reads a client's batch before it is stored (ST-10, ST-11): the
// checks of UnifiedLog.analyzeAndValidateRecords and LogValidator in their
// order, in one streaming pass that never holds the inflated records. b is
// what Parse has split off. Every error is an *InvalidError.
//
// It may wait for memory when the batch needs a large zstd window.
func Validate(b Batch, r *Rules) (Verdict, error) {
	if err := checkBatch(b, r); err != nil {
		return Verdict{}, err
	}
	var s scanner
	if err := s.open(b); err != nil {
		return Verdict{}, err
	}
	defer s.close()
	if s.more != nil && r.MaxRecordBytes > 0 {
		s.most = r.MaxRecordBytes
	}
	return checkRecords(b, r, &s)
}

// checkBatch are the checks that need no record, in Kafka's order.
func checkBatch(b Batch, r *Rules) error {
	if len(b) < HeaderSize || len(b) != b.Size() {
		return b.CheckCRC()
	}
	if b.BaseOffset() != 0 {
		return invalidf("The baseOffset of the record batch in the append to %s should be 0, but it is %d", r.Partition, b.BaseOffset())
	}
	if len(b) > r.MaxBytes {
		return tooLarge(len(b), r.MaxBytes, r.Partition)
	}
	if b.MagicByte() != Magic || b.ComputeCRC() != b.CRC() {
		return corruptf("Record is corrupt (stored crc = %d) in topic partition %s.", b.CRC(), r.Partition)
	}
	if err := b.Codec().check(); err != nil {
		return err
	}
	return checkCounts(b, r)
}

// checkCounts is LogValidator.validateBatch for a client's batch.
func checkCounts(b Batch, r *Rules) error {
	span := int64(b.LastOffsetDelta()) + 1
	switch {
	case span <= 0:
		return invalidf("Batch has an invalid offset range: [%d, %d] in topic partition %s", b.BaseOffset(), b.LastOffset(), r.Partition)
	case b.Count() <= 0:
		return invalidf("Invalid reported count for record batch: %d in topic partition %s", b.Count(), r.Partition)
	case span != int64(b.Count()):
		return invalidf("Inconsistent batch offset range [%d, %d] and count of records %d in topic partition %s",
			b.BaseOffset(), b.LastOffset(), b.Count(), r.Partition)
	case b.Control():
		return invalidf("Clients are not allowed to write control records in topic partition %s", r.Partition)
	case b.ProducerID() > NoProducerID && b.BaseSequence() < 0:
		return invalidf("Invalid sequence number %d in record batch with producerId %d in topic partition %s",
			b.BaseSequence(), b.ProducerID(), r.Partition)
	}
	return nil
}

// checkRecords walks through all records. A record that can't be read ends the
// walk and outweighs what was found before; bad ones are collected.
func checkRecords(b Batch, r *Rules, s *scanner) (Verdict, error) {
	v := Verdict{MaxTimestamp: NoTimestamp, MaxTimestampDelta: -1, Consecutive: true}
	fromHeader := b.LogAppendTime()
	base, header := b.BaseTimestamp(), b.MaxTimestamp()
	var bad *rejects
	var h head
	for i := range b.Count() {
		if err := s.next(&h); err != nil {
			return Verdict{}, err
		}
		ts := base + h.timestampDelta
		if fromHeader {
			ts = header
		}
		if h.offsetDelta != i {
			v.Consecutive = false
		}
		if ts > v.MaxTimestamp {
			v.MaxTimestamp, v.MaxTimestampDelta = ts, h.offsetDelta
		}
		if (h.keySize < 0 && r.RequireKey) || r.badTime(ts, fromHeader) {
			if bad == nil {
				bad = &rejects{}
			}
			bad.add(b, r, i, ts, &h)
		}
	}
	if end, err := s.atEnd(); err != nil {
		return Verdict{}, err
	} else if !end {
		return Verdict{}, errTrailing
	}
	if bad != nil {
		return Verdict{}, bad.err()
	}
	return v, nil
}

// badTime is LogValidator.validateTimestamp: the limits count for CreateTime
// topics and records that have a timestamp; a batch that claims to be
// LogAppendTime is refused otherwise.
func (r *Rules) badTime(ts int64, fromHeader bool) bool {
	if r.LogAppendTime || ts == NoTimestamp {
		return fromHeader
	}
	return r.outOfRange(ts)
}

func (r *Rules) outOfRange(ts int64) bool {
	age := r.Now - ts
	return age > r.BeforeMaxMs || -age > r.AfterMaxMs
}

func invalidf(format string, args ...any) error {
	return &InvalidError{Err: kerr.InvalidRecord, Message: fmt.Sprintf(format, args...)}
}

func tooLarge(size, limit int, partition string) error {
	return &InvalidError{Err: kerr.MessageTooLarge, Message: fmt.Sprintf(
		"The record batch size in the append to %s is %d bytes which exceeds the maximum configured value of %d.", partition, size, limit)}
}
