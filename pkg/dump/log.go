package dump

import (
	"fmt"
	"math"
	"strings"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// Where the fields of a batch's header are that no method tells as they stand there.
const (
	magicAt = 16
	crcFrom = 21 // the bytes that the checksum covers begin here
)

// A walk goes through a .log.
type walk struct {
	*printer
	*source
	pos     int64
	base    int64 // offset of the segment
	next    int64 // the least offset that the next batch may have
	batches int64
	records int64
	first   int64 // the first offset that is believable; -1: none
	budget  int64 // bytes that a search for the next batch may still check (search)
}

const batchColumns = "%12s %12s %8s %11s %10s %-6s %-24s %12s %7s %15s %6s %5s %10s %6s %-24s %s"

// log prints a .log file.
func (p *printer) log(src *source, base int64) error {
	w := &walk{printer: p, source: src, base: base, next: base, first: -1, budget: searchFactor*src.size + window}
	p.linef(batchColumns, "offset", "last", "records", "position", "bytes", "codec", "max timestamp", "producer", "p.epoch", "sequence",
		"epoch", "magic", "crc", "attrs", "base timestamp", "flags")
	for w.pos < src.size {
		if err := w.step(); err != nil {
			return err
		}
	}
	offsets := ""
	if w.first >= 0 {
		offsets = fmt.Sprintf(", offsets %d to %d", w.first, w.next-1)
	}
	p.endf("%s, %s%s", counted(w.batches, "batch"), counted(w.records, "record"), offsets)
	return nil
}

// step prints the batch at pos, or tells what is there instead, and moves on.
func (w *walk) step() error {
	if w.size-w.pos < record.HeaderSize && !w.grow(w.pos+record.HeaderSize) {
		w.tail("of a batch's header", record.HeaderSize)
		return nil
	}
	b, err := w.view(w.pos, record.HeaderSize)
	if err != nil {
		return err
	}
	h := record.Batch(append([]byte(nil), b...))
	if why := unfollowable(h); why != "" {
		return w.search(why)
	}
	end := w.pos + int64(h.Size())
	if end > w.size && !w.grow(end) {
		return w.beyond(h)
	}
	sum, err := w.crc(w.pos+crcFrom, end)
	if err != nil {
		return err
	}
	w.batch(h)
	w.check(h, sum)
	if w.o.Records {
		if err := w.printRecords(h); err != nil {
			return err
		}
	}
	w.pos = end
	return nil
}

// unfollowable says what keeps a header from telling where the next batch begins, "" if nothing does.
func unfollowable(h record.Batch) string {
	switch {
	case h.MagicByte() != record.Magic:
		return fmt.Sprintf("magic %d where %d should be", h.MagicByte(), record.Magic)
	case h.Size() < record.HeaderSize:
		return fmt.Sprintf("a length of %d bytes, less than a header has", h.Size())
	}
	return ""
}

// tail tells of a beginning at the end of the file.
func (w *walk) tail(what string, of int64) {
	w.faultf("position %d: the file ends after %d of %d bytes %s: half written (a broker is at it, or its next start cuts this off)",
		w.pos, w.size-w.pos, of, what)
	w.pos = w.size
}

// beyond tells of a batch that ends beyond the file: half written, unless a
// whole batch follows, so that it is its length that is wrong.
func (w *walk) beyond(h record.Batch) error {
	from := w.pos
	next, err := w.nextBatch(from + 1)
	if err != nil {
		return err
	}
	if next == w.size {
		w.tail(fmt.Sprintf("of a batch at offset %d", h.BaseOffset()), int64(h.Size()))
		return nil
	}
	w.faultf("position %d: a batch of %d bytes, which ends beyond the file; the next one begins at %d", from, h.Size(), next)
	w.pos = next
	return nil
}

// batch prints one line, with every field of the header.
func (w *walk) batch(h record.Batch) {
	w.batches++
	w.records += int64(max(0, h.Count()))
	producer, epoch, sequence := "-", "-", "-"
	if h.ProducerID() != record.NoProducerID {
		producer, epoch = fmt.Sprint(h.ProducerID()), fmt.Sprint(h.ProducerEpoch())
	}
	if h.BaseSequence() != record.NoSequence {
		sequence = fmt.Sprintf("%d-%d", h.BaseSequence(), h.LastSequence())
	}
	base := at(h.BaseTimestamp())
	if _, ok := h.DeleteHorizon(); ok {
		base += "*" // it is the delete horizon
	}
	w.linef(batchColumns, fmt.Sprint(h.BaseOffset()), fmt.Sprint(h.LastOffset()), fmt.Sprint(h.Count()), fmt.Sprint(w.pos), fmt.Sprint(h.Size()),
		h.Codec(), at(h.MaxTimestamp()), producer, epoch, sequence,
		fmt.Sprint(h.LeaderEpoch()), fmt.Sprint(h.MagicByte()), fmt.Sprintf("0x%08x", h.CRC()), fmt.Sprintf("0x%04x", uint16(h.Attributes())), base, flags(h))
}

// flags are the attributes beside the codec, in words.
func flags(h record.Batch) string {
	var out []string
	for _, f := range []struct {
		set  bool
		name string
	}{{h.LogAppendTime(), "log-append-time"}, {h.Transactional(), "transactional"}, {h.Control(), "control"}} {
		if f.set {
			out = append(out, f.name)
		}
	}
	if _, ok := h.DeleteHorizon(); ok {
		out = append(out, "delete-horizon*")
	}
	if len(out) == 0 {
		return "-"
	}
	return strings.Join(out, ",")
}

// check tells what is wrong with a batch that has been printed.
func (w *walk) check(h record.Batch, sum uint32) {
	at := fmt.Sprintf("position %d, offset %d", w.pos, h.BaseOffset())
	if sum != h.CRC() {
		w.faultf("%s: the checksum of its bytes is 0x%08x", at, sum)
	}
	if h.Codec() > record.Zstd {
		w.faultf("%s: there is no such codec", at)
	}
	if h.LastOffsetDelta() < 0 || h.Count() < 0 {
		w.faultf("%s: last offset delta %d, %d records", at, h.LastOffsetDelta(), h.Count())
	}
	if h.BaseOffset() < w.next {
		w.faultf("%s: offset %d or a later one should be next", at, w.next)
	}
	if h.LastOffset()-w.base > math.MaxInt32 {
		w.faultf("%s: too far from the segment's offset, more than 2147483647", at)
		return // what is believable should follow
	}
	if w.first < 0 {
		w.first = h.BaseOffset()
	}
	w.next = max(w.next, h.LastOffset()+1)
}
