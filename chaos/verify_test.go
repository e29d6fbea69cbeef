package chaos

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// verify holds all that the broker has against the history, while nobody else asks it for anything.
func (r *run) verify() (*history.Check, error) {
	p := r.peer()
	defer p.close()
	c := r.h.Check(history.Kill)
	for _, fact := range r.h.Facts() {
		got, err := p.read(fact)
		if err != nil {
			return c, fmt.Errorf("%s: %w", fact, err)
		}
		c.Fact(fact, got)
		name, isTopic := strings.CutPrefix(fact, "topic ")
		if !isTopic || got == history.None {
			continue
		}
		if err := p.readTopic(c, name); err != nil {
			return c, err
		}
	}
	c.Done()
	return c, nil
}

// read is what a broker says of a fact.
func (p *peer) read(fact string) (string, error) {
	words := strings.Fields(fact)
	topic := words[1]
	if words[0] == "offset" {
		topic = words[2]
	}
	id, partitions, there, err := p.find(topic)
	switch {
	case err != nil:
		return "", err
	case !there:
		return history.None, nil
	case words[0] == "topic":
		return fmt.Sprint(partitions), nil
	case words[0] == "config":
		return p.config(topic, retention)
	}
	var part int32
	if _, err := fmt.Sscan(words[3], &part); err != nil {
		return "", err
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.TopicID, t.Partitions = topic, id, []int32{part}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.Topics = words[1], append(g.Topics, t)
	req.Groups = append(req.Groups, g)
	resp, _, err := ask[*kmsg.OffsetFetchResponse](p, req)
	if err != nil {
		return "", err
	}
	got := resp.Groups[0].Topics[0].Partitions[0]
	if got.Offset < 0 {
		return history.None, kerr.ErrorForCode(got.ErrorCode)
	}
	return fmt.Sprint(got.Offset), kerr.ErrorForCode(got.ErrorCode)
}

func (p *peer) readTopic(c *history.Check, topic string) error {
	id, partitions, _, err := p.find(topic)
	if err != nil {
		return err
	}
	for part := range int32(partitions) {
		start, end, err := p.bounds(topic, part)
		if err != nil {
			return err
		}
		r := c.Read(topic, part, start)
		if err := p.fetch(r, topic, id, part, start, end); err != nil {
			return fmt.Errorf("fetch %s-%d: %w", topic, part, err)
		}
		r.End(end, false)
	}
	return nil
}

// fetch reads a partition batch by batch into a reading.
func (p *peer) fetch(r *history.Reading, topic string, id [16]byte, part int32, start, end int64) error {
	return p.batches(topic, id, part, start, end, func(b record.Batch, next int64) error { return give(r, b, next) })
}

// batches reads a partition from start to end and visits each batch with the offset that was asked for, or that is behind the batch before: the
// first batch may begin below it.
func (p *peer) batches(topic string, id [16]byte, part int32, start, end int64, visit func(b record.Batch, next int64) error) error {
	for next := start; next < end; {
		req := kmsg.NewPtrFetchRequest()
		req.MaxBytes, req.MaxWaitMillis, req.SessionEpoch = 4<<20, 0, -1
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = topic, id
		at := kmsg.NewFetchRequestTopicPartition()
		at.Partition, at.FetchOffset, at.PartitionMaxBytes = part, next, 4<<20
		t.Partitions = append(t.Partitions, at)
		req.Topics = append(req.Topics, t)
		resp, _, err := ask[*kmsg.FetchResponse](p, req)
		if err != nil {
			return err
		}
		got := resp.Topics[0].Partitions[0]
		if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
			return fmt.Errorf("at %d: %w", next, err)
		}
		from := next
		for left := got.RecordBatches; len(left) > 0; {
			b, rest, err := record.Parse(left)
			if err != nil {
				break // a response may end within a batch
			}
			if err := b.CheckCRC(); err != nil {
				return fmt.Errorf("at %d: %w", next, err)
			}
			if err := visit(b, next); err != nil {
				return err
			}
			next, left = b.LastOffset()+1, rest
		}
		if next == from {
			return fmt.Errorf("nothing at %d, before the end %d", next, end)
		}
	}
	return nil
}

// give passes on the records of a batch at next and behind it.
func give(r *history.Reading, b record.Batch, next int64) error {
	for rec, err := range b.Records() {
		if err != nil {
			return err
		}
		switch at := b.BaseOffset() + int64(rec.OffsetDelta); {
		case at < next: // of the batch that the log start is in
		case b.Control():
			r.Control(at)
		default:
			r.Record(at, rec.Value)
		}
	}
	return nil
}
