package record

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

const (
	// maxRecordErrors bounds what a batch of millions of bad records costs.
	// Kafka has no bound; more are counted but not named.
	maxRecordErrors = 1 << 14
	// namedInMessage is how many the text of the batch's error repeats.
	namedInMessage = 3
)

// rejects collects the bad records of one batch.
type rejects struct {
	records  []RecordError
	count    int
	badTime  bool
	keyError string // one text for all records
}

// add notes why record i is bad: the first check that it fails
// (LogValidator.validateRecord).
func (j *rejects) add(b Batch, r *Rules, i int32, ts int64, h *head) {
	j.count++
	keyless := h.keySize < 0 && r.RequireKey
	j.badTime = j.badTime || !keyless
	if len(j.records) == maxRecordErrors {
		return
	}
	var text string
	switch {
	case keyless:
		if j.keyError == "" {
			j.keyError = "Compacted topic cannot accept message without key in topic partition " + r.Partition
		}
		text = j.keyError
	case r.LogAppendTime || ts == NoTimestamp:
		text = fmt.Sprintf("Invalid timestamp type in message %s. Producer should not set timestamp type to LogAppendTime.", describe(b, ts, h))
	default:
		text = fmt.Sprintf("Timestamp %d of message with offset %d is out of range. The timestamp should be within [%d, %d]",
			ts, b.BaseOffset()+int64(h.offsetDelta), r.Now-r.BeforeMaxMs, r.Now+r.AfterMaxMs)
	}
	j.records = append(j.records, RecordError{Index: i, Message: text})
}

// describe is DefaultRecord.toString, or that of PartialDefaultRecord, which
// Kafka uses for compressed batches; they differ for null.
func describe(b Batch, ts int64, h *head) string {
	class, key, value := "PartialDefaultRecord", h.keySize, h.valueSize
	if b.Codec() == None {
		class, key, value = "DefaultRecord", max(key, 0), max(value, 0)
	}
	return fmt.Sprintf("%s(offset=%d, timestamp=%d, key=%d bytes, value=%d bytes)",
		class, b.BaseOffset()+int64(h.offsetDelta), ts, key, value)
}

// err is LogValidator.processRecordErrors.
func (j *rejects) err() error {
	if j.badTime {
		return &InvalidError{
			Err:     kerr.InvalidTimestamp,
			Message: "One or more records have been rejected due to invalid timestamp",
			Records: j.records,
		}
	}
	var first []string
	for _, e := range j.records[:min(namedInMessage, len(j.records))] {
		first = append(first, e.String())
	}
	return &InvalidError{
		Err: kerr.InvalidRecord,
		Message: fmt.Sprintf("One or more records have been rejected due to %d record errors in total, and only showing the first three errors at most: [%s]",
			j.count, strings.Join(first, ", ")),
		Records: j.records,
	}
}
