package commitlog

import (
	"errors"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

var errSparse = errors.New("the offsets of what is superseded take too much memory")

// index finds out which records are superseded, as far as they fit a pass (ST-42). The keys of the dirty ones go into the map. If they don't
// fit it takes a part of the keys, and the log is read once more for each other part: a round costs less
// than a pass, which writes the log anew.
func (p *pass) index() error {
	if p.end = p.from; p.from == p.to {
		p.Keys.reset(0, false)
		return nil
	}
	err := p.indexInRounds(true)
	if errors.Is(err, errSparse) {
		err = p.indexInRounds(false)
	}
	return err
}

// indexInRounds is index; without rounds it ends where the map is full.
func (p *pass) indexInRounds(rounds bool) error {
	p.dead.reset()
	p.rounds = false
	p.Keys.reset(p.to-p.from, rounds)
	if err := p.indexDirty(true); err != nil || p.Keys.whole() {
		return err
	}
	for p.rounds = true; ; {
		if err := p.markClean(); err != nil {
			return err
		}
		if !p.Keys.next() {
			return nil
		}
		if err := p.indexDirty(false); err != nil {
			return err
		}
	}
}

// indexDirty reads the dirty records into the map and notes what they supersede among themselves. The first
// round finds out where the pass ends: at a batch's end, once no more fits.
func (p *pass) indexDirty(first bool) error {
	if first {
		p.end = p.from
	}
	for _, part := range p.parts[max(find(p.parts, p.from), 0):] {
		stop := false
		err := p.walk(part, func(_ int64, b record.Batch) bool {
			if b.LastOffset() < p.from {
				return true
			}
			sparse := p.dead.bytes() > p.Keys.mostDead
			if stop = !first && (sparse || b.BaseOffset() >= p.end) || first && p.end > p.from && (sparse || p.Keys.full()); stop {
				return false
			}
			p.eachKey(b, func(key []byte, offset int64) {
				if old := p.Keys.put(key, offset); old >= 0 {
					p.dead.add(old)
				}
			})
			if first {
				p.end = b.LastOffset() + 1
			}
			return true
		})
		switch {
		case err != nil:
			return err
		case stop && !first && p.dead.bytes() > p.Keys.mostDead:
			return errSparse
		case stop:
			return nil
		}
	}
	if first {
		p.end = p.to
	}
	return nil
}

// markClean notes which records from before the dirty ones these supersede.
func (p *pass) markClean() error {
	for _, part := range p.parts {
		if part.base >= p.from {
			return nil
		}
		err := p.walk(part, func(_ int64, b record.Batch) bool {
			if b.LastOffset() >= p.from || p.dead.bytes() > p.Keys.mostDead {
				return false
			}
			p.eachKey(b, func(key []byte, offset int64) {
				if _, ok := p.Keys.latest(key); ok {
					p.dead.add(offset)
				}
			})
			return true
		})
		if err != nil {
			return err
		}
		if p.dead.bytes() > p.Keys.mostDead {
			return errSparse
		}
	}
	return nil
}

// eachKey calls yield with the keys of a batch: all of them, or none of one that can't be read to its end, which stays and supersedes
// nothing. Nor does what was aborted.
func (p *pass) eachKey(b record.Batch, yield func(key []byte, offset int64)) {
	if err := b.CheckCRC(); err != nil {
		p.tell(b, err)
		return
	}
	if b.Control() || b.Count() == 0 || p.isAborted(b) {
		return
	}
	p.keys.reset()
	held := true
	for r, err := range records(b) {
		if err != nil {
			p.tell(b, err)
			return
		}
		if held = held && p.keys.bytesHeld()+len(r.Key) < mostBatchKeys; held && r.Key != nil {
			p.keys.add(r.Key, b.BaseOffset()+int64(r.OffsetDelta))
		}
	}
	if held {
		p.keys.each(yield)
		return
	}
	for r, err := range records(b) { // once more: who knows how much they inflate to
		if err == nil && r.Key != nil {
			yield(r.Key, b.BaseOffset()+int64(r.OffsetDelta))
		}
	}
}

// superseded says whether a record of a batch has a later one of its key.
func (p *pass) superseded(b record.Batch, r *record.Record) bool {
	offset := b.BaseOffset() + int64(r.OffsetDelta)
	if p.rounds || b.LastOffset() >= p.from {
		return p.dead.has(offset)
	}
	latest, ok := p.Keys.latest(r.Key)
	return ok && latest > offset
}
