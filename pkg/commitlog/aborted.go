package commitlog

import (
	"errors"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// noneAborted is the answer of a log without aborted transactions.
var noneAborted = []AbortedTransaction{}

// addAborted adds the aborted transactions of what a read from part i returns
// (TX-8). Like Kafka's they are those of all up to the next index entry behind
// the region, or up to the next segment (LocalLog.addAbortedTransactions): a
// consumer meets none too many, and drops only what it has read. After an error there is no region.
//
// swaps is that of the part before the region was taken: positions of another log mean nothing.
func (l *Log) addAborted(s *Slice, at mark, parts []*part, i int, offset, swaps int64) error {
	upTo, err := l.upperBound(s.Region, at, parts, i, offset)
	if err == nil {
		s.Aborted, err = l.abortedIn(parts[i:], offset, upTo)
	}
	if err == nil && parts[i].swaps.Load() != swaps {
		err = errGone
	}
	if err != nil && s.Region.Release != nil {
		s.Region.Release()
		s.Region = segment.Region{}
	}
	return err
}

// upperBound is an offset up to which a region may go.
func (l *Log) upperBound(r segment.Region, at mark, parts []*part, i int, offset int64) (int64, error) {
	s, err := l.open(parts[i])
	if err != nil {
		return 0, err
	}
	end := r.Offset + int64(r.Length)
	if r.Length == 0 {
		if end, err = s.Position(offset); err != nil {
			return 0, l.readError(parts[i], err)
		}
	}
	if bound, ok := s.UpperBound(end); ok {
		return bound, nil
	}
	if i+1 < len(parts) {
		return parts[i+1].base, nil
	}
	return at.End, nil
}

// lists are reused: most reads find nothing.
var lists = sync.Pool{New: func() any { return new([]segment.AbortedTxn) }}

// abortedIn collects the aborted transactions with something at offsets from to
// upTo. Their aborts are in the first of the parts, or in later ones.
func (l *Log) abortedIn(parts []*part, from, upTo int64) ([]AbortedTransaction, error) {
	list := lists.Get().(*[]segment.AbortedTxn)
	defer lists.Put(list)
	*list = (*list)[:0]
	for i, done := 0, false; i < len(parts) && !done; i++ {
		p := parts[i]
		if p.opened.Load() == nil && !p.aborts.Load() {
			continue // not to be opened for the sake of nothing
		}
		s, err := l.open(p)
		if err != nil {
			return nil, err
		}
		*list, done, err = s.Aborted(*list, from, upTo)
		if errors.Is(err, segment.ErrAborted) {
			if err = l.rebuildAborted(p, err); err != nil {
				return nil, err
			}
			if s, err = l.open(p); err != nil { // it may have been rewritten
				return nil, err
			}
			*list, done, err = s.Aborted(*list, from, upTo)
		}
		if err != nil {
			return nil, l.readError(p, err)
		}
	}
	if len(*list) == 0 {
		return noneAborted, nil
	}
	out := make([]AbortedTransaction, len(*list))
	for i, a := range *list {
		out[i] = AbortedTransaction{ProducerID: a.ProducerID, FirstOffset: a.First}
	}
	return out, nil
}

// rebuildAborted makes the index of aborted transactions of a part anew
// (ST-8), whether it is damaged or was never written.
func (l *Log) rebuildAborted(p *part, cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rebuildAbortedLocked(p, cause)
}

// rebuildAbortedLocked finds the part's aborts in its batches, and where the
// transactions began in the batches from the newest snapshot before it on. It goes on with
// the parts that follow as long as theirs are not known either, so that one walk serves all.
func (l *Log) rebuildAbortedLocked(p *part, cause error) error {
	if err := l.endedErr(); err != nil {
		return err
	}
	parts := *l.parts.Load()
	i := slices.Index(parts, p)
	if i < 0 {
		return errGone
	}
	if known, err := l.abortedKnown(p); known || err != nil {
		return err // somebody else was faster
	}
	state, from := l.newestSnapshot(parts[0].base, p.base)
	if state == nil {
		state, from = new(producer.State), parts[0].base
	}
	for j := max(find(parts, from), 0); j < len(parts); j++ {
		known, err := l.abortedKnown(parts[j])
		if err != nil {
			return err
		}
		if j > i && known {
			break
		}
		found, err := l.abortsOf(state, parts[j], from)
		if err != nil {
			return err
		}
		if known || j < i && parts[j].base < from {
			continue
		}
		parts[j].opened.Load().SetAborted(found)
		l.logger().Warn("the index of aborted transactions is rebuilt from the log",
			"segment", segment.FileName(parts[j].base, segment.TxnIndexSuffix), "entries", len(found), "cause", cause)
	}
	return nil
}

func (l *Log) abortedKnown(p *part) (bool, error) {
	s, err := l.open(p)
	if err != nil {
		return false, err
	}
	_, known := s.AbortedKnown()
	return known, nil
}

// abortsOf shows the batches of a part from an offset on to state, and collects what they abort.
func (l *Log) abortsOf(state *producer.State, p *part, from int64) (found []segment.AbortedTxn, err error) {
	err = l.walkPart(p, from, func(b record.Batch) {
		// A batch that is unreadable has been told of when the log was opened.
		if aborted, err := state.Update(b); err == nil && aborted != nil {
			found = append(found, segment.AbortedTxn(*aborted))
		}
	})
	if errors.Is(err, kerr.CorruptMessage) {
		l.logger().Error("aborted transactions are not known in full", "error", l.readError(p, err))
		return found, nil
	}
	if err != nil {
		return nil, l.readError(p, err)
	}
	return found, nil
}

// walkPart shows the batches of a part from an offset on to visit: of a control
// batch all, since the marker is in its record, else the header.
func (l *Log) walkPart(p *part, from int64, visit func(record.Batch)) error {
	s, err := l.open(p)
	if err != nil {
		return err
	}
	pos, err := s.Position(from)
	if err != nil {
		return err
	}
	var failed error
	err = s.Batches(pos, func(pos int64, b record.Batch) bool {
		if b.Control() {
			b, failed = s.ReadBatch(pos)
		}
		if failed == nil {
			visit(b)
		}
		return failed == nil
	})
	return errors.Join(err, failed)
}
