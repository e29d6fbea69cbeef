package topic

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/commitlog"
	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// A Deletion asks for the records of a partition below an offset to be
// deleted, as DeleteRecords does; commitlog.HighWatermark is all of them.
type Deletion struct {
	kafka.TopicPartition
	Offset int64
}

// Deleted is the outcome of one Deletion: Err, or where the log begins now.
type Deleted struct {
	Err      error
	LogStart int64
}

// DeleteRecords moves log starts, durably, and removes the segments wholly
// below them (ST-35). The outcomes are in the order of the deletions, each on
// its own, of partitions that are each named once. UNKNOWN_TOPIC_OR_PARTITION; the errors of
// commitlog.CheckStart; KAFKA_STORAGE_ERROR if the disk failed.
func (r *Registry) DeleteRecords(ctx context.Context, deletions []Deletion) []Deleted {
	outcomes := make([]Deleted, len(deletions))
	logs := make([]*commitlog.Log, len(deletions))
	topics := make([]*Topic, len(deletions))
	for i := range deletions {
		d := &deletions[i]
		t, ok := r.Lookup(d.Topic)
		if !ok {
			outcomes[i].Err = kerr.UnknownTopicOrPartition
			continue
		}
		topics[i] = t
		if logs[i], outcomes[i].Err = t.Log(d.Partition); outcomes[i].Err == nil {
			logs[i].StartFlush(flushedFor(logs[i], d.Offset)) // they are waited for one after the other
		}
	}
	var moves []*move
	var places []int
	for i := range deletions {
		o := &outcomes[i]
		if o.Err != nil {
			continue
		}
		if o.LogStart, o.Err = logs[i].CheckStart(ctx, deletions[i].Offset); o.Err == nil {
			moves = append(moves, &move{topic: topics[i], partition: deletions[i].Partition, start: o.LogStart})
			places = append(places, i)
		}
	}
	r.moveStarts(ctx, moves)
	for i, m := range moves {
		outcomes[places[i]].Err = timedOut(m.err)
	}
	return outcomes
}

// flushedFor is what has to be durable before records below an offset are deleted.
func flushedFor(l *commitlog.Log, offset int64) int64 {
	if offset == commitlog.HighWatermark {
		return l.Offsets().HighWatermark
	}
	return offset
}

// A move is a log start on its way.
type move struct {
	topic     *Topic
	partition int32
	start     int64
	err       error
}

// moveStarts moves log starts: durably first, all in one commit, so that what
// is told to be gone never comes back, and what is removed is never missed (ST-34). A start never moves back.
func (r *Registry) moveStarts(ctx context.Context, moves []*move) {
	if len(moves) == 0 {
		return
	}
	err := r.o.Store.Update(ctx, func(tx *metastore.Tx) error {
		for _, m := range moves {
			there, err := tx.HasTopic(m.topic.name, m.topic.id)
			switch {
			case err != nil:
				return err
			case !there:
				m.err = kerr.UnknownTopicOrPartition // deleted meanwhile, with its log starts
				continue
			case m.start <= tx.LogStart(m.topic.id, m.partition):
				continue
			}
			if err := tx.PutLogStart(m.topic.id, m.partition, m.start); err != nil {
				return err
			}
		}
		return nil
	})
	for _, m := range moves {
		switch {
		case m.err != nil:
		case err != nil:
			m.err = err
		default:
			m.err = m.topic.moveStart(m.partition, m.start)
		}
	}
}

// moveStart makes a log begin where meta.db says by now. Of one that is not
// open only the files below that are removed.
func (t *Topic) moveStart(partition int32, start int64) error {
	s := t.slots[partition]
	l, err := s.trimClosed(t, partition, start)
	if l == nil {
		return err
	}
	return l.MoveStart(start)
}

// trimClosed removes the files below a start, or returns the log if it is open.
func (s *slot) trimClosed(t *Topic, partition int32, start int64) (*commitlog.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.log.Load(); l != nil || s.ended != nil {
		return l, s.ended
	}
	o, err := t.logOptions(kafka.TopicPartition{Topic: t.name, Partition: partition})
	if err != nil {
		return nil, err
	}
	o.LogStart = start
	if err := commitlog.TrimClosed(&o); err != nil {
		return nil, fmt.Errorf("trim %s: %w: %w", o.Partition, kerr.KafkaStorageError, err)
	}
	return nil, nil
}
