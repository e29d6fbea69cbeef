package commitlog

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/producer"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// maxOffset is above all offsets.
const maxOffset = math.MaxInt64

// A rewriting is one segment of a pass.
type rewriting struct {
	*pass
	part     *part
	size     int64 // of the old log
	log      *segment.Rewrite
	anchor   bool           // the last batch has to stay, see lastStays
	oldLast  uint32         // CRC field of the old last batch
	markers  map[int64]bool // offsets of the markers that stay
	removed  int64          // records that the new log has not
	failed   error
	replaced bool // the new log has the old one's name
	emptied  bool // it has no batch, and so the segment was to go
}

// rewrite makes a segment anew, if a record of it goes, and swaps it in.
func (p *pass) rewrite(part *part, first bool) error {
	s, err := p.l.open(part)
	if err != nil {
		if errors.Is(err, errGone) {
			return nil
		}
		return err
	}
	w := &rewriting{pass: p, part: part, size: s.Size(), log: s.Rewrite(cleanedSuffix), anchor: p.l.lastStays(part), markers: map[int64]bool{}}
	err = p.walk(part, func(pos int64, b record.Batch) bool {
		w.failed = w.batch(pos, b)
		return w.failed == nil
	})
	if err == nil {
		err = w.failed
	}
	if err == nil && w.log.Changed() {
		err = w.finish(first)
	}
	if part.gone.Load() && !w.emptied && !errors.Is(err, segment.ErrSync) {
		err = nil // deleted meanwhile, with all that could not be read or written
	}
	if !w.replaced {
		if discardErr := w.log.Discard(); discardErr != nil && err == nil {
			err = discardErr
		}
	}
	if err != nil && p.ctx.Err() == nil && p.l.endedErr() == nil && !isStorage(err) && !errors.Is(err, ErrNoCompaction) {
		err = p.l.storageError("compact a segment", err)
	}
	return err
}

// lastStays says whether the last batch of a sealed part has to stay, at least its header: a producer snapshot is bound to it, or only
// the active segment follows. While that is empty, a consumer could never get to the end of the log otherwise (Cleaner.checkBatchRetention).
func (l *Log) lastStays(p *part) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	end, ok := l.endOfLocked(p)
	return ok && (end == l.active.base || slices.Contains(l.snapshots, end))
}

// endOf is endOfLocked for who does not hold the lock.
func (l *Log) endOf(p *part) (end int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endOfLocked(p)
}

// endOfLocked is where the part after a sealed one begins; ok is false if it is off the list.
func (l *Log) endOfLocked(p *part) (end int64, ok bool) {
	parts := *l.parts.Load()
	i := slices.Index(parts, p)
	if i < 0 || i+1 == len(parts) {
		return 0, false
	}
	return parts[i+1].base, true
}

// batch takes over what stays of a batch.
func (w *rewriting) batch(pos int64, b record.Batch) error {
	rest := w.size - pos - int64(len(b))
	if rest == 0 {
		w.oldLast = b.CRC()
	}
	had := int64(b.Count())
	v, horizon := w.judge(b, w.anchor && rest == 0)
	if v == rebuilt || v == emptied {
		made, err := w.build(b, v, horizon, rest)
		if err != nil { // it can't be read, or is of more than MaxInflated
			w.keepUnread(b, err)
			v = copied
		} else {
			b = made
		}
	}
	if v != copied {
		if err := w.log.Change(w.pace); err != nil {
			return err
		}
	}
	if v == dropped {
		w.removed += had
		return nil
	}
	w.removed += had - int64(b.Count())
	if b.Control() && b.Count() > 0 {
		w.markers[b.LastOffset()] = true
	}
	if w.log.Changed() {
		if err := w.pace(len(b)); err != nil {
			return err
		}
	}
	return w.log.Append(b)
}

// build makes a batch anew (ST-47): in the topic's codec, or in none, unless a compressed batch would become larger than it was, or the segment
// too large.
func (w *rewriting) build(b record.Batch, v verdict, horizon, rest int64) (record.Batch, error) {
	if v == emptied { // of an aborted one nobody knows whether it can be read
		return w.compactor.Compact(b, record.None, 0, 0, 0, nil)
	}
	i := 0
	keep := func(*record.Record) bool {
		i++
		return b.Control() || w.kept[(i-1)>>6]>>((i-1)&63)&1 == 1
	}
	codec, level := record.None, 0
	if c := w.cfg.Compression; !c.Producer && !b.Control() {
		codec, level = c.Codec, c.Level
	}
	if b.Codec() == codec {
		return w.compactor.Compact(b, codec, level, horizon, 0, keep)
	}
	most := w.cfg.SegmentBytes - w.log.Size() - rest
	if b.Codec() != record.None {
		// Larger than it was, a log could fill the disk because of its compaction, and a batch be more than consumers take.
		most = min(int64(len(b)), most)
	}
	made, err := w.compactor.Compact(b, codec, level, horizon, int(max(most, record.HeaderSize)), keep)
	if errors.Is(err, kerr.MessageTooLarge) {
		i = 0
		made, err = w.compactor.Compact(b, b.Codec(), 0, horizon, 0, keep)
	}
	return made, err
}

// finish makes the new log durable and puts it in the old one's place; without a batch the segment
// goes, unless it is the first: the log begins there (ST-44).
func (w *rewriting) finish(first bool) error {
	l := w.l
	if w.log.Size() == 0 && !first {
		gone, err := l.dropEmptied(w.part)
		if w.emptied = gone; gone && err == nil {
			w.changed()
		}
		if gone || err != nil {
			return err
		}
		// Those before it were deleted during the pass. It must not keep what is superseded: no later pass knows of it.
	}
	modified, err := fileTime(&l.segment, w.part.base)
	if err != nil {
		return err
	}
	aborted, err := l.abortsIn(w.part)
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil {
		return err
	}
	aborted = slices.DeleteFunc(aborted, func(a segment.AbortedTxn) bool { return !w.markers[a.Last] })
	l.o.Stats.Syncs.Add(w.log.Syncs() + 3) // the log, and the directory twice
	if err := w.log.Sync(time.UnixMilli(modified), aborted); err != nil {
		return err
	}
	if err := w.swap(); err != nil || !w.replaced {
		return err
	}
	w.changed()
	w.part.mu.Lock()
	defer w.part.mu.Unlock()
	if !w.part.gone.Load() {
		w.log.Settle()
	}
	return nil
}

// changed counts what the segment has lost.
func (w *rewriting) changed() {
	size, stats := w.log.Size(), w.l.o.Stats
	w.done.Rewritten++
	w.done.Written += size
	w.done.Reclaimed += w.size - size
	w.done.Removed += w.removed
	stats.Rewritten.Add(1)
	stats.Written.Add(size)
	stats.Reclaimed.Add(w.size - size)
	stats.Superseded.Add(w.removed)
}

// swap is the moment of the change: who reads the segment waits, and goes on with the new log (ST-48). The snapshot at
// its end is what it was: none is written at the end of a sealed segment.
func (w *rewriting) swap() error {
	l, part := w.l, w.part
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.removing {
		l.synced.Wait()
	}
	if err := l.writableLocked(); err != nil {
		return err
	}
	end, ok := l.endOfLocked(part)
	if !ok {
		return nil // deleted meanwhile
	}
	if err := w.rebindLocked(end); err != nil {
		return err
	}
	err := w.swapUnlocked()
	if l.last.Offset == end {
		l.known = false
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, segment.ErrSync) {
		l.noteFailure(part.base) // the end of the pass takes the log offline
	}
	// Whichever log has the name: it is there to be read before anybody asks.
	if _, openErr := l.open(part); openErr != nil {
		l.logger().Error("a segment can't be opened again after a rewrite failed", "segment", segment.FileName(part.base, segment.LogSuffix), "error", openErr)
	}
	return err
}

// swapUnlocked lets go of the lock while it is at the disk, which may take long: appends go on. No segment of the log is removed until it has it again.
func (w *rewriting) swapUnlocked() error {
	l := w.l
	l.removing = true
	l.mu.Unlock()
	err := w.swapPart()
	l.mu.Lock()
	l.removing = false
	l.synced.Broadcast()
	return err
}

func (w *rewriting) swapPart() error {
	p := w.part
	p.mu.Lock()
	defer p.mu.Unlock()
	// Before it is closed: who sees it closed opens the part, and waits for the lock.
	p.size.Store(w.size)
	p.aborts.Store(true)
	p.opened.Store(nil)
	p.swaps.Add(1) // after it: who knows of the swap gets no region of the old log any more, see addAborted
	p.epoch.Store(0)
	s, err := w.log.Swap()
	if err != nil {
		p.unsure = errors.Is(err, segment.ErrSync)
		return err
	}
	w.replaced = true
	p.opened.Store(s)
	return nil
}

// rebindLocked has the producer snapshot at the end of the part fit the new
// log as well as the old one, durably, so that no moment of the swap loses the producers to a power cut (ST-9).
func (w *rewriting) rebindLocked(end int64) error {
	l, last := w.l, w.log.Last()
	if !slices.Contains(l.snapshots, end) || last == nil || last.LastOffset() != end-1 || last.CRC() == w.oldLast {
		return nil
	}
	name := l.path(segment.FileName(end, snapshotSuffix))
	content, err := vfs.ReadFile(l.o.FS, name)
	if err != nil {
		return err
	}
	state, at, err := producer.Decode(content)
	if err != nil || at.Offset != end || !at.Fits(w.oldLast) {
		return nil // it is of no use as it is
	}
	l.o.Stats.Syncs.Add(2)
	content = state.Encode(nil, producer.Binding{Offset: end, After: true, CRC: w.oldLast, Also: last.CRC()})
	return vfs.WriteFileSync(l.names, name, content, 0o644)
}

// dropEmptied takes a part without a batch off the list, and removes its files. gone is false for
// the log's first part, which stays.
func (l *Log) dropEmptied(p *part) (gone bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writableLocked(); err != nil {
		return false, err
	}
	parts := *l.parts.Load()
	i := slices.Index(parts, p)
	if i <= 0 {
		return i < 0, nil // deleted meanwhile, or the first by now
	}
	kept := slices.Concat(parts[:i], parts[i+1:])
	l.parts.Store(&kept)
	p.mu.Lock()
	p.emptied = true
	p.mu.Unlock()
	p.gone.Store(true) // after the list: who meets it looks at the list again
	l.dropped = append(l.dropped, p)
	return true, l.removeDroppedLocked()
}
