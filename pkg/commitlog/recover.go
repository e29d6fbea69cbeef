package commitlog

import (
	"math"
	"slices"

	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// recover brings the log to where it was: its newest segment, and the
// producers from the newest snapshot and the batches after it.
func (l *Log) recover(s *survey) error {
	if len(s.parts) == 0 {
		l.beginEmpty()
		return nil
	}
	l.parts.Store(&s.parts)
	l.snapshots = s.snapshots
	r, err := l.recoverNewest(s.parts[len(s.parts)-1])
	if err != nil {
		return err
	}
	if r.Cut > 0 {
		l.logger().Warn("the end of the log was torn and has been cut off", "bytes", r.Cut, "reason", r.Reason, "end", r.Next)
	}
	l.o.Stats.Recovered.Add(r.Scanned)
	l.o.Stats.Cut.Add(r.Cut)
	if r.Next < l.o.LogStart {
		return l.restart()
	}
	if err := l.dropSnapshots(r.Next); err != nil {
		return err
	}
	l.begin(r.Next, l.o.Clean && r.Scanned == 0)
	l.aborts.Store(anyAborts(s.parts))
	return nil
}

// anyAborts says whether one of the parts may have aborted transactions.
func anyAborts(parts []*part) bool {
	return slices.ContainsFunc(parts, func(p *part) bool {
		if s := p.opened.Load(); s != nil {
			n, known := s.AbortedKnown()
			return n > 0 || !known // its index is rebuilt by the first read that asks
		}
		return p.aborts.Load()
	})
}

// recoverNewest opens the newest segment. After a clean stop there is as a
// rule a snapshot of its end and nothing to read; otherwise the batches that are checked
// show the producers as well.
func (l *Log) recoverNewest(p *part) (segment.Recovered, error) {
	if l.o.Clean {
		s, r, err := segment.Recover(&l.segment, p.base, true, math.MaxInt64, nil)
		if err != nil {
			return r, err
		}
		p.opened.Store(s)
		from, err := l.loadProducers(r.Next)
		if err != nil {
			return r, err
		}
		if err := l.replay(p, from); err != nil {
			return r, err
		}
		if _, known := s.AbortedKnown(); !known {
			l.touched = true // the next stop writes it
			err = l.rebuildAbortedLocked(p, segment.ErrAborted)
		}
		return r, err
	}
	from, err := l.loadProducers(p.base)
	if err != nil {
		return segment.Recovered{}, err
	}
	var found []segment.AbortedTxn
	s, r, err := segment.Recover(&l.segment, p.base, false, from, func(b record.Batch) {
		if aborted := l.replayBatch(b); aborted != nil {
			found = append(found, segment.AbortedTxn(*aborted))
		}
	})
	if err != nil {
		return r, err
	}
	for _, a := range found {
		s.AddAborted(a)
	}
	p.opened.Store(s)
	return r, nil
}

// loadProducers takes the newest usable snapshot up to an offset, and the
// batches of sealed segments after it. It returns the offset from which on the newest segment
// has to be replayed. Without a snapshot that is the whole log.
func (l *Log) loadProducers(most int64) (from int64, err error) {
	parts := *l.parts.Load()
	state, from := l.newestSnapshot(parts[0].base, most)
	l.saved = from
	if state == nil {
		state, from = new(producer.State), parts[0].base
	}
	l.producers = *state
	for _, p := range parts[max(find(parts, from), 0) : len(parts)-1] {
		if err := l.replay(p, from); err != nil {
			return 0, err
		}
	}
	return max(from, min(most, parts[len(parts)-1].base)), nil
}

// replay shows the batches of a part from an offset on to the producers. A
// sealed segment that can't be walked to its end opens all the same (ST-14).
func (l *Log) replay(p *part, from int64) error {
	if _, err := l.open(p); err != nil {
		return err
	}
	if err := l.walkPart(p, from, func(b record.Batch) { l.replayBatch(b) }); err != nil {
		l.logger().Error("producers are not known in full", "error", l.readError(p, err))
	}
	return nil
}

// replayBatch returns what the batch has aborted, if anything.
func (l *Log) replayBatch(b record.Batch) *producer.Aborted {
	aborted, err := l.producers.Update(b)
	if err != nil {
		l.logger().Error("a control batch is of no use", "error", err)
	}
	l.last = producer.Binding{Offset: b.LastOffset() + 1, After: true, CRC: b.CRC()}
	l.known = true
	return aborted
}

// dropSnapshots removes the snapshots beyond the end, durably before the first
// append (ST-9): beside other batches of the same offsets they would be wrong.
func (l *Log) dropSnapshots(end int64) error {
	var gone []string
	for n := len(l.snapshots); n > 0 && l.snapshots[n-1] > end; n-- {
		gone = append(gone, segment.FileName(l.snapshots[n-1], snapshotSuffix))
		l.snapshots = l.snapshots[:n-1]
	}
	return l.removeAll(gone)
}

// restart empties a log that ends below its start: what was moved past is gone
// (LogLoader.checkAndClearLog).
func (l *Log) restart() error {
	l.logger().Warn("the log ends below its start and is emptied", "start", l.o.LogStart)
	var gone []string
	for _, p := range *l.parts.Load() {
		if err := p.close(); err != nil {
			return err
		}
		gone = append(gone, segmentFiles(p.base)...)
	}
	l.parts.Store(new([]*part))
	if err := l.removeAll(gone); err != nil {
		return err
	}
	l.producers, l.known = producer.State{}, false
	if err := l.dropSnapshots(-1); err != nil {
		return err
	}
	l.beginEmpty()
	return nil
}

// begin publishes what was recovered. After an unclean stop nothing of it
// counts as flushed, though this process wrote none of it: the segment, its
// name and the directory's are owed to the first flush (ST-54).
func (l *Log) begin(end int64, clean bool) {
	parts := *l.parts.Load()
	l.active = parts[len(parts)-1]
	l.opened = end
	l.created = l.o.Clock.Now().UnixMilli()
	cfg := l.config.Load()
	l.jitterMs = jitter(cfg)
	at := mark{
		Offsets: Offsets{LogStart: max(l.o.LogStart, parts[0].base), LastStable: l.lastStableLocked(end), HighWatermark: end, End: end},
		base:    l.active.base, size: l.active.bytes(),
	}
	at.LastStable = max(at.LastStable, at.LogStart)
	at.Flushed = at.End
	if !clean {
		at.Flushed = at.LogStart
		l.touched = true
	}
	l.marks.store(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.Flushed < at.End {
		l.armLocked(cfg)
	}
}
