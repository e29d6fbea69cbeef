package record

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

var (
	// ErrShort says that a buffer ends within a batch.
	ErrShort = errors.New("record: the buffer ends within a batch")
	// ErrCorrupt is CORRUPT_MESSAGE: a batch whose length, magic or checksum is
	// broken. errors.Is finds it in the errors of this package.
	ErrCorrupt error = kerr.CorruptMessage
)

// An InvalidError refuses a batch. Err is the code that the client gets:
// INVALID_RECORD, INVALID_TIMESTAMP, MESSAGE_TOO_LARGE, CORRUPT_MESSAGE or, for a
// payload that can't be decompressed, UNKNOWN_SERVER_ERROR.
type InvalidError struct {
	Err *kerr.Error
	// Message is the text of Kafka's exception. Kafka sends it to the client
	// where there are Records, and null otherwise (ReplicaManager.LogAppendResult).
	Message string
	// Records are the bad records in their order, at most maxRecordErrors of
	// them; nil where the batch as a whole is bad.
	Records []RecordError
}

// Error is the code's name and the text.
func (e *InvalidError) Error() string { return e.Err.Message + ": " + e.Message }

// Unwrap returns the Kafka error.
func (e *InvalidError) Unwrap() error { return e.Err }

// A RecordError says which record of a refused batch is bad, and why.
type RecordError struct {
	Index   int32 // of the record in its batch
	Message string
}

// String is ProduceResponse.RecordError's form, which is part of the batch's message.
func (e RecordError) String() string {
	return fmt.Sprintf("RecordError(batchIndex=%d, message='%s')", e.Index, e.Message)
}

// The ways in which records can't be read (DefaultRecord, DefaultRecordBatch).
// They are shared values: nothing is allocated for a hostile batch.
var (
	errPremature = &InvalidError{Err: kerr.InvalidRecord, Message: "Incorrect declared batch size, premature EOF reached"}
	errTrailing  = &InvalidError{Err: kerr.InvalidRecord, Message: "Incorrect declared batch size, records still remaining in file"}
	errStructure = &InvalidError{Err: kerr.InvalidRecord, Message: "Found invalid record structure"}
	errSize      = &InvalidError{Err: kerr.InvalidRecord, Message: "Invalid record size: the fields of a record do not end where its size says"}
	errLong      = &InvalidError{Err: kerr.InvalidRecord, Message: "Invalid record size: more than the topic's max.decompressed.message.bytes"}
	errCount     = &InvalidError{Err: kerr.InvalidRecord, Message: "Found invalid record count in magic v2 batch"}
)

// undecodable says that a batch's payload is no valid stream of its codec. Kafka
// throws a KafkaException for it, which a client sees as UNKNOWN_SERVER_ERROR
// (recorded: produce-codecs, produce-rejections), although the batch is to blame.
func undecodable(c Codec, err error) error {
	return &InvalidError{Err: kerr.UnknownServerError, Message: fmt.Sprintf("Failed to decompress record stream (%s): %v", c, err)}
}
