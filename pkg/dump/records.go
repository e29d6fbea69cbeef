package dump

import (
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

const (
	// mostBatch is the largest batch whose records are printed: no request is larger (socket.request.max.bytes).
	mostBatch = 100 << 20
	// mostRecord is the largest record that is printed, in bytes after decompression.
	mostRecord = 16 << 20
)

// printRecords prints the records of the batch at pos.
func (w *walk) printRecords(h record.Batch) error {
	if h.Size() > mostBatch {
		w.linef("    its records are not shown: the batch is larger than %d MiB", mostBatch>>20)
		return nil
	}
	b, err := w.read(w.pos, h.Size())
	if err != nil {
		return err
	}
	n := 0
	for r, err := range b.RecordsWithin(mostRecord) {
		if err != nil {
			why := err.Error()
			if e, ok := errors.AsType[*record.InvalidError](err); ok {
				why = e.Message // the code is what a client would get
			}
			w.faultf("position %d, offset %d: record %d of %d: %s", w.pos, h.BaseOffset(), n, h.Count(), why)
			break
		}
		w.record(b, &r)
		n++
	}
	return nil
}

// record prints one line.
func (p *printer) record(b record.Batch, r *record.Record) {
	line := append(p.field[:0], "    "...)
	line = strconv.AppendInt(line, b.BaseOffset()+int64(r.OffsetDelta), 10)
	line = append(line, "  "...)
	line = append(line, at(r.Timestamp)...)
	if b.Control() {
		line = appendControl(line, r)
	} else {
		line = p.appendField(append(line, "  key "...), r.Key)
		line = p.appendField(append(line, "  value "...), r.Value)
	}
	for _, h := range r.Headers {
		line = p.appendField(append(line, "  header "...), []byte(h.Key))
		line = p.appendField(append(line, '='), h.Value)
	}
	line = append(line, '\n')
	_, _ = p.w.Write(line) // a bufio.Writer keeps its error
	p.field = line
}

func appendControl(line []byte, r *record.Record) []byte {
	line = append(line, "  "...)
	m, err := r.Marker()
	if err != nil {
		return append(line, err.Error()...)
	}
	line = append(line, m.Type.String()...)
	line = append(line, ", coordinator epoch "...)
	return strconv.AppendInt(line, int64(m.CoordinatorEpoch), 10)
}

// appendField quotes bytes, so that nothing in them moves a terminal's cursor.
// Of long ones it shows the beginning and the size.
func (p *printer) appendField(line, field []byte) []byte {
	if field == nil {
		return append(line, "null"...)
	}
	shown := field
	if len(shown) > p.o.FieldBytes {
		shown = shown[:max(p.o.FieldBytes, 0)]
		for i := len(shown) - 1; i >= 0 && i >= len(shown)-utf8.UTFMax; i-- { // not within a rune
			if utf8.RuneStart(field[i]) {
				if !utf8.FullRune(shown[i:]) {
					shown = shown[:i]
				}
				break
			}
		}
	}
	line = strconv.AppendQuote(line, string(shown))
	if len(shown) == len(field) {
		return line
	}
	line = append(line, "... ("...)
	line = append(line, counted(int64(len(field)), "byte")...)
	return append(line, ')')
}
