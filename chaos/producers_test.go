package chaos

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
	"github.com/dozekafka/doze-kafka/pkg/record"
)

// An idempotent producer of single requests, with acks=1 and acks=all by lot. A batch is repeated as it is until it is answered.
type idempotent struct {
	*run
	*peer
	rng   *rand.Rand
	id    uint32 // in the history
	given int64  // producer id
	parts map[string]*sequence
}

// A sequence is where the producer is in a partition.
type sequence struct {
	next int32
	last []byte // the last batch that was stored
	is   history.Batch
}

func (r *run) newIdempotent(id uint32) *idempotent {
	return &idempotent{run: r, peer: r.peer(), rng: r.rng(), id: id, given: -1, parts: map[string]*sequence{}}
}

// begin gets a producer id.
func (p *idempotent) begin() bool {
	if p.given >= 0 {
		return true
	}
	resp, _, err := ask[*kmsg.InitProducerIDResponse](p.peer, kmsg.NewPtrInitProducerIDRequest())
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		p.fail(fmt.Errorf("InitProducerId: %w", err))
		return false
	}
	p.given = resp.ProducerID
	return true
}

func (p *idempotent) work(stop <-chan struct{}) {
	topics := append([]string{trimmed}, steady...)
	for p.begin() && !over(stop) {
		name := topics[p.rng.IntN(len(topics))]
		id, partitions := p.topic(name)
		if !p.step(name, id, int32(p.rng.IntN(partitions))) {
			return
		}
	}
}

func over(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// step sends something to a partition: mostly records, and some of what has to be refused, or is there already.
func (p *idempotent) step(topic string, id [16]byte, part int32) bool {
	key := fmt.Sprintf("%x/%d", id, part)
	at := p.parts[key]
	if at == nil {
		at = &sequence{}
		p.parts[key] = at
	}
	acks := int16(1)
	if p.rng.IntN(2) == 0 {
		acks = -1
	}
	switch r := p.rng.IntN(40); {
	case r == 0:
		return p.refused(topic, id, part, at.next, kerr.CorruptMessage)
	case r == 1 && at.last != nil:
		return p.refused(topic, id, part, at.next+7, kerr.OutOfOrderSequenceNumber)
	case r < 4 && at.last != nil:
		return p.store(topic, id, part, acks, at.last, at.is)
	}
	b := p.h.Send(topic, part, p.id, 1+p.rng.IntN(5), -1)
	batch := p.batch(b, at.next)
	if !p.store(topic, id, part, acks, batch, b) {
		return false
	}
	at.next, at.last, at.is = at.next+int32(b.N), batch, b
	return true
}

// store repeats a batch until it is acknowledged.
func (p *idempotent) store(topic string, id [16]byte, part int32, acks int16, batch []byte, b history.Batch) bool {
	offset, err := p.produce(topic, id, part, acks, slices.Clone(batch))
	if err == nil {
		err = p.h.Ack(b, offset, acks == -1)
	}
	if err != nil {
		p.fail(fmt.Errorf("produce to %s-%d: %w", topic, part, err))
	}
	return err == nil
}

// refused sends what must not be stored.
func (p *idempotent) refused(topic string, id [16]byte, part, sequence int32, want error) bool {
	b := p.h.Send(topic, part, p.id, 1, -1)
	p.h.Refuse(b)
	batch := p.batch(b, sequence)
	if errors.Is(want, kerr.CorruptMessage) {
		batch[len(batch)-1] ^= 1
	}
	if _, err := p.produce(topic, id, part, -1, batch); !errors.Is(err, want) {
		p.fail(fmt.Errorf("a batch for %s-%d that is wrong was answered %w, want %w", topic, part, err, want))
		return false
	}
	p.did("batches refused")
	return true
}

func (p *idempotent) batch(b history.Batch, sequence int32) []byte {
	build := record.NewBuilder(record.Options{Producer: &record.Producer{ID: p.given, BaseSequence: sequence}})
	for _, v := range b.Values() {
		if err := build.Append(time.Now().UnixMilli(), nil, v); err != nil {
			p.fail(err)
		}
	}
	out, err := build.Batch()
	p.fail(err)
	return out
}

// franz is a producer as people have it: franz-go's, idempotent with acks=all, many requests in flight.
func (r *run) franz(id uint32, rng *rand.Rand, stop <-chan struct{}) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(r.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }), kgo.RequestRetries(100_000), kgo.RetryTimeout(2*time.Minute), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		r.fail(err)
		return
	}
	defer cl.Close()
	topics := append([]string{trimmed}, steady...)
	var waiting sync.WaitGroup
	for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
		if over(stop) {
			tick.Stop()
			break
		}
		if cl.BufferedProduceRecords() > 2000 {
			continue
		}
		for range rng.IntN(30) {
			topic, part := topics[rng.IntN(len(topics))], int32(rng.IntN(firstSize))
			waiting.Add(1)
			b := r.h.Send(topic, part, id, 1, -1)
			cl.Produce(r.ctx, &kgo.Record{Topic: topic, Partition: part, Value: b.Value(0)}, func(rec *kgo.Record, err error) {
				defer waiting.Done()
				if err == nil {
					err = r.h.Ack(b, rec.Offset, true)
				}
				// franz-go does not try again where a new connection ends before its first answer: TLS or SASL might be missing.
				if _, eof := errors.AsType[*kgo.ErrFirstReadEOF](err); eof {
					r.did("records given up by franz-go")
				} else if err != nil {
					r.fail(fmt.Errorf("franz-go gave up a record for %s-%d: %w", topic, part, err))
				}
			})
		}
	}
	waiting.Wait()
}
