package handler

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/topic"
)

// A fetchAsk is one partition that a fetch reads.
type fetchAsk struct {
	topic     *topic.Topic
	log       *commitlog.Log // nil if it can't be opened: err
	err       error
	partition int32

	offset           int64
	maxBytes         int32
	leaderEpoch      int32 // the client's; -1: not told
	lastFetchedEpoch int32 // -1: not told
}

// fetchLimits are what bounds a fetch.
type fetchLimits struct {
	isolation kafka.Isolation
	follower  bool // asked as a replica, which no other node is
	maxBytes  int
	minBytes  int
	maxWait   time.Duration
}

// read reads every partition in order, within the limits, into results (of
// the same order). The first that has anything gives at least its first batch
// whole (KIP-74). It returns how many bytes there are, and whether they must go out at once.
func (c *fetchCall) read() (size int, urgent bool) {
	left := c.limits.maxBytes
	for i := range c.asks {
		r := &c.results[i]
		r.release()
		if err := c.readOne(&c.asks[i], r, left, size == 0); err != nil {
			c.fail(r, err)
		}
		urgent = urgent || r.errorCode != 0 || r.diverges
		size += r.region.Length
		left = max(0, left-r.region.Length)
	}
	return size, urgent
}

// readOne reads one partition (Partition.fetchRecords): epochs are compared
// before offsets are looked at.
func (c *fetchCall) readOne(a *fetchAsk, r *fetchResult, left int, wholeFirst bool) error {
	r.errorCode, r.tellLeader, r.diverges, r.aborted = 0, false, false, nil
	if a.err != nil {
		return a.err
	}
	if err := c.h.checkEpoch(a.leaderEpoch); err != nil {
		return err
	}
	if c.limits.follower {
		return kerr.NotLeaderForPartition
	}
	if a.lastFetchedEpoch != noEpoch {
		if err := diverge(a, r); err != nil || r.diverges {
			return err
		}
	}
	limit := min(int(max(a.maxBytes, 0)), left)
	s, err := a.log.Read(a.offset, limit, wholeFirst, c.limits.isolation)
	if err != nil {
		return err
	}
	r.highWatermark, r.lastStable, r.logStart = s.HighWatermark, s.LastStable, s.LogStart
	r.region = s.Region
	if a.maxBytes < 0 && a.offset < c.readable(s.HighWatermark, s.LastStable) {
		return kerr.UnknownServerError // a segment does not read backwards (LogSegment.read)
	}
	// Kafka has no list of aborted transactions with records that it holds back
	// because the first batch does not fit; with a limit of 0 it does not get to see that.
	if c.limits.isolation == kafka.ReadCommitted && (s.Region.Length > 0 || limit == 0 || a.offset >= s.LastStable) {
		r.aborted = s.Aborted
	}
	return nil
}

// readable is the end of what the fetch may see.
func (c *fetchCall) readable(highWatermark, lastStable int64) int64 {
	if c.limits.isolation == kafka.ReadCommitted {
		return lastStable
	}
	return highWatermark
}

// diverge compares the epoch of the last record that the client has with the
// log (KIP-595): a log that was cut since then has another end of that epoch.
func diverge(a *fetchAsk, r *fetchResult) error {
	epoch, end, err := a.log.EndOffsetForEpoch(a.lastFetchedEpoch)
	if err != nil {
		return err
	}
	o := a.log.Offsets()
	if epoch == noEpoch || end < 0 || a.offset < o.LogStart {
		return kerr.OffsetOutOfRange
	}
	if epoch < a.lastFetchedEpoch || end < a.offset {
		r.highWatermark, r.lastStable, r.logStart = o.HighWatermark, o.LastStable, o.LogStart
		r.diverges, r.divergeEpoch, r.divergeEnd = true, epoch, end
	}
	return nil
}

// fail makes r the answer of a partition that can't be read (KafkaApis.handleFetchRequest).
func (c *fetchCall) fail(r *fetchResult, err error) {
	code := c.h.code(c.req, err)
	switch code {
	case kerr.KafkaStorageError.Code:
		if c.req.Version <= 5 { // which does not know it, and would not repeat the fetch
			code = kerr.NotLeaderForPartition.Code
		}
	case kerr.NotLeaderForPartition.Code, kerr.FencedLeaderEpoch.Code:
		r.tellLeader, r.epoch = true, c.h.Epoch
	}
	r.fail(code)
}

// await is the long poll: until there are enough bytes, the client's wait is
// over, or ctx ends (the connection is gone or the broker stops). Every
// partition is watched before it is looked at, so that no append is missed in between.
func (c *fetchCall) await(ctx context.Context) {
	for i := range c.asks {
		c.cancels = append(c.cancels, c.asks[i].log.Watch(c.wake))
	}
	if c.timer == nil {
		c.timer = time.NewTimer(c.limits.maxWait)
	} else {
		c.timer.Reset(c.limits.maxWait)
	}
	for expired := false; !expired && !c.enough(); {
		select {
		case <-c.wake:
		case <-c.timer.C:
			expired = true
		case <-ctx.Done():
			expired = true
		}
	}
	c.timer.Stop()
	for i, cancel := range c.cancels {
		cancel()
		c.cancels[i] = nil
	}
	c.cancels = c.cancels[:0]
}

// enough is what ends the long poll (DelayedFetch.tryComplete): enough bytes,
// of which no partition counts more than its limit; an offset before the
// newest segment, since a read ends with its segment; an offset beyond the
// end; a topic that is gone. (Epochs do not change while the broker runs.)
func (c *fetchCall) enough() bool {
	total := int64(0)
	for i := range c.asks {
		a := &c.asks[i]
		if _, ok := c.h.Registry.LookupID(a.topic.ID()); !ok {
			return true
		}
		o := a.log.Offsets()
		end := c.readable(o.HighWatermark, o.LastStable)
		if a.offset == end {
			continue
		}
		if a.offset > end {
			return true
		}
		available, rolled := a.log.Available(a.offset, c.limits.isolation)
		if rolled {
			return true
		}
		total += min(available, int64(max(a.maxBytes, 0)))
	}
	return total >= int64(c.limits.minBytes)
}
