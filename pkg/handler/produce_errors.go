package handler

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// nextBatch splits the first batch off records, of whatever format. nil: no
// whole batch is there. CORRUPT_MESSAGE, of which the client gets the text: it
// can't be one. The batch may be shorter than a header of format v2.
func nextBatch(records []byte) (b record.Batch, rest []byte, err error) {
	b, rest, err = record.Next(records)
	if errors.Is(err, record.ErrShort) {
		return nil, nil, nil
	}
	if e, ok := errors.AsType[*record.InvalidError](err); ok {
		return nil, nil, kafka.Errorf(e.Err, "%s", e.Message)
	}
	return b, rest, err
}

// soleBatch is the one batch of format v2 that a partition of a Produce
// request has to be (ProduceRequest.validateRecords). Bytes after it that are no batch are cut off.
func soleBatch(records []byte, version int16) (record.Batch, error) {
	b, rest, err := nextBatch(records)
	if err != nil {
		return nil, err
	}
	if b == nil || b.MagicByte() != record.Magic {
		return nil, kerr.InvalidRecord
	}
	if version < 7 {
		switch codec := b.Codec(); {
		case codec == record.Zstd:
			return nil, kerr.UnsupportedCompressionType
		case codec > record.Zstd:
			return nil, errUnknownCodec
		}
	}
	if second, _, err := nextBatch(rest); err != nil {
		return nil, err
	} else if second != nil {
		return nil, kerr.InvalidRecord
	}
	return b, nil
}

// errUnknownCodec fails the whole request of a version that has to know the
// codec (recorded: produce-codecs). From v7 on the log refuses the partition.
var errUnknownCodec = kerr.UnknownServerError

// refuseAll gives every partition the error, and the text it may have (ProduceRequest.getErrorResponse).
func (c *produceCall) refuseAll(err error) {
	for i := range c.parts {
		c.refuse(&c.parts[i], nil, err)
		c.parts[i].ErrorMessage = kafka.ErrorMessage(err)
	}
}

// refuse gives one partition its error (ReplicaManager.appendToLocalLog). The
// log start offset is told with the errors that an append finds in the records
// or the producer, not with those of the partition and the sizes. Only bad records
// have a text.
func (c *produceCall) refuse(out *kmsg.ProduceResponseTopicPartition, log *commitlog.Log, err error) {
	c.failed = true
	out.ErrorCode = c.h.code(c.req, err)
	out.BaseOffset, out.LogAppendTime, out.LogStartOffset = -1, -1, -1
	switch out.ErrorCode {
	case kerr.UnknownTopicOrPartition.Code, kerr.NotLeaderForPartition.Code, kerr.MessageTooLarge.Code,
		kerr.RecordListTooLarge.Code, kerr.CorruptMessage.Code, kerr.KafkaStorageError.Code, kerr.UnknownTopicID.Code:
	default:
		if log != nil {
			out.LogStartOffset = log.Offsets().LogStart
		}
	}
	invalid, ok := errors.AsType[*record.InvalidError](err)
	if !ok || len(invalid.Records) == 0 {
		return
	}
	out.ErrorMessage = &invalid.Message
	out.ErrorRecords = make([]kmsg.ProduceResponseTopicPartitionErrorRecord, len(invalid.Records))
	for i := range invalid.Records {
		r := &out.ErrorRecords[i]
		r.Default()
		r.RelativeOffset, r.ErrorMessage = invalid.Records[i].Index, &invalid.Records[i].Message
	}
}

// firstError is the first error of the response, for the log.
func (c *produceCall) firstError() error {
	for i := range c.parts {
		if code := c.parts[i].ErrorCode; code != 0 {
			return kerr.ErrorForCode(code)
		}
	}
	return nil
}
