package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
)

// A run is what all workers share.
type run struct {
	ctx  context.Context // ends all, answered or not
	addr string
	h    *history.History
	seed uint64

	mu      sync.Mutex // guards what follows
	errs    []error    // broken promises, and answers that nobody should get
	workers uint64
	ids     map[string][16]byte // topics that stay
	sizes   map[string]int      // their partitions, as acknowledged
	counts  map[string]int      // what was done how often
}

// The topics that stay. Group members read those that nobody trims.
var (
	steady  = []string{"steady-0", "steady-1"}
	trimmed = "trimmed"
)

const (
	group         = "chaos"
	firstSize     = 3
	maxPartitions = 6
	retention     = "retention.ms"
	forEver       = 9_000_000_000_000 // ms; records of the tests are as old as their clock says
)

func (r *run) fail(err error) {
	if err == nil || r.ctx.Err() != nil && errors.Is(err, r.ctx.Err()) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs = append(r.errs, err)
}

func (r *run) did(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[what]++
}

func (r *run) peer() *peer { return &peer{ctx: r.ctx, addr: r.addr} }

// rng is another for each worker.
func (r *run) rng() *rand.Rand {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers++
	return rand.New(rand.NewPCG(r.seed, r.workers))
}

func (r *run) topic(name string) (id [16]byte, partitions int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ids[name], r.sizes[name]
}

func (r *run) setTopic(name string, id [16]byte, partitions int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[name], r.sizes[name] = id, partitions
}

func offsetFact(topic string, part int32) string {
	return fmt.Sprintf("offset %s %s %d", group, topic, part)
}

// changes does what makes something of facts: its answer promises them.
func (r *run) change(facts map[string]string, ask func() error) bool {
	r.h.Begin(facts)
	if err := ask(); err != nil {
		r.fail(fmt.Errorf("%v: %w", facts, err))
		return false
	}
	r.h.Promise(facts)
	return true
}

// prepare makes the topics that stay.
func (r *run) prepare() bool {
	p := r.peer()
	defer p.close()
	for _, name := range append([]string{trimmed}, steady...) {
		id, ok := r.create(p, name, firstSize)
		if !ok {
			return false
		}
		r.setTopic(name, id, firstSize)
		none := map[string]string{}
		for part := range int32(maxPartitions) {
			none[offsetFact(name, part)] = history.None
		}
		r.h.Promise(none)
	}
	return true
}

// create makes a topic whose segments take little, so that they roll.
func (r *run) create(p *peer, name string, partitions int) (id [16]byte, ok bool) {
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, int32(partitions), 1
	keep, segment := fmt.Sprint(forEver), "65536"
	t.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: retention, Value: &keep}, {Name: "internal.segment.bytes", Value: &segment}}
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 10_000
	r.h.Topic(name, partitions)
	ok = r.change(map[string]string{"topic " + name: fmt.Sprint(partitions), "config " + name: keep}, func() error {
		resp, sent, err := ask[*kmsg.CreateTopicsResponse](p, req)
		if err != nil {
			return err
		}
		if err := again(resp.Topics[0].ErrorCode, sent, topicAlreadyExists); err != nil {
			return err
		}
		// The answer of the first attempt may be lost, and with it the id.
		var there bool
		if id, _, there, err = p.find(name); err == nil && !there {
			err = errors.New("created, and not there")
		}
		return err
	})
	if ok {
		r.did("topics created")
	}
	return id, ok
}
