package brokertest_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// topicConfigs are those of every topic: a segment takes a few batches. Old as they are, no record is old enough to go.
var topicConfigs = [][2]string{{"internal.segment.bytes", "700"}, {retention, "9000000000000"}}

// trimmed is the topic whose older segments retention removes every second.
const trimmed = "c.d"

var trimmedConfig = [2]string{"retention.bytes", "1500"}

const retention = "retention.ms"

// A world is what a client has been promised, and what it has asked for.
type world struct {
	producer int64
	topics   map[string]topicState
}

type topicState struct {
	id      [16]byte
	exists  bool
	parts   []partState // what was sent to each partition
	born    int         // how often a topic of the name was made: in every value
	certain bool        // the last create or delete was answered
}

// A partState is one partition of a topic.
type partState struct {
	sent    []string // values by offset; of an answer not had yet, perhaps
	durable int      // so many of them are promised
	last    []byte   // the last batch that was sent, as it was sent
	lastAt  int64    // its offset
	start   int64    // the log start, as a client was told
	latest  int64    // where it may be by now
}

func (w *world) clone() *world {
	c := *w
	c.topics = maps.Clone(w.topics)
	for name, t := range c.topics {
		t.parts = slices.Clone(t.parts) // what they hold only grows
		c.topics[name] = t
	}
	return &c
}

// A peer speaks to one broker by single requests.
type peer struct {
	t  *testing.T
	to *kgo.Broker
}

func newPeer(t *testing.T, b *brokertest.Broker) peer {
	return peer{t, b.Client(kgo.RequestRetries(0)).SeedBrokers()[0]}
}

func ask[R kmsg.Response](p peer, req kmsg.Request) R {
	p.t.Helper()
	resp, err := p.to.Request(p.t.Context(), req)
	if err != nil {
		p.t.Fatalf("%s: %v", kmsg.NameForKey(req.Key()), err)
	}
	return resp.(R)
}

func (p peer) producerID() int64 {
	req := kmsg.NewPtrInitProducerIDRequest()
	return ask[*kmsg.InitProducerIDResponse](p, req).ProducerID
}

func (p peer) create(name string, partitions int) (id [16]byte, err error) {
	req := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, int32(partitions), 1
	configs := topicConfigs
	if name == trimmed {
		configs = append(slices.Clip(configs), trimmedConfig)
	}
	for _, c := range configs {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: c[0], Value: &c[1]})
	}
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 10_000
	got := ask[*kmsg.CreateTopicsResponse](p, req).Topics[0]
	return got.TopicID, kerr.ErrorForCode(got.ErrorCode)
}

func (p peer) remove(name string) error {
	req := kmsg.NewPtrDeleteTopicsRequest()
	t := kmsg.NewDeleteTopicsRequestTopic()
	t.Topic = &name
	req.TopicNames, req.Topics, req.TimeoutMillis = []string{name}, append(req.Topics, t), 10_000
	return kerr.ErrorForCode(ask[*kmsg.DeleteTopicsResponse](p, req).Topics[0].ErrorCode)
}

// find is the topic's id and partitions; ok is false if there is none.
func (p peer) find(name string) (id [16]byte, partitions int, ok bool) {
	req := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &name
	req.Topics = append(req.Topics, t)
	got := ask[*kmsg.MetadataResponse](p, req).Topics[0]
	switch err := kerr.ErrorForCode(got.ErrorCode); {
	case err == nil:
		return got.TopicID, len(got.Partitions), true
	case !errors.Is(err, kerr.UnknownTopicOrPartition):
		p.t.Fatalf("metadata of %s: %v", name, err)
	}
	return id, 0, false
}

// retention asks for a config that does not go by itself.
func (p peer) retention(name string) string {
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, name, []string{retention}
	req.Resources = append(req.Resources, r)
	for _, c := range ask[*kmsg.DescribeConfigsResponse](p, req).Resources[0].Configs {
		if c.Value != nil {
			return *c.Value
		}
	}
	return ""
}

// produce sends a batch to each partition in one request (nil: none) and returns their offsets.
func (p peer) produce(name string, id [16]byte, acks int16, batches [][]byte) []int64 {
	p.t.Helper()
	offsets, errs := p.tryProduce(name, id, acks, batches)
	if err := errors.Join(errs...); err != nil {
		p.t.Fatalf("produce to %s: %v", name, err)
	}
	return offsets
}

// tryProduce is produce, with the error of each partition.
func (p peer) tryProduce(name string, id [16]byte, acks int16, batches [][]byte) ([]int64, []error) {
	p.t.Helper()
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = acks, 10_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = name, id
	for i, b := range batches {
		if b != nil {
			t.Partitions = append(t.Partitions, kmsg.ProduceRequestTopicPartition{Partition: int32(i), Records: bytes.Clone(b)})
		}
	}
	req.Topics = append(req.Topics, t)
	offsets, errs := make([]int64, len(batches)), make([]error, len(batches))
	for _, got := range ask[*kmsg.ProduceResponse](p, req).Topics[0].Partitions {
		offsets[got.Partition], errs[got.Partition] = got.BaseOffset, kerr.ErrorForCode(got.ErrorCode)
	}
	return offsets, errs
}

// deleteTo has the records of partitions below offsets deleted, and returns where they start then.
func (p peer) deleteTo(name string, offsets ...int64) ([]int64, []error) {
	p.t.Helper()
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic = name
	for i, o := range offsets {
		t.Partitions = append(t.Partitions, kmsg.DeleteRecordsRequestTopicPartition{Partition: int32(i), Offset: o})
	}
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Topics = append(req.Topics, t)
	starts, errs := make([]int64, len(offsets)), make([]error, len(offsets))
	for _, got := range ask[*kmsg.DeleteRecordsResponse](p, req).Topics[0].Partitions {
		starts[got.Partition], errs[got.Partition] = got.LowWatermark, kerr.ErrorForCode(got.ErrorCode)
	}
	return starts, errs
}

// start asks for the log start of a partition.
func (p peer) start(name string, partition int32) int64 {
	p.t.Helper()
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.Timestamp = partition, -2
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = name, append(t.Partitions, part)
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.Topics = -1, append(req.Topics, t)
	got := ask[*kmsg.ListOffsetsResponse](p, req).Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
		p.t.Fatalf("start of %s-%d: %v", name, partition, err)
	}
	return got.Offset
}

// values reads a partition from offset 0 to its end.
func (p peer) values(name string, id [16]byte, partition int32) (values []string) {
	p.t.Helper()
	return p.valuesFrom(name, id, partition, 0)
}

// valuesFrom reads a partition from an offset, at least its start, to its end, and wants offsets without gaps.
func (p peer) valuesFrom(name string, id [16]byte, partition int32, from int64) (values []string) {
	p.t.Helper()
	for {
		req := kmsg.NewPtrFetchRequest()
		req.MaxBytes, req.MaxWaitMillis, req.SessionEpoch = 1<<20, 0, -1
		t := kmsg.NewFetchRequestTopic()
		t.Topic, t.TopicID = name, id
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes = partition, from+int64(len(values)), 1<<20
		t.Partitions = append(t.Partitions, part)
		req.Topics = append(req.Topics, t)
		got := ask[*kmsg.FetchResponse](p, req).Topics[0].Partitions[0]
		if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
			p.t.Fatalf("fetch %s-%d at %d: %v", name, partition, from+int64(len(values)), err)
		}
		for rest := got.RecordBatches; len(rest) > 0; {
			b, after, err := record.Parse(rest)
			if err != nil {
				break // the response may end within a batch
			}
			if err := b.CheckCRC(); err != nil {
				p.t.Fatalf("%s-%d: %v", name, partition, err)
			}
			for r, err := range b.Records() {
				at, due := b.BaseOffset()+int64(r.OffsetDelta), from+int64(len(values))
				if at < from {
					continue // the batch of the first record that is wanted
				}
				if err != nil || at != due {
					p.t.Fatalf("%s-%d: a record at %d where %d is due (%v)", name, partition, at, due, err)
				}
				values = append(values, string(r.Value))
			}
			rest = after
		}
		if from+int64(len(values)) >= got.HighWatermark {
			return values
		}
	}
}

// sweepBatch is a batch of one producer whose sequence is the offset.
func sweepBatch(t *testing.T, producer int64, sequence int, values []string) []byte {
	b := record.NewBuilder(record.Options{Producer: &record.Producer{ID: producer, BaseSequence: int32(sequence)}})
	for _, v := range values {
		if err := b.Append(1_000_000, nil, []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := b.Batch()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A cut is a snapshot with what was promised by then.
type cut struct {
	number int
	step   string
	world  *world
	*brokertest.Snapshot
}

// A sweep runs the workload and takes cuts.
type sweep struct {
	*testing.T
	rng    *rand.Rand
	broker *brokertest.Broker
	peer   peer

	mu    sync.Mutex // guards what follows
	world *world
	steps int
	cuts  []cut
	taken error // the first Snapshot that failed
}

func (s *sweep) change(f func(w *world)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.world)
}

// watch takes a cut at every step whose number leaves rest when divided by every.
func (s *sweep) watch(every, rest int) {
	s.broker.OnStep(func(step string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.steps++; s.steps%every != rest {
			return
		}
		snapshot, err := s.broker.Snapshot()
		if err != nil && s.taken == nil {
			s.taken = fmt.Errorf("%s: %w", step, err)
		}
		s.cuts = append(s.cuts, cut{s.steps, step, s.world.clone(), snapshot})
	})
}

func (s *sweep) setState(name string, t topicState) {
	s.change(func(w *world) { w.topics[name] = t })
}

func (s *sweep) createTopic(name string) {
	before := s.world.topics[name]
	t := topicState{exists: true, born: before.born + 1, parts: make([]partState, 1+s.rng.IntN(3))}
	s.setState(name, t)
	id, err := s.peer.create(name, len(t.parts))
	if err != nil {
		s.Fatalf("create %s: %v", name, err)
	}
	t.id, t.certain = id, true
	s.setState(name, t)
}

func (s *sweep) deleteTopic(name string) {
	t := s.world.topics[name]
	t.certain, t.exists = false, false
	s.setState(name, t)
	if err := s.peer.remove(name); err != nil {
		s.Fatalf("delete %s: %v", name, err)
	}
	s.setState(name, topicState{certain: true, born: t.born})
}

// send produces a batch to some of a topic's partitions.
func (s *sweep) send(name string, acks int16) {
	t := s.world.topics[name]
	batches := make([][]byte, len(t.parts))
	parts := slices.Clone(t.parts)
	for i := range parts {
		if i > 0 && s.rng.IntN(2) == 0 {
			continue
		}
		p := &parts[i]
		var values []string
		for n := range 1 + s.rng.IntN(3) {
			values = append(values, fmt.Sprintf("%s.%d-%d: %d %s", name, t.born, i, len(p.sent)+n, strings.Repeat("x", s.rng.IntN(150))))
		}
		p.last, p.lastAt = sweepBatch(s.T, s.world.producer, len(p.sent), values), int64(len(p.sent))
		batches[i], p.sent = p.last, append(slices.Clone(p.sent), values...)
	}
	t.parts = parts
	s.setState(name, t)
	offsets := s.peer.produce(name, t.id, acks, batches)
	t.parts = slices.Clone(parts)
	for i := range t.parts {
		if p := &t.parts[i]; batches[i] != nil {
			if offsets[i] != p.lastAt {
				s.Fatalf("a batch for %s-%d is at %d, not at %d", name, i, offsets[i], p.lastAt)
			}
			if acks == -1 {
				p.durable = len(p.sent)
			}
		}
	}
	s.setState(name, t)
}

// again repeats the last batch of a partition: acknowledged once it is durable (ST-55).
func (s *sweep) again(name string) {
	t := s.world.topics[name]
	if t.parts[0].last == nil {
		return
	}
	batches := make([][]byte, 1)
	batches[0] = t.parts[0].last
	if got := s.peer.produce(name, t.id, -1, batches)[0]; got != t.parts[0].lastAt {
		s.Fatalf("a repeat for %s-0 is at %d, not at %d", name, got, t.parts[0].lastAt)
	}
	t.parts = slices.Clone(t.parts)
	t.parts[0].durable = len(t.parts[0].sent)
	s.setState(name, t)
}

// trim has records of a topic deleted: up to somewhere in the first partition, all in the last.
func (s *sweep) trim(name string) {
	t := s.world.topics[name]
	parts := slices.Clone(t.parts)
	offsets := make([]int64, len(parts))
	for i := range parts {
		p := &parts[i]
		offsets[i] = -1
		p.latest = max(p.latest, int64(len(p.sent)))
		if i == 0 {
			offsets[i] = s.rng.Int64N(int64(len(p.sent)) + 1)
			p.latest = max(p.start, offsets[i])
		}
	}
	t.parts = parts
	s.setState(name, t)
	starts, errs := s.peer.deleteTo(name, offsets...)
	if err := errors.Join(errs...); err != nil {
		s.Fatalf("delete records of %s: %v", name, err)
	}
	t.parts = slices.Clone(parts)
	for i := range t.parts {
		p := &t.parts[i]
		if name != trimmed && starts[i] != p.latest {
			s.Errorf("%s-%d starts at %d, not at %d", name, i, starts[i], p.latest)
		}
		p.start = starts[i]
		p.durable = max(p.durable, int(p.start))
	}
	s.setState(name, t)
}

// look asks where the partitions of a topic start: what a client was told does not go back.
func (s *sweep) look(name string) {
	t := s.world.topics[name]
	t.parts = slices.Clone(t.parts)
	for i := range t.parts {
		p := &t.parts[i]
		if p.start = s.peer.start(name, int32(i)); name != trimmed && p.start != p.latest {
			s.Errorf("%s-%d starts at %d, not at %d", name, i, p.start, p.latest)
		}
	}
	s.setState(name, t)
}

func (s *sweep) restart() {
	s.broker = s.broker.Restart()
	s.peer = newPeer(s.T, s.broker)
	s.change(func(w *world) {
		for _, t := range w.topics {
			for i := range t.parts {
				t.parts[i].durable = len(t.parts[i].sent)
			}
		}
	})
}

// kill goes on with a broker that finds what this one had written.
func (s *sweep) kill(every, rest int) {
	snapshot, err := s.broker.Snapshot()
	if err != nil {
		s.Fatal(err)
	}
	s.broker.OnStep(nil)
	s.broker = snapshot.Kill(s.T)
	s.peer = newPeer(s.T, s.broker)
	s.watch(every, rest)
}

// run is the workload: topics made, filled, deleted and made again, with clean
// stops and kills between.
func (s *sweep) run(n, every, rest int) {
	names := []string{"a", "b", "c.d"}
	for i := range n {
		name := names[s.rng.IntN(len(names))]
		switch t, r := s.world.topics[name], s.rng.IntN(23); {
		case i%25 == 24:
			s.restart()
		case i%25 == 12:
			s.kill(every, rest)
		case !t.exists:
			s.createTopic(name)
		case r == 0:
			s.deleteTopic(name)
		case r < 3:
			s.again(name)
		case r < 8:
			s.send(name, 1)
		case r == 8:
			<-time.After(1100 * time.Millisecond) // the timer flushes, and retention has a look
			s.look(name)
		case r > 20:
			s.trim(name)
		default:
			s.send(name, -1)
		}
	}
}

// check wants a broker to keep what the world was promised.
func (w *world) check(t *testing.T, b *brokertest.Broker) {
	p := newPeer(t, b)
	for name, was := range w.topics {
		id, partitions, found := p.find(name)
		switch {
		case was.certain && found != was.exists:
			t.Errorf("topic %s is there: %v, promised was %v", name, found, was.exists)
			continue
		case !found:
			w.checkNew(t, p, name, &was)
			continue
		case was.id != [16]byte{} && id != was.id:
			t.Errorf("topic %s has another id", name)
		case partitions != len(was.parts):
			t.Errorf("topic %s has %d partitions, not %d", name, partitions, len(was.parts))
			continue
		}
		if got := p.retention(name); got != topicConfigs[1][1] {
			t.Errorf("topic %s has %s %q", name, retention, got)
		}
		was.id, was.exists, was.certain = id, true, true
		for i := range was.parts {
			w.checkPartition(t, p, name, id, i, &was.parts[i])
		}
		w.topics[name] = was
	}
}

// checkPartition wants the promised records and perhaps more of those sent,
// and a repeat and a new batch to be taken for what they are.
func (w *world) checkPartition(t *testing.T, p peer, name string, id [16]byte, i int, was *partState) {
	start := p.start(name, int32(i))
	if start < was.start || name != trimmed && start > was.latest || start > int64(len(was.sent)) {
		t.Fatalf("%s-%d starts at %d, promised was %d (or asked for %d)", name, i, start, was.start, was.latest)
	}
	was.start, was.latest = start, max(start, was.latest)
	got := append(slices.Clone(was.sent[:start]), p.valuesFrom(name, id, int32(i), start)...)
	if len(got) < was.durable || len(got) > len(was.sent) || !slices.Equal(got, was.sent[:len(got)]) {
		t.Fatalf("%s-%d has %q; promised were %d of %q", name, i, got, was.durable, was.sent)
	}
	batches := make([][]byte, i+1)
	if was.last != nil && len(got) == len(was.sent) && len(got) > 0 {
		batches[i] = was.last
		if at := p.produce(name, id, -1, batches)[i]; at != was.lastAt {
			t.Errorf("%s-%d: a repeat of the batch at %d was put at %d", name, i, was.lastAt, at)
		}
	}
	values := []string{fmt.Sprintf("%s-%d after %d", name, i, len(got))}
	batches[i] = sweepBatch(t, w.producer, len(got), values)
	if at := p.produce(name, id, -1, batches)[i]; at != int64(len(got)) {
		t.Errorf("%s-%d: the next batch is at %d, not at %d", name, i, at, len(got))
	}
	was.last, was.lastAt = batches[i], int64(len(got))
	was.sent = append(got, values...)
	was.durable = len(was.sent)
}

// checkNew makes a topic that is gone, and wants it empty.
func (w *world) checkNew(t *testing.T, p peer, name string, was *topicState) {
	id, err := p.create(name, 3)
	if err != nil {
		t.Errorf("create %s: %v", name, err)
		return
	}
	now := topicState{id: id, exists: true, certain: true, born: was.born + 1, parts: make([]partState, 3)}
	for i := range now.parts {
		w.checkPartition(t, p, name, id, i, &now.parts[i])
	}
	w.topics[name] = now
}

// ST-9, ST-34, ST-35, ST-53, ST-54, ST-55, ST-71, ST-72: the power is cut at steps all over a
// workload of several topics, and what was promised is there whatever else
// survives: records once and at their offsets, log starts where DeleteRecords
// and retention have told that they are, topics with their ids and configs, and nothing of a topic that was deleted. What a broker promises after a cut
// outlives the next.
func TestPromisesOutliveAPowerCutAtAnyStep(t *testing.T) {
	const every, survivals = 9, 3
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var cuts []cut
	steps := 0
	t.Run("workload", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &sweep{T: t, rng: rand.New(rand.NewPCG(seed, 0)), world: &world{topics: map[string]topicState{}}}
			s.broker = brokertest.Start(t)
			s.peer = newPeer(t, s.broker)
			s.world.producer = s.peer.producerID()
			rest := s.rng.IntN(every)
			s.watch(every, rest)
			s.run(100, every, rest)
			s.broker.OnStep(nil)
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.taken != nil {
				t.Error(s.taken)
			}
			cuts, steps = s.cuts, s.steps
		})
	})
	checked := 0
	for _, c := range cuts {
		for i, survival := range crashfs.Survivals(seed+uint64(c.number), survivals) {
			ok := t.Run(fmt.Sprintf("%d %s, %s", c.number, strings.ReplaceAll(c.step, "/", "|"), survival), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := c.world.clone()
					b := c.PowerCut(t, survival)
					w.check(t, b)
					if i == survivals-1 {
						w.check(t, b.PowerCut(crashfs.LoseUnsynced))
					}
				})
			})
			if checked++; !ok {
				t.Fatalf("seed %d", seed)
			}
		}
	}
	t.Logf("%d steps, %d cuts, %d survivals each, %d brokers checked", steps, len(cuts), survivals, checked)
	if len(cuts) < 10 {
		t.Error("too few cuts for the test to mean anything")
	}
}
