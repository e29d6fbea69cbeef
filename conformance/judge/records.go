package judge

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const headerSize = 61

// batches renders a records field: every whole batch with its header and records, and what is left at the end.
func (m *masks) batches(b []byte) []any {
	list := []any{}
	for len(b) > 0 {
		if len(b) < headerSize || b[16] != 2 {
			return append(list, rest(b))
		}
		size := int64(12) + int64(int32(binary.BigEndian.Uint32(b[8:])))
		if size < headerSize || size > int64(len(b)) {
			return append(list, rest(b))
		}
		list = append(list, m.batch(b[:size]))
		b = b[size:]
	}
	return list
}

func rest(b []byte) any {
	if len(b) > 80 {
		return fmt.Sprintf("%d bytes that are no whole batch of magic 2: 0x%s...", len(b), hex.EncodeToString(b[:20]))
	}
	return fmt.Sprintf("%d bytes that are no whole batch of magic 2: 0x%s", len(b), hex.EncodeToString(b))
}

func (m *masks) batch(b []byte) map[string]any {
	var h kmsg.RecordBatch
	if err := h.ReadFrom(b); err != nil {
		return map[string]any{"Error": err.Error()}
	}
	codec := h.Attributes & 7
	tree := map[string]any{
		"BaseOffset": h.FirstOffset, "LeaderEpoch": h.PartitionLeaderEpoch, "Codec": codec, "Attributes": fmt.Sprintf("%#x", h.Attributes&^7),
		"CRC": "right", "LastOffsetDelta": h.LastOffsetDelta, "BaseTimestamp": m.number(h.FirstTimestamp), "MaxTimestamp": m.number(h.MaxTimestamp),
		"ProducerID": m.producer(h.ProducerID), "ProducerEpoch": h.ProducerEpoch, "BaseSequence": h.FirstSequence, "Count": h.NumRecords,
	}
	if codec == 0 {
		tree["Length"] = h.Length // of a compressed batch it is the compressor's
	}
	if uint32(h.CRC) != crc32.Checksum(b[21:], castagnoli) {
		tree["CRC"] = "wrong"
	}
	payload, err := decompress(h.Records, codec)
	if err != nil {
		tree["Records"] = fmt.Sprintf("%d bytes that can't be decompressed", len(h.Records))
		return tree
	}
	tree["Records"] = renderRecords(payload)
	if _, now := m.time(h.FirstTimestamp); now && h.Attributes&hasHorizon != 0 {
		m.fromHorizon(tree, h.FirstTimestamp)
	}
	return tree
}

// Attribute bits of a batch.
const (
	isControl  = 0x20
	hasHorizon = 0x40 // the base timestamp is the delete horizon: a time of the cleaner's, unless a scenario has made it up
)

// fromHorizon has records tell their timestamps themselves, instead of how far they are from such a base.
func (m *masks) fromHorizon(batch map[string]any, base int64) {
	for _, r := range batch["Records"].([]any) {
		if record, ok := r.(map[string]any); ok {
			record["Timestamp"] = m.number(base + record["TimestampDelta"].(int64))
			delete(record, "TimestampDelta")
		}
	}
}

func decompress(payload []byte, codec int16) ([]byte, error) {
	if codec == 0 {
		return payload, nil
	}
	return kgo.DefaultDecompressor().Decompress(payload, kgo.CompressionCodecType(codec))
}

func renderRecords(payload []byte) []any {
	list := []any{}
	for len(payload) > 0 {
		length, n := binary.Varint(payload)
		if n <= 0 || length < 0 || length > int64(len(payload)-n) {
			return append(list, fmt.Sprintf("%d bytes that are no record", len(payload)))
		}
		var r kmsg.Record
		if err := r.ReadFrom(payload[:n+int(length)]); err != nil {
			return append(list, fmt.Sprintf("%d bytes that are no record", len(payload)))
		}
		headers := []any{}
		for _, h := range r.Headers {
			headers = append(headers, h.Key, printable(h.Value))
		}
		tree := map[string]any{"Attributes": r.Attributes, "TimestampDelta": r.TimestampDelta64, "OffsetDelta": r.OffsetDelta,
			"Key": printable(r.Key), "Value": printable(r.Value)}
		if len(headers) > 0 {
			tree["Headers"] = headers
		}
		list = append(list, tree)
		payload = payload[n+int(length):]
	}
	if len(list) > 20 { // enough to see what they are
		return append(list[:20:20], fmt.Sprintf("and %d more", len(list)-20))
	}
	return list
}

// OffsetsIn are the offsets of the records in a whole batch; none if they can't be read, or are control records, of which no consumer is told.
func OffsetsIn(batch []byte) []int64 {
	var h kmsg.RecordBatch
	if err := h.ReadFrom(batch); err != nil || h.Attributes&isControl != 0 {
		return nil
	}
	payload, err := decompress(h.Records, h.Attributes&7)
	if err != nil {
		return nil
	}
	var offsets []int64
	for len(payload) > 0 {
		length, n := binary.Varint(payload)
		var r kmsg.Record
		if n <= 0 || length < 0 || length > int64(len(payload)-n) || r.ReadFrom(payload[:n+int(length)]) != nil {
			break
		}
		offsets = append(offsets, h.FirstOffset+int64(r.OffsetDelta))
		payload = payload[n+int(length):]
	}
	return offsets
}
