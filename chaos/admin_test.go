package chaos

import (
	"fmt"
	"math/rand/v2"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
)

// A passer makes topics that do not stay, fills them, alters and deletes them, and makes them again.
type passer struct {
	*idempotent
	names []string
	there map[string]passing
}

type passing struct {
	id         [16]byte
	partitions int
}

func (r *run) newPasser(id uint32) *passer {
	p := &passer{idempotent: r.newIdempotent(id), there: map[string]passing{}}
	for n := range 3 {
		name := fmt.Sprintf("passing-%d-%d", id, n)
		p.names = append(p.names, name)
		r.h.Promise(map[string]string{"topic " + name: history.None, "config " + name: history.None})
	}
	return p
}

func (p *passer) work(stop <-chan struct{}) {
	for ok := p.begin(); ok && !over(stop); {
		name := p.names[p.rng.IntN(len(p.names))]
		t, there := p.there[name]
		switch r := p.rng.IntN(12); {
		case !there:
			t.partitions = 1 + p.rng.IntN(3)
			if t.id, ok = p.create(p.peer, name, t.partitions); ok {
				p.there[name] = t
			}
		case r == 0:
			ok = p.remove(name)
			delete(p.there, name)
		case r == 1:
			ok = p.alter(p.peer, name, p.rng)
		default:
			ok = p.step(name, t.id, int32(p.rng.IntN(t.partitions)))
		}
	}
}

func (p *passer) remove(name string) bool {
	req := kmsg.NewPtrDeleteTopicsRequest()
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.Topic = &name
	req.TopicNames, req.Topics, req.TimeoutMillis = []string{name}, append(req.Topics, t), 10_000
	return p.change(map[string]string{"topic " + name: history.None, "config " + name: history.None}, func() error {
		resp, sent, err := ask[*kmsg.DeleteTopicsResponse](p.peer, req)
		if err != nil {
			return err
		}
		p.did("topics deleted")
		return again(resp.Topics[0].ErrorCode, sent, unknownTopic)
	})
}

// alter changes how long a topic's records are kept, which is for ever all the same.
func (r *run) alter(p *peer, name string, rng *rand.Rand) bool {
	value := fmt.Sprint(forEver + rng.IntN(1_000_000))
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeTopic, name
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Op, c.Value = retention, kmsg.IncrementalAlterConfigOpSet, &value
	res.Configs = append(res.Configs, c)
	req.Resources = append(req.Resources, res)
	return r.change(map[string]string{"config " + name: value}, func() error {
		resp, _, err := ask[*kmsg.IncrementalAlterConfigsResponse](p, req)
		if err != nil {
			return err
		}
		r.did("configs altered")
		return kerr.ErrorForCode(resp.Resources[0].ErrorCode)
	})
}

// admin alters, grows and trims the topics that stay.
func (r *run) admin(p *peer, rng *rand.Rand, stop <-chan struct{}) {
	all := append([]string{trimmed}, steady...)
	for ok := true; ok && !over(stop); {
		switch name := all[rng.IntN(len(all))]; rng.IntN(30) {
		case 0:
			ok = r.grow(p, name)
		case 1, 2, 3, 4:
			ok = r.alter(p, name, rng)
		default:
			_, partitions := r.topic(trimmed)
			ok = r.trim(p, int32(rng.IntN(partitions)), rng)
		}
	}
}

func (r *run) grow(p *peer, name string) bool {
	id, partitions := r.topic(name)
	if partitions == maxPartitions {
		return true
	}
	partitions++
	req := kmsg.NewPtrCreatePartitionsRequest()
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = name, int32(partitions)
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 10_000
	r.h.Grow(name, partitions)
	ok := r.change(map[string]string{"topic " + name: fmt.Sprint(partitions)}, func() error {
		resp, sent, err := ask[*kmsg.CreatePartitionsResponse](p, req)
		if err != nil {
			return err
		}
		return again(resp.Topics[0].ErrorCode, sent, invalidPartitions)
	})
	if ok {
		r.setTopic(name, id, partitions)
		r.did("partitions created")
	}
	return ok
}

// trim deletes records of a partition: up to somewhere, or to its end.
func (r *run) trim(p *peer, part int32, rng *rand.Rand) bool {
	start, end, err := p.bounds(trimmed, part)
	if err == nil {
		err = r.h.Starts(trimmed, part, start)
	}
	if err != nil {
		r.fail(err)
		return false
	}
	to := start + rng.Int64N((end-start)/2+1)
	r.h.MayStart(trimmed, part, to)
	req := kmsg.NewPtrDeleteRecordsRequest()
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = trimmed
	t.Partitions = append(t.Partitions, kmsg.DeleteRecordsRequestTopicPartition{Partition: part, Offset: to})
	req.Topics = append(req.Topics, t)
	resp, _, err := ask[*kmsg.DeleteRecordsResponse](p, req)
	if err == nil {
		got := resp.Topics[0].Partitions[0]
		if err = kerr.ErrorForCode(got.ErrorCode); err == nil {
			err = r.h.Starts(trimmed, part, got.LowWatermark)
		}
	}
	if err != nil {
		r.fail(fmt.Errorf("delete records of %s-%d below %d: %w", trimmed, part, to, err))
		return false
	}
	r.did("records deleted")
	return true
}

// bounds are a partition's log start and its end.
func (p *peer) bounds(topic string, part int32) (start, end int64, err error) {
	var got [2]int64
	for i, timestamp := range []int64{-2, -1} {
		at := kmsg.NewListOffsetsRequestTopicPartition()
		at.Partition, at.Timestamp = part, timestamp
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic, t.Partitions = topic, append(t.Partitions, at)
		req := kmsg.NewPtrListOffsetsRequest()
		req.ReplicaID, req.Topics = -1, append(req.Topics, t)
		resp, _, err := ask[*kmsg.ListOffsetsResponse](p, req)
		if err != nil {
			return 0, 0, err
		}
		if err := kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode); err != nil {
			return 0, 0, fmt.Errorf("offsets of %s-%d: %w", topic, part, err)
		}
		got[i] = resp.Topics[0].Partitions[0].Offset
	}
	return got[0], got[1], nil
}
