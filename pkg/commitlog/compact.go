package commitlog

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/segment"
)

// A Compaction is how one pass goes about it.
type Compaction struct {
	// From is the first dirty offset: below it no key has two records. Where it
	// can't be one, everything is dirty.
	From int64
	// Keys is the memory of the pass, and bounds it. It may be used again once the pass has ended.
	Keys  *KeyMap
	NowMs int64 // for delete horizons and min.compaction.lag.ms
	// Pace, if there is one, is told of bytes that were read or written and waits for as long as it
	// wants. Its error ends the pass.
	Pace func(ctx context.Context, bytes int) error
}

// Compacted is what a pass has come to.
type Compacted struct {
	Next      int64 // the first dirty offset by now
	More      bool  // another pass has something to do: there were more keys than fit one
	Rewritten int   // segments
	Reclaimed int64 // bytes
	Removed   int64 // records, markers among them
	Read      int64 // bytes, each as often as it was read
	Written   int64 // bytes
}

var (
	// ErrCompacting is returned by Compact while another one of the log is under way.
	ErrCompacting = errors.New("the log is being compacted already")
	// ErrNoCompaction ends a Compact during which compact was taken out of cleanup.policy.
	ErrNoCompaction = errors.New("cleanup.policy has no compact any more")
)

// Dirt is what of a log compaction would look at.
type Dirt struct {
	From, To int64 // the offsets that are dirty and may be compacted; From == To: there is nothing to do
	// Ratio is the dirty bytes' share of what may be compacted (LogToClean.cleanableRatio).
	Ratio float64
}

// Dirty says what a compaction from a first dirty offset on would look at, at a time (ms): sealed segments
// wholly below the last stable offset (ST-41), up to the first with a record of less than min.compaction.lag.ms (ST-47).
func (l *Log) Dirty(from, nowMs int64) (Dirt, error) {
	return again(func() (Dirt, error) {
		parts, from, to, err := l.cleanable(from, nowMs)
		d := Dirt{From: from, To: to}
		if err != nil || from == to {
			return d, err
		}
		first := max(find(parts, from), 0)
		clean, all := int64(0), int64(0)
		for i, p := range parts {
			if i < first {
				clean += p.bytes()
			}
			all += p.bytes()
		}
		if all > 0 {
			d.Ratio = float64(all-clean) / float64(all)
		}
		return d, nil
	})
}

// oldest is the least timestamp (ms) of the first batches of the parts that are sealed, from an offset on; NoTimestamp: they
// have none (LogCleanerManager.maxCompactionDelay, to which 0 is none).
func (l *Log) oldest(from int64) (int64, error) {
	return again(func() (int64, error) {
		least, parts := record.NoTimestamp, *l.parts.Load()
		if len(parts) == 0 {
			return least, l.endedErr()
		}
		for _, p := range parts[max(find(parts, from), 0) : len(parts)-1] {
			s, err := l.open(p)
			if err != nil {
				return least, err
			}
			if ts := s.FirstTimestamp(); ts > 0 && (least < 0 || ts < least) {
				least = ts
			}
		}
		return least, nil
	})
}

// Due says whether the log wants to be compacted at a time (ms): more of it is dirty than min.cleanable.dirty.ratio, or a
// dirty segment began more than max.compaction.lag.ms ago (LogCleanerManager.grabFilthiestCompactedLog).
func (l *Log) Due(from, nowMs int64) (bool, error) {
	cfg := l.config.Load()
	if !cfg.Compact || len(*l.parts.Load()) < 2 || l.isUncleanable() {
		return false, l.endedErr()
	}
	d, err := l.Dirty(from, nowMs)
	if l.noteUncleanable(err) {
		return false, nil // it has been told
	}
	if err != nil || d.From == d.To {
		return false, err
	}
	if d.Ratio > cfg.MinDirtyRatio || cfg.MaxCompactionLagMs == math.MaxInt64 {
		return d.Ratio > cfg.MinDirtyRatio, nil
	}
	oldest, err := l.oldest(d.From)
	return err == nil && oldest > 0 && nowMs-oldest > cfg.MaxCompactionLagMs, err
}

// cleanable are the segments that may be compacted, and the dirty offsets among theirs.
func (l *Log) cleanable(from, nowMs int64) (parts []*part, first, end int64, err error) {
	all, at, cfg := *l.parts.Load(), l.marks.load(), l.config.Load()
	if len(all) == 0 {
		return nil, at.LogStart, at.LogStart, l.endedErr()
	}
	if from < at.LogStart || from > all[len(all)-1].base {
		from = at.LogStart // LogCleanerManager.cleanableOffsets
	}
	n := 0
	for n+1 < len(all) && all[n+1].base <= at.LastStable {
		if cfg.MinCompactionLagMs > 0 && all[n+1].base > from {
			ts, err := l.largestTimestamp(all[n])
			if err != nil {
				return nil, from, from, err
			}
			if ts > nowMs-cfg.MinCompactionLagMs {
				break
			}
		}
		n++
	}
	return all[:n], from, max(from, all[n].base), l.endedErr()
}

// Compact makes one pass: the latest record of each key stays, as far as the
// keys from the first dirty offset on fit the map (ST-40, ST-42). The caller makes Next durable and calls
// again while there is More; to compact twice from the same offset does no harm. Where nothing is dirty
// tombstones and markers go whose time has come.
//
// KAFKA_STORAGE_ERROR: the disk; every segment is the old one or the new one. CORRUPT_MESSAGE: a segment can't
// be walked to its end, so that nobody knows what is the latest. ErrCompacting; ErrNoCompaction; ctx's error; that of a log
// that was closed or deleted meanwhile.
func (l *Log) Compact(ctx context.Context, c Compaction) (Compacted, error) {
	ctx, err := l.beginCompact(ctx)
	if err != nil {
		return Compacted{Next: c.From}, err
	}
	defer l.endCompact()
	p, err := l.newPass(ctx, c)
	if err != nil {
		return Compacted{Next: p.from}, err
	}
	if err = p.run(); err != nil {
		if ended := l.endedErr(); ended != nil {
			err = ended // rather than that of the context which ended with it
		}
		p.done.Next = p.from
		return p.done, err
	}
	p.done.Next, p.done.More = p.end, p.end < p.to
	return p.done, nil
}

func (l *Log) beginCompact(ctx context.Context) (context.Context, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.writableLocked(); err != nil {
		return ctx, err
	}
	// A segment that a pass before has emptied, and that could not be removed, is back after the next start: the
	// tombstones and markers that have ended its records stay for as long.
	if err := l.removeDroppedLocked(); err != nil {
		return ctx, err
	}
	if err := l.writableLocked(); err != nil { // the lock was free meanwhile
		return ctx, err
	}
	if l.compacting != nil {
		return ctx, fmt.Errorf("%s: %w", l.name, ErrCompacting)
	}
	ctx, l.compacting = context.WithCancel(ctx)
	return ctx, nil
}

func (l *Log) endCompact() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.compacting()
	l.compacting = nil
	if err := l.names.failed(); err != nil && l.failed == nil && l.endedErr() == nil {
		_ = l.failLocked("sync the partition's directory", err) // whoever has asked for the sync
	}
	l.synced.Broadcast()
}

// A pass is one compaction of what fits one map.
type pass struct {
	Compaction
	l       *Log
	ctx     context.Context // of this pass alone, which ends with it
	cfg     *Config
	parts   []*part // that may be compacted, from the log's first on
	from    int64   // what is dirty
	to      int64
	end     int64                          // up to here the map knows all records; a batch's end
	aborted map[int64][]segment.AbortedTxn // by producer, and by the offsets of their markers
	last    map[int64]lastOf               // by producer
	open    map[int64]bool                 // producers with a batch that stays, of a transaction whose marker is yet to come
	reading reading                        // where the pass is
	unread  bool                           // a batch that can't be read stays before the one that is judged: it may have any key, and be of any transaction
	keys    batchKeys

	dead      offsetSet // what is superseded, among the dirty records and, after several rounds, the others
	rounds    bool      // the map had to be filled several times, and has a part of the keys
	compactor record.Compactor
	kept      []uint64 // of the batch that was judged last: a bit for each record that stays

	done Compacted
}

// A lastOf is what says how far a producer was.
type lastOf struct {
	epoch  int16
	offset int64 // of its last data batch of that epoch; -1: there is none, and its marker says the epoch
}

func (l *Log) newPass(ctx context.Context, c Compaction) (*pass, error) {
	p := &pass{Compaction: c, l: l, ctx: ctx, cfg: l.config.Load(), from: c.From, to: c.From,
		open: map[int64]bool{}, last: map[int64]lastOf{}}
	_, err := again(func() (_ struct{}, err error) {
		p.parts, p.from, p.to, err = l.cleanable(c.From, c.NowMs)
		return struct{}{}, err
	})
	if err != nil || len(p.parts) == 0 {
		return p, err
	}
	if p.aborted, err = again(l.allAborted); err != nil {
		l.noteUncleanable(err)
		return p, err
	}
	for _, known := range l.Producers() {
		last := lastOf{epoch: known.Epoch, offset: -1}
		if n := len(known.Batches); n > 0 {
			last.offset = known.Batches[n-1].LastOffset
		}
		p.last[known.ID] = last
	}
	return p, nil
}

// allAborted are the aborted transactions of the log, by producer. Those of the active
// segment count, too: they began below the last stable offset.
func (l *Log) allAborted() (map[int64][]segment.AbortedTxn, error) {
	if !l.aborts.Load() {
		return nil, nil
	}
	by := map[int64][]segment.AbortedTxn{}
	for _, p := range *l.parts.Load() {
		list, err := l.abortsIn(p)
		if err != nil {
			return nil, err
		}
		for _, a := range list {
			by[a.ProducerID] = append(by[a.ProducerID], a)
		}
	}
	return by, nil
}

// abortsIn are the transactions whose abort marker lies in a part.
func (l *Log) abortsIn(p *part) ([]segment.AbortedTxn, error) {
	for {
		s, err := l.open(p)
		if err != nil {
			return nil, err
		}
		list, _, err := s.Aborted(nil, p.base, maxOffset)
		if !errors.Is(err, segment.ErrAborted) {
			return list, err
		}
		if err := l.rebuildAborted(p, err); err != nil {
			return nil, err
		}
	}
}

// run reads the dirty records, and then rewrites what has older ones, segment by segment from the first on. In this order
// a tombstone, or a marker, never goes before what it has ended (ST-45, ST-46). After a segment that can't be walked the
// log is not due any more; a single batch that can't be read stays as it is (ST-14).
func (p *pass) run() (err error) {
	defer func() { p.l.noteUncleanable(err) }()
	if err := p.index(); err != nil {
		return err
	}
	for i, part := range p.parts {
		if part.base >= p.end {
			break
		}
		if err := p.rewrite(part, i == 0); err != nil {
			return err
		}
	}
	return nil
}

// walk shows the whole batches of a part, at the pace that is wanted. One that has been removed has none.
func (p *pass) walk(part *part, visit func(pos int64, b record.Batch) bool) error {
	end, ok := p.l.endOf(part)
	if !ok {
		return nil
	}
	s, err := p.l.open(part)
	if err == nil {
		var stopped error
		err = s.WholeBatches(func(pos int64, b record.Batch) bool {
			if stopped = p.pace(len(b)); stopped == nil {
				stopped = p.beyond(part, pos, b, end)
			}
			if stopped != nil {
				return false
			}
			p.done.Read += int64(len(b))
			p.l.o.Stats.Compacted.Add(int64(len(b)))
			p.reading = reading{part, pos}
			return visit(pos, b)
		})
		if stopped != nil {
			return stopped
		}
		if err != nil {
			err = p.l.readError(part, err)
		}
	}
	if errors.Is(err, errGone) && part.gone.Load() {
		return nil
	}
	return err
}

// pace waits for the pass's turn, and says if it is to end.
func (p *pass) pace(bytes int) error {
	if err := p.l.endedErr(); err != nil {
		return err
	}
	if err := p.ctx.Err(); err != nil {
		return err
	}
	if p.cfg.Compact && !p.l.config.Load().Compact {
		return ErrNoCompaction
	}
	if p.Pace == nil {
		return nil
	}
	return p.Pace(p.ctx, bytes)
}

// isStorage says whether an error has been made one for clients.
func isStorage(err error) bool {
	return errors.Is(err, kerr.KafkaStorageError) || errors.Is(err, kerr.CorruptMessage)
}
