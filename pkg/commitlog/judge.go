package commitlog

import (
	"sort"

	"github.com/dozekafka/doze-kafka/pkg/record"
)

// A verdict is what becomes of a batch.
type verdict uint8

const (
	copied  verdict = iota // it stays, byte for byte
	dropped                // it goes
	emptied                // its header stays: it says how far its producer was (ST-46)
	rebuilt                // some of its records stay, or a delete horizon is set
)

// judge says what becomes of a batch (Cleaner.shouldDiscardBatch, shouldRetainRecord);
// horizon is what is to be set as its delete horizon, in ms, or 0. anchor says that the batch has to stay, as lastStays says.
func (p *pass) judge(b record.Batch, anchor bool) (v verdict, horizon int64) {
	if b.BaseOffset() >= p.end {
		v = copied
		if b.Control() {
			delete(p.open, b.ProducerID())
		}
	} else if err := b.CheckCRC(); err != nil {
		p.keepUnread(b, err) // whatever it says that it is
	} else if b.Control() {
		v, horizon = p.judgeMarker(b, anchor)
	} else {
		v, horizon = p.judgeData(b, anchor)
	}
	if b.Transactional() && !b.Control() {
		// One that is emptied or goes counts: read back without its marker it would leave a transaction open, and
		// the marker's horizon is set by the first pass that finds no batch before it (CleanedTransactionMetadata).
		p.open[b.ProducerID()] = true
	}
	return v, horizon
}

// judgeMarker keeps a marker while a batch of its transaction is there, and then until its horizon. The one that says
// a producer's epoch, since there is no batch of it, stays.
func (p *pass) judgeMarker(b record.Batch, anchor bool) (verdict, int64) {
	id := b.ProducerID()
	needed := p.open[id] || p.unread
	delete(p.open, id)
	if last, known := p.last[id]; known && last.offset < 0 && last.epoch == b.ProducerEpoch() {
		needed = true
	}
	at, set := b.DeleteHorizon()
	switch {
	case b.Count() == 0 && anchor:
		return copied, 0
	case b.Count() == 0:
		return dropped, 0
	case needed || set && at > p.NowMs:
		return copied, 0
	case !set:
		return rebuilt, p.horizon()
	case anchor:
		return emptied, 0
	}
	return dropped, 0
}

func (p *pass) judgeData(b record.Batch, anchor bool) (verdict, int64) {
	without := dropped
	if last, known := p.last[b.ProducerID()]; anchor || known && b.ProducerID() >= 0 && last.offset == b.LastOffset() && last.epoch == b.ProducerEpoch() {
		without = emptied
	}
	if b.Count() == 0 {
		if without == emptied {
			return copied, 0
		}
		return dropped, 0
	}
	if p.isAborted(b) {
		return without, 0
	}
	kept, tombstones, i, inflated := int32(0), 0, 0, 0
	p.kept = p.kept[:0]
	for r, err := range records(b) {
		if err != nil {
			p.keepUnread(b, err)
			return copied, 0
		}
		if i&63 == 0 {
			p.kept = append(p.kept, 0)
		}
		if inflated += r.InflatedSize(); inflated > record.MaxInflated {
			p.keepUnread(b, record.ErrInflated)
			return copied, 0
		}
		if p.keeps(b, &r) {
			kept++
			p.kept[i>>6] |= 1 << (i & 63)
			if r.Key != nil && r.Value == nil {
				tombstones++
			}
		}
		i++
	}
	_, set := b.DeleteHorizon()
	switch {
	case kept == 0:
		return without, 0
	case tombstones > 0 && !set:
		return rebuilt, p.horizon()
	case kept == b.Count():
		return copied, 0
	}
	return rebuilt, 0
}

// keeps says whether a record of a batch stays: it has no key (ST-43), or is its key's latest and no tombstone whose time has come.
func (p *pass) keeps(b record.Batch, r *record.Record) bool {
	if r.Key == nil {
		return true
	}
	if p.superseded(b, r) {
		return false
	}
	if r.Value != nil {
		return true
	}
	at, set := b.DeleteHorizon()
	return p.unread || !set || at > p.NowMs
}

// horizon is that of a batch that is cleaned for the first time (ST-45).
func (p *pass) horizon() int64 { return max(p.NowMs+p.cfg.DeleteRetentionMs, 1) }

// isAborted says whether a data batch is of an aborted transaction.
func (p *pass) isAborted(b record.Batch) bool {
	if !b.Transactional() {
		return false
	}
	list := p.aborted[b.ProducerID()]
	i := sort.Search(len(list), func(i int) bool { return list[i].Last > b.BaseOffset() })
	return i < len(list) && list[i].First <= b.BaseOffset()
}
