package commitlog

// Every start has a higher broker epoch, which is stamped into the batches
// (ST-57), so epochs ascend with offsets and the batches themselves are
// Kafka's leader epoch cache: no checkpoint file can contradict them. The
// current epoch starts where the log ended when it was opened, as it does when a leader is made.

// EarliestEpoch is the epoch for ListOffsets EARLIEST: that of the first
// record, and the current one of an empty log. -1: the log starts above its last record.
func (l *Log) EarliestEpoch() (int32, error) { return again(l.earliestEpoch) }

func (l *Log) earliestEpoch() (int32, error) {
	at := l.marks.load()
	parts := *l.parts.Load()
	for i := max(find(parts, at.LogStart), 0); i < len(parts) && at.LogStart < l.opened; i++ {
		h, ok, err := l.headerAt(parts[i], at.LogStart)
		if err != nil {
			return -1, err
		}
		if ok && h.BaseOffset() < l.opened {
			return h.LeaderEpoch(), nil
		}
	}
	return l.o.Epoch, l.endedErr()
}

// EndOffsetForEpoch answers OffsetForLeaderEpoch (LeaderEpochFileCache.endOffsetFor); -1, -1 if undefined.
func (l *Log) EndOffsetForEpoch(epoch int32) (foundEpoch int32, end int64, err error) {
	_, err = again(func() (_ struct{}, err error) {
		foundEpoch, end, err = l.endOffsetForEpoch(epoch)
		return struct{}{}, err
	})
	return foundEpoch, end, err
}

func (l *Log) endOffsetForEpoch(epoch int32) (foundEpoch int32, end int64, err error) {
	if err := l.endedErr(); err != nil {
		return -1, -1, err
	}
	at := l.marks.load()
	switch {
	case epoch == l.o.Epoch:
		return epoch, at.End, nil
	case epoch == -1 || epoch > l.o.Epoch: // any other number below 0 is an epoch that came before
		return -1, -1, nil
	}
	found, end, err := l.firstAbove(epoch)
	switch {
	case err != nil:
		return -1, -1, err
	case found < 0 || end <= at.LogStart:
		return epoch, max(end, at.LogStart), nil // older than all that is left
	}
	return found, end, nil
}

// firstAbove finds the first batch of a higher epoch: its offset, and the
// epoch of the batch before it (-1 if there is none). Without one of an earlier
// start it is where the current epoch begins.
//
// Where compaction has left a gap before that batch, the lower epoch may have ended anywhere in it. The offset is never
// below that end: a consumer that stands in the gap would take that for a log that was cut.
func (l *Log) firstAbove(epoch int32) (before int32, offset int64, err error) {
	parts := *l.parts.Load()
	for len(parts) > 1 && parts[0].bytes() == 0 {
		parts = parts[1:] // emptied by compaction (ST-44), and of no epoch
	}
	lo, hi := 0, len(parts) // the first part whose first batch is of a higher epoch is in [lo, hi]
	for lo < hi {
		mid := (lo + hi) / 2
		first, err := l.firstEpoch(parts[mid])
		if err != nil {
			return -1, -1, err
		}
		if first > epoch {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	offset = l.opened
	if lo < len(parts) {
		first, err := l.firstOffset(parts[lo])
		if err != nil {
			return -1, -1, err
		}
		offset = min(offset, first)
	}
	if lo == 0 {
		return -1, offset, nil
	}
	return l.firstAboveIn(parts[lo-1], epoch, offset)
}

// firstOffset is the offset of a part's first batch; its base if it is empty.
func (l *Log) firstOffset(p *part) (int64, error) {
	h, ok, err := l.header(p)
	if err != nil || !ok {
		return p.base, err
	}
	return h.BaseOffset(), nil
}

// firstAboveIn finds the first batch of a higher epoch in a part that begins
// with none; end is where the next part or the current epoch begins.
func (l *Log) firstAboveIn(p *part, epoch int32, end int64) (before int32, offset int64, err error) {
	before, offset = -1, end
	for lo, hi := p.base, end; lo < hi; {
		mid := lo + (hi-lo)/2
		h, ok, err := l.headerAt(p, mid)
		switch {
		case err != nil:
			return -1, -1, err
		case !ok || h.BaseOffset() >= end:
			hi = mid // a gap at the end
		case h.LeaderEpoch() > epoch:
			offset, hi = h.BaseOffset(), min(mid, h.BaseOffset())
		default:
			before, lo = h.LeaderEpoch(), h.LastOffset()+1
		}
	}
	return before, offset, nil
}

// firstEpoch is the epoch of a part's first batch; the current one if it is empty.
func (l *Log) firstEpoch(p *part) (int32, error) {
	if known := p.epoch.Load(); known > 0 {
		return int32(known - 1), nil
	}
	swaps := p.swaps.Load()
	h, ok, err := l.header(p)
	if err != nil {
		return -1, err
	}
	if !ok {
		return l.o.Epoch, nil // what will be appended to it
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.swaps.Load() == swaps { // else it is that of the log before, which nobody would look up again
		p.epoch.Store(int64(h.LeaderEpoch()) + 1)
	}
	return h.LeaderEpoch(), nil
}
