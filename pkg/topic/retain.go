package topic

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

// Retain removes what retention no longer keeps of the topics' partitions at a
// time (ms), and returns of how many: their log starts move in one commit, then the segments below them go (ST-34). Only with
// unopened does it look at logs that are not open, and it opens none (ST-33). Errors of single partitions are
// joined; the others are retained all the same.
func (r *Registry) Retain(ctx context.Context, topics []*Topic, nowMs int64, unopened bool) (moved int, err error) {
	var moves []*move
	var errs []error
	for _, t := range topics {
		if !t.limited() {
			continue
		}
		for p, s := range t.slots {
			start, ok, err := s.expired(t, int32(p), nowMs, unopened)
			if err != nil {
				errs = append(errs, fmt.Errorf("retention of %s-%d: %w", t.name, p, err))
			}
			if ok { // as far as it got
				moves = append(moves, &move{topic: t, partition: int32(p), start: start})
			}
		}
	}
	r.moveStarts(ctx, moves)
	for _, m := range moves {
		switch {
		case m.err == nil:
			moved++
		case !errors.Is(m.err, kerr.UnknownTopicOrPartition): // deleted meanwhile, with all it had
			errs = append(errs, fmt.Errorf("retention of %s-%d: %w", m.topic.name, m.partition, m.err))
		}
	}
	return moved, errors.Join(errs...)
}

// retentionConfigs are those that retention depends on.
var retentionConfigs = [...]string{"retention.bytes", "retention.ms", "cleanup.policy"}

// limited says whether retention may delete anything of a topic. It parses the
// configs of those topics alone that have one of retention's.
func (t *Topic) limited() bool {
	for _, name := range retentionConfigs {
		if _, ok := t.overrides[name]; ok {
			c, err := t.config()
			return err == nil && c.Limited()
		}
	}
	return t.r.effective.Load().defaults.Limited()
}

// expired is where retention would have a partition begin, if later than now.
func (s *slot) expired(t *Topic, partition int32, nowMs int64, unopened bool) (start int64, ok bool, err error) {
	if l := s.log.Load(); l != nil {
		start, err := l.Expired(nowMs)
		return start, start > l.Offsets().LogStart, err
	}
	if !unopened {
		return 0, false, nil
	}
	s.mu.Lock() // so that nobody opens the log meanwhile
	defer s.mu.Unlock()
	if s.ended != nil || s.log.Load() != nil { // opened since: its turn comes
		return 0, false, nil
	}
	o, err := t.logOptions(kafka.TopicPartition{Topic: t.name, Partition: partition})
	if err != nil {
		return 0, false, err
	}
	return commitlog.ExpiredClosed(&o, nowMs)
}

// Roll seals the active segments of a topic's partitions, so that retention may have them.
func (t *Topic) Roll() error {
	var errs []error
	for p := range t.partitions {
		l, err := t.Log(p)
		if err == nil {
			err = l.Roll()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
