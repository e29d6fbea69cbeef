package dump

import (
	"math"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// searchFactor bounds the work of all searches in a file, as a multiple of its
// size: a hostile one may look like the beginning of a large batch at every byte.
const searchFactor = 4

// search tells why no batch can be read at pos and goes on at the next that can.
func (w *walk) search(why string) error {
	next, err := w.nextBatch(w.pos + 1)
	if err != nil {
		return err
	}
	switch {
	case next < w.size:
		w.faultf("position %d: %s; %s skipped, the next batch begins at %d", w.pos, why, counted(next-w.pos, "byte"), next)
	case w.budget <= 0:
		w.faultf("position %d: %s; no batch was found after it, and not all of the last %s were searched", w.pos, why, counted(w.size-w.pos, "byte"))
	default:
		w.faultf("position %d: %s; no batch follows in the last %s", w.pos, why, counted(w.size-w.pos, "byte"))
	}
	w.pos = next
	return nil
}

// nextBatch is the first position from from on at which a whole batch with a
// right checksum begins; the file's size if there is none.
func (w *walk) nextBatch(from int64) (int64, error) {
	for pos := from; pos+record.HeaderSize <= w.size && w.budget > 0; pos++ {
		magic, err := w.find(record.Magic, pos+magicAt, w.size)
		if err != nil {
			return 0, err
		}
		if pos = magic - magicAt; pos+record.HeaderSize > w.size {
			break
		}
		ok, err := w.isBatch(pos)
		if err != nil {
			return 0, err
		}
		if ok {
			return pos, nil
		}
	}
	return w.size, nil
}

// isBatch says whether a whole batch begins at pos. The checksum is the last
// thing that is looked at.
func (w *walk) isBatch(pos int64) (bool, error) {
	b, err := w.view(pos, record.HeaderSize)
	if err != nil {
		return false, err
	}
	h := record.Batch(b)
	size := int64(h.Size())
	if unfollowable(h) != "" || pos+size > w.size || h.LastOffsetDelta() < 0 || h.Count() < 0 || h.Codec() > record.Zstd ||
		h.BaseOffset() < 0 || h.BaseOffset() > math.MaxInt64-math.MaxInt32 {
		return false, nil
	}
	want := h.CRC()
	w.budget -= size
	sum, err := w.crc(pos+crcFrom, pos+size)
	return sum == want && err == nil, err
}
