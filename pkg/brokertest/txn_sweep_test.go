package brokertest_test

import (
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
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/record"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// What a client knows of the outcome of a transaction.
type outcome int

const (
	stillOpen  outcome = iota
	committing         // EndTxn was sent and not answered
	isCommitted
	isAborted // or an abort was sent
)

// A sentTxn is a transaction as its client knows it.
type sentTxn struct {
	by      string // transactional id
	number  int    // of the client's
	counts  [3]int // records, by partition; their values are its name
	staged  bool   // with the offset number for the client's group
	outcome outcome
}

func (x *sentTxn) name() string { return fmt.Sprintf("%s.%d", x.by, x.number) }

// A txnHistory is all transactions that were sent, in the order in which they ended or will end.
type txnHistory struct {
	id   [16]byte // of the topic demo, which has three partitions
	txns []sentTxn
}

func (h *txnHistory) clone() *txnHistory { return &txnHistory{h.id, slices.Clone(h.txns)} }

// A txnClient makes transactions by single requests, one at a time: with
// transaction.version 2, or as clients before it did.
type txnClient struct {
	peer
	name  string
	v1    bool
	pid   int64
	epoch int16
	next  map[int32]int32 // sequences
	count int             // of transactions
}

func (c *txnClient) connect(t *testing.T, b *brokertest.Broker) {
	opts := []kgo.Opt{kgo.RequestRetries(0)}
	if c.v1 {
		v := kversion.V3_8_0()
		v.SetMaxKeyVersion(int16(kmsg.AddPartitionsToTxn), 3) // later ones are not for clients
		opts = append(opts, kgo.MaxVersions(v))
	}
	one := b.Client(append(opts, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())...)
	c.peer = peer{t, b.Client(opts...).SeedBrokers()[0], one.SeedBrokers()[0]}
}

// init gets the producer's id and epoch; an open transaction is aborted by it.
func (c *txnClient) init() error {
	var err error
	for range 3 {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &c.name, 60_000
		resp := ask[*kmsg.InitProducerIDResponse](c.peer, req)
		if err = kerr.ErrorForCode(resp.ErrorCode); !errors.Is(err, kerr.ConcurrentTransactions) {
			c.pid, c.epoch, c.next = resp.ProducerID, resp.ProducerEpoch, map[int32]int32{}
			return err
		}
	}
	return err
}

// add puts partitions, or with none the client's group, into the transaction, as clients did before transaction.version 2.
func (c *txnClient) add(partitions []int32) error {
	if !c.v1 {
		return nil
	}
	if len(partitions) == 0 {
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = c.name, c.pid, c.epoch, c.name
		return kerr.ErrorForCode(ask[*kmsg.AddOffsetsToTxnResponse](c.peer, req).ErrorCode)
	}
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = c.name, c.pid, c.epoch
	req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "demo", Partitions: partitions}}
	var errs []error
	for _, p := range ask[*kmsg.AddPartitionsToTxnResponse](c.peer, req).Topics[0].Partitions {
		errs = append(errs, kerr.ErrorForCode(p.ErrorCode))
	}
	return errors.Join(errs...)
}

// send appends a record to each of some partitions.
func (c *txnClient) send(id [16]byte, value string, acks int16, partitions []int32) error {
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.TopicID = "demo", id
	for _, p := range partitions {
		b := record.NewBuilder(record.Options{Producer: &record.Producer{ID: c.pid, Epoch: c.epoch, BaseSequence: c.next[p]}, Transactional: true})
		// Now, as markers have it: else each of them would make its segment roll, which flushes.
		if err := b.Append(time.Now().UnixMilli(), nil, []byte(value)); err != nil {
			return err
		}
		batch, err := b.Batch()
		if err != nil {
			return err
		}
		t.Partitions = append(t.Partitions, kmsg.ProduceRequestTopicPartition{Partition: p, Records: batch})
	}
	req := kmsg.NewPtrProduceRequest()
	req.TransactionID, req.Acks, req.TimeoutMillis, req.Topics = &c.name, acks, 10_000, []kmsg.ProduceRequestTopic{t}
	to := c.peer
	if acks == 1 {
		to.to = c.toOne
	}
	var errs []error
	for _, p := range ask[*kmsg.ProduceResponse](to, req).Topics[0].Partitions {
		err := kerr.ErrorForCode(p.ErrorCode)
		if err == nil {
			c.next[p.Partition]++
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// stage sends an offset of demo-0 to the transaction.
func (c *txnClient) stage(id [16]byte, offset int) error {
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Offset = int64(offset)
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = c.name, c.name, c.pid, c.epoch, -1
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "demo", TopicID: id, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}}}
	return kerr.ErrorForCode(ask[*kmsg.TxnOffsetCommitResponse](c.peer, req).Topics[0].Partitions[0].ErrorCode)
}

// end commits or aborts, and goes on with the epoch that it is told.
func (c *txnClient) end(commit bool) error {
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = c.name, c.pid, c.epoch, commit
	resp := ask[*kmsg.EndTxnResponse](c.peer, req)
	err := kerr.ErrorForCode(resp.ErrorCode)
	if err == nil && !c.v1 {
		c.pid, c.epoch, c.next = resp.ProducerID, resp.ProducerEpoch, map[int32]int32{}
	}
	return err
}

// A txnSweep is a workload of two clients whose transactions are open side by side.
type txnSweep struct {
	*testing.T
	rng     *rand.Rand
	broker  *brokertest.Broker
	clients []*txnClient
	open    map[*txnClient]int // in history

	mu      sync.Mutex // guards what follows
	history *txnHistory
	steps   int
	cuts    []txnCut
	taken   error
}

type txnCut struct {
	number  int
	step    string
	history *txnHistory
	*brokertest.Snapshot
}

func (s *txnSweep) change(c *txnClient, f func(x *sentTxn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.history.txns[s.open[c]])
}

func (s *txnSweep) must(what string, err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%s: %v", what, err) // also CONCURRENT_TRANSACTIONS: TX-5
	}
}

func (s *txnSweep) watch(every, rest int) {
	s.broker.OnStep(func(step string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		// While one commits, every step counts: its outcome is decided and not told.
		ending := slices.ContainsFunc(s.history.txns, func(x sentTxn) bool { return x.outcome == committing })
		if s.steps++; s.steps%every != rest && !ending {
			return
		}
		snapshot, err := s.broker.Snapshot()
		s.taken = errors.Join(s.taken, err)
		s.cuts = append(s.cuts, txnCut{s.steps, step, s.history.clone(), snapshot})
	})
}

// some are one to three partitions.
func (s *txnSweep) some() []int32 {
	all := []int32{0, 1, 2}
	s.rng.Shuffle(3, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return slices.Sorted(slices.Values(all[:1+s.rng.IntN(3)]))
}

func (s *txnSweep) step(c *txnClient) {
	at, open := s.open[c]
	if !open {
		s.mu.Lock()
		s.open[c] = len(s.history.txns)
		s.history.txns = append(s.history.txns, sentTxn{by: c.name, number: c.count})
		s.mu.Unlock()
		c.count++
		s.produce(c)
		return
	}
	switch r := s.rng.IntN(10); {
	case r < 2:
		s.produce(c)
	case r < 4:
		s.change(c, func(x *sentTxn) { x.staged = true })
		s.must("add offsets", c.add(nil))
		s.must("stage", c.stage(s.history.id, c.count-1))
	case r < 8:
		s.change(c, func(x *sentTxn) { x.outcome = committing })
		s.must("commit", c.end(true))
		s.change(c, func(x *sentTxn) { x.outcome = isCommitted })
		delete(s.open, c)
		if x := s.history.txns[at]; x.staged {
			if got := committedOf(s.T, s.broker, c.name, "demo"); got != int64(x.number) {
				s.Errorf("the offset of a committed transaction is %d, not %d", got, x.number)
			}
		}
	case r < 9:
		s.change(c, func(x *sentTxn) { x.outcome = isAborted })
		s.must("abort", c.end(false))
		delete(s.open, c)
	default:
		s.change(c, func(x *sentTxn) { x.outcome = isAborted })
		s.must("init", c.init())
		delete(s.open, c)
	}
}

func (s *txnSweep) produce(c *txnClient) {
	partitions := s.some()
	s.change(c, func(x *sentTxn) {
		for _, p := range partitions {
			x.counts[p]++
		}
	})
	s.must("add partitions", c.add(partitions))
	acks := int16(1) // most are left to the commit to flush
	if s.rng.IntN(4) == 0 {
		acks = -1
	}
	s.must("produce", c.send(s.history.id, fmt.Sprintf("%s.%d", c.name, c.count-1), acks, partitions))
}

func (s *txnSweep) run(n, every, rest int) {
	for i := range n {
		switch {
		case i%40 == 39:
			s.broker = s.broker.Restart()
		case i%40 == 19:
			snapshot, err := s.broker.Snapshot()
			s.must("snapshot", err)
			s.broker.OnStep(nil)
			s.broker = snapshot.Kill(s.T)
			s.watch(every, rest)
		case s.rng.IntN(15) == 0:
			<-time.After(1100 * time.Millisecond) // rows of completed transactions settle
			continue
		default:
			s.step(s.clients[s.rng.IntN(len(s.clients))])
			continue
		}
		for _, c := range s.clients {
			c.connect(s.T, s.broker)
		}
	}
}

// txnWorkload runs the workload and returns what was cut at every nth step of it.
func txnWorkload(t *testing.T, seed uint64, n, every int) (cuts []txnCut, steps int) {
	t.Run("workload", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &txnSweep{T: t, rng: rand.New(rand.NewPCG(seed, 0)), open: map[*txnClient]int{}, history: &txnHistory{}}
			// Without the timer nothing is on the disk that nobody has waited for.
			s.broker = brokertest.Start(t, func(s *config.Settings) { s.FsyncInterval = 0 })
			id, err := newPeer(t, s.broker).create("demo", 3)
			noError(t, err)
			s.history.id = id
			for i, name := range []string{"old", "new"} {
				c := &txnClient{name: name, v1: i == 0}
				c.connect(t, s.broker)
				noError(t, c.init())
				s.clients = append(s.clients, c)
			}
			rest := s.rng.IntN(every)
			s.watch(every, rest)
			s.run(n, every, rest)
			s.broker.OnStep(nil)
			s.mu.Lock()
			defer s.mu.Unlock()
			noError(t, s.taken)
			cuts, steps = s.cuts, s.steps
		})
	})
	return cuts, steps
}

// seen is what read_committed shows: how often each value is in each partition.
func seen(t *testing.T, b *brokertest.Broker) (counts [3]map[string]int) {
	t.Helper()
	for p := range counts {
		counts[p] = map[string]int{}
		for _, v := range visible(t, b, int32(p)) {
			counts[p][v]++
		}
	}
	return counts
}

// check wants each transaction wholly in or wholly out, offsets included, and
// none left open once its client has come back (TX-6).
func (h *txnHistory) check(t *testing.T, b *brokertest.Broker) {
	for p, values := range seen(t, b) { // an open transaction may hide others still
		for i := range h.txns {
			if x := &h.txns[i]; (x.outcome == stillOpen || x.outcome == isAborted) && values[x.name()] > 0 {
				t.Errorf("%s, which is not committed, is seen in partition %d", x.name(), p)
			}
		}
	}
	clients := []*txnClient{{name: "old", v1: true, count: 1000}, {name: "new", count: 1000}}
	for _, c := range clients {
		c.connect(t, b)
		if err := c.init(); err != nil {
			t.Fatalf("init %s: %v", c.name, err)
		}
	}
	for p := range int32(3) {
		if stable, end := offsetOf(t, b, p, 1), offsetOf(t, b, p, 0); stable != end {
			t.Errorf("partition %d is stable to %d of %d: a transaction hangs", p, stable, end)
		}
	}
	h.checkWhole(t, b, seen(t, b))
	for _, c := range clients { // and they go on
		if err := errors.Join(c.add([]int32{0, 1, 2}), c.send(h.id, c.name+" goes on", 1, []int32{0, 1, 2}), c.end(true)); err != nil {
			t.Errorf("%s goes on: %v", c.name, err)
		}
	}
	for p, values := range seen(t, b) {
		if values["old goes on"] != 1 || values["new goes on"] != 1 {
			t.Errorf("partition %d has %v", p, values)
		}
	}
}

func (h *txnHistory) checkWhole(t *testing.T, b *brokertest.Broker, values [3]map[string]int) {
	t.Helper()
	offsets := map[string]int64{"old": -1, "new": -1}
	known := map[string]bool{}
	for i := range h.txns {
		x := &h.txns[i]
		in, out := 0, 0
		for p, n := range x.counts {
			known[x.name()] = true
			switch got := values[p][x.name()]; {
			case n > 0 && got == n:
				in++
			case n > 0 && got == 0:
				out++
			case got != n:
				t.Errorf("%s has %d of %d records in partition %d", x.name(), got, n, p)
			}
		}
		committed := in > 0
		if in > 0 && out > 0 || committed != (x.outcome == isCommitted) && x.outcome != committing {
			t.Errorf("%s (outcome %d) is seen in %d partitions and not in %d", x.name(), x.outcome, in, out)
		}
		if committed && x.staged {
			offsets[x.by] = int64(x.number)
		}
	}
	for name, want := range offsets {
		if got := committedOf(t, b, name, "demo"); got != want {
			t.Errorf("the offset of %s is %d, that of its last committed transaction is %d", name, got, want)
		}
	}
	for p := range values {
		for v := range maps.Keys(values[p]) {
			if !known[v] {
				t.Errorf("partition %d has %q, which nobody has committed", p, v)
			}
		}
	}
}

// offsetOf is the end of a partition of the topic demo as an isolation level has it.
func offsetOf(t *testing.T, b *brokertest.Broker, partition int32, isolation int8) int64 {
	t.Helper()
	part := kmsg.NewListOffsetsRequestTopicPartition()
	part.Partition, part.Timestamp = partition, -1
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, isolation
	req.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "demo", Partitions: []kmsg.ListOffsetsRequestTopicPartition{part}}}
	got := ask[*kmsg.ListOffsetsResponse](newPeer(t, b), req).Topics[0].Partitions[0]
	noError(t, kerr.ErrorForCode(got.ErrorCode))
	return got.Offset
}

// TX-4, TX-5, TX-6, TX-9, ST-71: the power is cut, or the process killed, at steps all over a workload of
// transactions, and each is wholly in or wholly out, offsets included.
func TestTransactionsAreWholeAfterACutAtAnyStep(t *testing.T) {
	const every = 15
	seed := sweepSeedOf(t, 0)
	cuts, steps := txnWorkload(t, seed, 80, every)
	checked := 0
	for _, c := range cuts {
		start := map[string]func(t *testing.T) *brokertest.Broker{"kill": func(t *testing.T) *brokertest.Broker { return c.Kill(t) }}
		for _, survival := range []crashfs.Survival{crashfs.LoseUnsynced, crashfs.Random(seed + uint64(c.number))} {
			start[fmt.Sprint(survival)] = func(t *testing.T) *brokertest.Broker { return c.PowerCut(t, survival) }
		}
		for name, start := range start {
			ok := t.Run(fmt.Sprintf("%d %s, %s", c.number, strings.ReplaceAll(c.step, "/", "|"), name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { c.history.check(t, start(t)) })
			})
			if checked++; !ok {
				t.Fatalf("seed %d", seed)
			}
		}
	}
	t.Logf("%d steps, %d cuts, %d brokers checked", steps, len(cuts), checked)
	if len(cuts) < 10 {
		t.Error("too few cuts for the test to mean anything")
	}
}
