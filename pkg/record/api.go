package record

// This file is the agreed surface of the package. The implementation may move
// the declarations to better files; names and meanings stay.

import "iter"

// Parse splits the first whole batch off buf. ErrShort: buf ends within the
// batch. ErrCorrupt (CORRUPT_MESSAGE): the length field is below a header's, or the magic is not 2.
// The checksum is not looked at.
func Parse(buf []byte) (b Batch, rest []byte, err error) { panic("not built") }

// A Record is one record of a batch. Key, Value and Headers alias a buffer
// that is reused by the next step of the iteration.
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
// time. A record that can't be read ends it with an error.
func (b Batch) Records() iter.Seq2[Record, error] { panic("not built") }

// Rules are what a partition demands of the records of a client's batch.
type Rules struct {
	Now           int64 // ms, of the domain clock
	LogAppendTime bool  // message.timestamp.type=LogAppendTime
	BeforeMaxMs   int64 // message.timestamp.before.max.ms
	AfterMaxMs    int64 // message.timestamp.after.max.ms
	RequireKey    bool  // cleanup.policy has compact
	MaxBytes      int   // max.message.bytes, of the whole batch
}

// A Verdict is what the one pass over a valid batch has found.
type Verdict struct {
	MaxTimestamp      int64 // of the records, in ms; NoTimestamp if none has one
	MaxTimestampDelta int32 // offset delta of the first record that has it
	Consecutive       bool  // the inner offsets are 0..n-1
}

// A RecordError says which record of a refused batch is bad, and why.
type RecordError struct {
	Index   int32
	Message string
}

// An InvalidError refuses a batch because of its records: the error is a
// kafka.MessageError with INVALID_RECORD or INVALID_TIMESTAMP.
type InvalidError struct {
	Err     error
	Records []RecordError
}

func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the Kafka error.
func (e *InvalidError) Unwrap() error { return e.Err }

// Validate reads a client's batch before it is stored (ST-10, ST-11): the
// checks of UnifiedLog.analyzeAndValidateRecords and LogValidator in their
// order, in one streaming pass that never holds the inflated records.
func Validate(b Batch, r *Rules) (Verdict, error) { panic("not built") }

// Rebuild makes a new batch of the same records in another codec, with inner
// offsets 0..n-1 (LogValidator's "recompress" path).
// level is the codec's; ignored where the codec has none.
func Rebuild(b Batch, codec Codec, level int) (Batch, error) { panic("not built") }
