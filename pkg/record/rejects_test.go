package record

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

// ST-43, ST-11: every record without a key is named; empty keys are keys.
func TestCompactedTopicRefusesRecordsWithoutKey(t *testing.T) {
	r := rules()
	r.RequireKey = true
	for _, c := range allCodecs {
		e := invalid(t, sample(t, Options{Codec: c}, 15), r, kerr.InvalidRecord)
		var at []int32
		for _, bad := range e.Records {
			at = append(at, bad.Index)
			if bad.Message != "Compacted topic cannot accept message without key in topic partition demo-0" {
				t.Error(bad.Message)
			}
		}
		if fmt.Sprint(at) != "[1 4 7 10 13]" {
			t.Errorf("%s: records %v", c, at)
		}
		one := "message='Compacted topic cannot accept message without key in topic partition demo-0')"
		want := "One or more records have been rejected due to 5 record errors in total, and only showing the first three errors at most: " +
			"[RecordError(batchIndex=1, " + one + ", RecordError(batchIndex=4, " + one + ", RecordError(batchIndex=7, " + one + "]"
		if e.Message != want {
			t.Errorf("%s: %s", c, e.Message)
		}
	}
}

func stamped(tb testing.TB, c Codec, timestamps ...int64) Batch {
	tb.Helper()
	b := NewBuilder(Options{Codec: c})
	for _, ts := range timestamps {
		if err := b.Append(ts, []byte("k"), nil); err != nil {
			tb.Fatal(err)
		}
	}
	batch, err := b.Batch()
	if err != nil {
		tb.Fatal(err)
	}
	return batch
}

// ST-11: timestamps beyond the topic's limits are INVALID_TIMESTAMP; -1 is exempt.
func TestTimestampLimits(t *testing.T) {
	r := rules()
	r.BeforeMaxMs, r.AfterMaxMs = 1000, 2000
	if _, err := Validate(stamped(t, None, now-1000, NoTimestamp, now+2000), r); err != nil {
		t.Errorf("at the limits: %v", err)
	}
	for _, c := range allCodecs {
		e := invalid(t, stamped(t, c, now-1001, now, now+2001, NoTimestamp), r, kerr.InvalidTimestamp)
		if e.Message != "One or more records have been rejected due to invalid timestamp" || len(e.Records) != 2 {
			t.Fatalf("%s: %d: %s", c, len(e.Records), e.Message)
		}
		want := fmt.Sprintf("Timestamp %d of message with offset 2 is out of range. The timestamp should be within [%d, %d]", now+2001, now-1000, now+2000)
		if e.Records[1] != (RecordError{Index: 2, Message: want}) {
			t.Errorf("%s: %v", c, e.Records[1])
		}
	}
	r.LogAppendTime = true
	if _, err := Validate(stamped(t, None, 0, math.MaxInt64), r); err != nil {
		t.Errorf("LogAppendTime has limits: %v", err)
	}
}

// The key comes before the timestamp, and one bad timestamp decides the code.
func TestFirstFailingCheckOfARecordCounts(t *testing.T) {
	r := rules()
	r.RequireKey, r.AfterMaxMs = true, -10
	e := invalid(t, sample(t, Options{}, 3), r, kerr.InvalidTimestamp)
	if len(e.Records) != 3 || e.Records[1].Message != "Compacted topic cannot accept message without key in topic partition demo-0" {
		t.Errorf("%v", e.Records)
	}
}

// A client may not claim LogAppendTime, on a topic that has it or for records without a timestamp.
func TestClientsDoNotSetLogAppendTime(t *testing.T) {
	r := rules()
	lat := func(c Codec, ts int64) Batch {
		return sample(t, Options{Codec: c, LogAppendTime: true, AppendTime: ts}, 2)
	}
	if _, err := Validate(lat(None, now), r); err != nil {
		t.Errorf("CreateTime topic: %v", err)
	}
	e := invalid(t, lat(None, NoTimestamp), r, kerr.InvalidTimestamp)
	if e.Records[1].Message != "Invalid timestamp type in message DefaultRecord(offset=1, timestamp=-1, key=0 bytes, value=0 bytes). Producer should not set timestamp type to LogAppendTime." {
		t.Error(e.Records[1].Message)
	}
	r.LogAppendTime = true
	e = invalid(t, lat(Gzip, now), r, kerr.InvalidTimestamp)
	if want := fmt.Sprintf("Invalid timestamp type in message PartialDefaultRecord(offset=1, timestamp=%d, key=-1 bytes, value=0 bytes). Producer should not set timestamp type to LogAppendTime.", now); e.Records[1].Message != want {
		t.Error(e.Records[1].Message)
	}
}

// ST-10: a batch of very many bad records does not become memory.
func TestRecordErrorsAreBounded(t *testing.T) {
	b := NewBuilder(Options{Codec: Zstd})
	for range maxRecordErrors + 5 {
		if err := b.Append(now, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	batch, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	r := rules()
	r.RequireKey = true
	e := invalid(t, batch, r, kerr.InvalidRecord)
	if len(e.Records) != maxRecordErrors {
		t.Errorf("%d record errors", len(e.Records))
	}
	if want := fmt.Sprintf("due to %d record errors in total", maxRecordErrors+5); !strings.Contains(e.Message, want) {
		t.Error(e.Message)
	}
}
