package handler

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// wantRefused compares the answer of a partition that failed.
func wantRefused(t *testing.T, got kmsg.ProduceResponseTopicPartition, want *kerr.Error, logStart int64) {
	t.Helper()
	wantCode(t, got.ErrorCode, want)
	if got.BaseOffset != -1 || got.LogAppendTime != -1 || got.LogStartOffset != logStart {
		t.Fatalf("%+v, want log start offset %d", got, logStart)
	}
}

// mutate copies a batch and changes the copy.
func mutate(b record.Batch, change func(record.Batch)) []byte {
	c := append(record.Batch(nil), b...)
	change(c)
	return c
}

// ST-11: what does not check out is refused with Kafka's code, and nothing of it is stored.
func TestProduceChecksRecordsBeforeTheLog(t *testing.T) {
	k := newKit(t)
	k.create("a", 2)
	good := batch(t, record.Options{}, "x")
	short := mutate(good[:40], func(b record.Batch) { b[11] = 28 })
	for _, c := range []struct {
		name     string
		version  int16
		records  []byte
		want     *kerr.Error
		logStart int64
	}{
		{"no bytes", 9, []byte{}, kerr.InvalidRecord, -1},
		{"a batch cut short", 9, good[:len(good)-1], kerr.InvalidRecord, -1},
		{"two batches", 9, append(append([]byte(nil), good...), good...), kerr.InvalidRecord, -1},
		{"format v1", 9, mutate(good, func(b record.Batch) { b[16] = 1 }), kerr.InvalidRecord, -1},
		{"zstd before v7", 6, batch(t, record.Options{Codec: record.Zstd}, "x"), kerr.UnsupportedCompressionType, -1},
		{"base offset", 9, mutate(good, func(b record.Batch) { b.SetBaseOffset(5) }), kerr.InvalidRecord, 0},
		{"wrong checksum", 9, mutate(good, func(b record.Batch) { b[len(b)-1] ^= 1 }), kerr.CorruptMessage, -1},
		{"shorter than a header", 9, short, kerr.CorruptMessage, -1},
		{"what follows is no batch", 9, append(append([]byte(nil), good...), make([]byte, 20)...), kerr.CorruptMessage, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := k.offsets("a", 1)
			end := before.End
			got := k.produced(c.version, produceTo("a", kafka.TopicID{}, -1, good, c.records))
			wantCode(t, got[0].ErrorCode, nil) // the other partition stands
			if c.version < 5 {
				c.logStart = -1
			}
			wantRefused(t, got[1], c.want, c.logStart)
			if got[1].ErrorMessage != nil || len(got[1].ErrorRecords) > 0 {
				t.Fatalf("%+v", got[1])
			}
			if o := k.offsets("a", 1); o.End != end {
				t.Fatalf("end %d, want %d", o.End, end)
			}
		})
	}
}

func TestProduceIgnoresAnEndThatIsNoBatch(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	got := k.produced(9, produceTo("a", kafka.TopicID{}, -1, append(batch(t, record.Options{}, "x"), 1, 2, 3)))
	wantCode(t, got[0].ErrorCode, nil)
	if o := k.offsets("a", 0); o.End != 1 {
		t.Fatalf("%+v", o)
	}
}

// A version before zstd has to know the codec: one that is none fails the
// request as a whole, later its partition (recorded: produce-codecs).
func TestProduceOfAnUnknownCodec(t *testing.T) {
	k := newKit(t)
	k.create("a", 2)
	good := batch(t, record.Options{}, "x")
	unknown := mutate(good, func(b record.Batch) { b.SetAttributes(5); b.SetCRC() })
	for _, p := range k.produced(6, produceTo("a", kafka.TopicID{}, -1, good, unknown)) {
		wantRefused(t, p, kerr.UnknownServerError, -1)
	}
	got := k.produced(7, produceTo("a", kafka.TopicID{}, -1, good, unknown))
	wantCode(t, got[0].ErrorCode, nil)
	wantRefused(t, got[1], kerr.UnknownServerError, 0)
}

// A first batch that can't be one fails the request as a whole.
func TestProduceRefusesTheWholeRequest(t *testing.T) {
	k := newKit(t)
	k.create("a", 2)
	good := batch(t, record.Options{}, "x")
	tx := batch(t, record.Options{Transactional: true, Producer: &record.Producer{ID: 5}}, "x")
	other := batch(t, record.Options{Transactional: true, Producer: &record.Producer{ID: 6}}, "x")
	for _, c := range []struct {
		name          string
		transactional bool
		records       []byte
		want          *kerr.Error
		text          string
	}{
		{"length", false, mutate(good, func(b record.Batch) { copy(b[8:], []byte{0, 0, 0, 13}) }), kerr.CorruptMessage,
			"Record size 13 is less than the minimum record overhead (14)"},
		{"magic", false, mutate(good, func(b record.Batch) { b[16] = 3 }), kerr.CorruptMessage, "Invalid magic found in record: 3"},
		{"null", false, nil, kerr.UnknownServerError, ""},
		{"a transaction without an id", false, tx, kerr.TransactionalIDAuthorizationFailed, ""},
		{"two producers", true, append([]byte(nil), other...), kerr.InvalidProducerIDMapping, "Transactional records contained more than one producer ID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := good
			if c.transactional {
				first = tx
			}
			req := produceTo("a", kafka.TopicID{}, -1, first, c.records)
			if c.transactional {
				req.TransactionID = kmsg.StringPtr("id")
			}
			for _, p := range k.produced(9, req) {
				wantRefused(t, p, c.want, -1)
				if c.text == "" && p.ErrorMessage != nil {
					t.Fatalf("message %s", show(p.ErrorMessage))
				}
				if c.text != "" {
					wantText(t, p.ErrorMessage, c.text)
				}
			}
			if o := k.offsets("a", 0); o.End != 0 {
				t.Fatalf("%+v: something was stored", o)
			}
		})
	}
}

// ST-11: record_errors and error_message name the bad records, from v8 on.
func TestProduceNamesBadRecords(t *testing.T) {
	k := newKit(t)
	k.create("a", 1)
	b := record.NewBuilder(record.Options{})
	check(t, b.Append(time.Now().UnixMilli(), nil, []byte("fine")))
	check(t, b.Append(time.Now().Add(48*time.Hour).UnixMilli(), nil, []byte("of the future")))
	bad, err := b.Batch()
	check(t, err)
	k.eachVersion(kmsg.Produce, func(t *testing.T, version int16) {
		made, _ := k.Registry.Lookup("a")
		got := k.produced(version, produceTo("a", made.ID(), 1, append([]byte(nil), bad...)))[0]
		logStart := int64(0)
		if version < 5 {
			logStart = -1
		}
		wantRefused(t, got, kerr.InvalidTimestamp, logStart)
		if version < 8 {
			return
		}
		if len(got.ErrorRecords) != 1 || got.ErrorRecords[0].RelativeOffset != 1 || got.ErrorRecords[0].ErrorMessage == nil || got.ErrorMessage == nil {
			t.Fatalf("%+v", got)
		}
	})
}

// FuzzNextBatch: whatever a partition's records are, what is taken for a batch lies within them.
func FuzzNextBatch(f *testing.F) {
	f.Add([]byte{}, int16(3))
	f.Add(make([]byte, 61), int16(9))
	f.Fuzz(func(t *testing.T, records []byte, version int16) {
		b, rest, err := nextBatch(records)
		if err == nil && b != nil && (len(b)+len(rest) != len(records) || len(b) != b.Size()) {
			t.Fatalf("%d + %d of %d bytes", len(b), len(rest), len(records))
		}
		if b, err := soleBatch(records, version); err == nil && (len(b) < 26 || b.MagicByte() != 2) {
			t.Fatalf("a batch of %d bytes", len(b))
		}
	})
}
