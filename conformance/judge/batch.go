package judge

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Base is the timestamp, in milliseconds, of records that scenarios make: fixed, so that two runs send the same bytes.
const Base int64 = 1_700_000_000_000

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Batch is a record batch of magic 2 of which every header field can be set to something wrong. It shares no code with the broker: the judge
// and the judged would otherwise make the same mistake. NewBatch makes a right one.
type Batch struct {
	BaseOffset      int64
	LengthDelta     int32 // added to the true length
	LeaderEpoch     int32
	Magic           int8
	CRCXor          uint32 // flips bits of the true checksum
	Attributes      int16
	LastOffsetDelta int32
	BaseTimestamp   int64
	MaxTimestamp    int64
	ProducerID      int64
	ProducerEpoch   int16
	BaseSequence    int32
	Count           int32
	Records         []Record
	Payload         []byte // what follows the header; nil: the records, compressed as the attributes say
	Trailing        []byte // more bytes after the records, before compression
}

// Record is one record of a Batch.
type Record struct {
	LengthDelta    int64 // added to the true length
	Attributes     int8
	TimestampDelta int64
	OffsetDelta    int64
	Key, Value     []byte // nil is null
	Headers        []kmsg.Header
	Count          int64 // added to the true number of headers
	Trailing       []byte
}

// Value is a record with a value alone.
func Value(v string) Record { return Record{Value: []byte(v)} }

// KeyValue is a record with a key.
func KeyValue(k, v string) Record { return Record{Key: []byte(k), Value: []byte(v)} }

// NewBatch is a right batch with these records, one millisecond apart from Base on, uncompressed, of no producer.
func NewBatch(records ...Record) *Batch {
	b := &Batch{LeaderEpoch: -1, Magic: 2, BaseTimestamp: Base, MaxTimestamp: Base, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1, Records: records}
	for i := range records {
		records[i].OffsetDelta, records[i].TimestampDelta = int64(i), int64(i)
	}
	b.Count = int32(len(records))
	b.LastOffsetDelta = b.Count - 1
	b.MaxTimestamp = Base + max(0, int64(b.LastOffsetDelta))
	return b
}

// Values is a right batch of records with these values.
func Values(values ...string) *Batch {
	records := make([]Record, len(values))
	for i, v := range values {
		records[i] = Value(v)
	}
	return NewBatch(records...)
}

// With changes the batch and returns it.
func (b *Batch) With(change func(*Batch)) *Batch {
	change(b)
	return b
}

// Idempotent makes the batch one of a producer.
func (b *Batch) Idempotent(id int64, epoch int16, sequence int32) *Batch {
	b.ProducerID, b.ProducerEpoch, b.BaseSequence = id, epoch, sequence
	return b
}

// Codec sets the codec bits: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
func (b *Batch) Codec(codec int16) *Batch {
	b.Attributes = b.Attributes&^7 | codec
	return b
}

// At moves the timestamps so that the first record has this one.
func (b *Batch) At(timestamp int64) *Batch {
	b.MaxTimestamp += timestamp - b.BaseTimestamp
	b.BaseTimestamp = timestamp
	return b
}

// Bytes is the batch on the wire.
func (b *Batch) Bytes() []byte {
	payload := b.Payload
	if payload == nil {
		for _, r := range b.Records {
			payload = r.append(payload)
		}
		payload = compress(append(payload, b.Trailing...), b.Attributes&7)
	}
	h := binary.BigEndian.AppendUint64(nil, uint64(b.BaseOffset))
	h = binary.BigEndian.AppendUint32(h, uint32(int32(49+len(payload))+b.LengthDelta))
	h = binary.BigEndian.AppendUint32(h, uint32(b.LeaderEpoch))
	h = append(h, byte(b.Magic), 0, 0, 0, 0)
	h = binary.BigEndian.AppendUint16(h, uint16(b.Attributes))
	h = binary.BigEndian.AppendUint32(h, uint32(b.LastOffsetDelta))
	h = binary.BigEndian.AppendUint64(h, uint64(b.BaseTimestamp))
	h = binary.BigEndian.AppendUint64(h, uint64(b.MaxTimestamp))
	h = binary.BigEndian.AppendUint64(h, uint64(b.ProducerID))
	h = binary.BigEndian.AppendUint16(h, uint16(b.ProducerEpoch))
	h = binary.BigEndian.AppendUint32(h, uint32(b.BaseSequence))
	h = binary.BigEndian.AppendUint32(h, uint32(b.Count))
	h = append(h, payload...)
	binary.BigEndian.PutUint32(h[17:], crc32.Checksum(h[21:], castagnoli)^b.CRCXor)
	return h
}

func (r Record) append(dst []byte) []byte {
	body := []byte{byte(r.Attributes)}
	body = binary.AppendVarint(body, r.TimestampDelta)
	body = binary.AppendVarint(body, r.OffsetDelta)
	body = appendVarBytes(body, r.Key)
	body = appendVarBytes(body, r.Value)
	body = binary.AppendVarint(body, int64(len(r.Headers))+r.Count)
	for _, h := range r.Headers {
		body = appendVarBytes(body, []byte(h.Key))
		body = appendVarBytes(body, h.Value)
	}
	body = append(body, r.Trailing...)
	dst = binary.AppendVarint(dst, int64(len(body))+r.LengthDelta)
	return append(dst, body...)
}

func appendVarBytes(dst, b []byte) []byte {
	if b == nil {
		return binary.AppendVarint(dst, -1)
	}
	return append(binary.AppendVarint(dst, int64(len(b))), b...)
}

// compress uses franz-go's codecs, a Go client's view of the formats. Codecs that do not exist leave the payload as it is.
func compress(payload []byte, codec int16) []byte {
	codecs := map[int16]kgo.CompressionCodec{1: kgo.GzipCompression(), 2: kgo.SnappyCompression(), 3: kgo.Lz4Compression(), 4: kgo.ZstdCompression()}
	c, ok := codecs[codec]
	if !ok {
		return payload
	}
	compressor, err := kgo.DefaultCompressor(c)
	if err != nil {
		panic(fmt.Sprintf("codec %d: %v", codec, err)) // one of franz-go's own
	}
	out, _ := compressor.Compress(new(bytes.Buffer), payload)
	return bytes.Clone(out)
}

// MessageSet is a message of magic 0 or 1, as producers of before Kafka 0.11 sent it.
func MessageSet(magic int8, value string) []byte {
	body := []byte{byte(magic), 0}
	if magic == 1 {
		body = binary.BigEndian.AppendUint64(body, uint64(Base))
	}
	body = binary.BigEndian.AppendUint32(body, 0xffffffff) // null key
	body = binary.BigEndian.AppendUint32(body, uint32(len(value)))
	body = append(body, value...)
	out := binary.BigEndian.AppendUint64(nil, 0)
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)+4))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(body))
	return append(out, body...)
}
