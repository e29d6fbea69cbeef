package brokertest_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// diskCodes are what a failing disk may make the APIs of transactions answer
// (ST-60): CONCURRENT_TRANSACTIONS of one that is decided and can't be completed yet.
var diskCodes = []error{kerr.NotCoordinator, kerr.NotEnoughReplicas, kerr.KafkaStorageError, kerr.ConcurrentTransactions}

// A txnPatient makes transactions on a disk that fails: one that is refused is
// aborted, and an end that is refused is tried twice more.
type txnPatient struct {
	*txnClient
	h       *txnHistory
	left    bool // its transaction is in the hands of the disk
	refused int
}

func (c *txnPatient) ok(what string, err error) bool {
	if err == nil {
		return true
	}
	c.refused++
	if !slices.ContainsFunc(diskCodes, func(code error) bool { return errors.Is(err, code) }) {
		c.t.Errorf("%s: %v", what, err)
	}
	return false
}

func (c *txnPatient) end3(commit bool) bool {
	for range 3 {
		if c.ok("end", c.end(commit)) {
			return true
		}
	}
	return false
}

// transaction makes one, as far as the disk lets.
func (c *txnPatient) transaction(rng *rand.Rand) {
	if c.left {
		return
	}
	c.h.txns = append(c.h.txns, sentTxn{by: c.name, number: c.count})
	x := &c.h.txns[len(c.h.txns)-1]
	c.count++
	partitions := []int32{int32(rng.IntN(2)), 2}
	x.counts[partitions[0]], x.counts[2] = 1, 1
	acks := int16(1 - 2*rng.IntN(2))
	did := c.ok("add partitions", c.add(partitions)) && c.ok("produce", c.send(c.h.id, x.name(), acks, partitions))
	if did && rng.IntN(2) == 0 {
		x.staged = true
		did = c.ok("add offsets", c.add(nil)) && c.ok("stage", c.stage(c.h.id, x.number))
	}
	if !did || rng.IntN(4) == 0 {
		x.outcome = isAborted
		err := c.end(false)
		// With nothing added there is none to abort.
		if !errors.Is(err, kerr.InvalidTxnState) && !c.ok("abort", err) {
			c.left = !c.end3(false)
		}
		if !did && !c.left {
			c.left = !c.ok("init", c.init()) // its sequences are not known any more
		}
		return
	}
	x.outcome = committing
	if c.left = !c.end3(true); !c.left {
		x.outcome = isCommitted
	}
}

// txnPatients connects both kinds of clients.
func txnPatients(t *testing.T, b *brokertest.Broker, h *txnHistory) (all []*txnPatient) {
	for i, name := range []string{"old", "new"} {
		c := &txnPatient{txnClient: &txnClient{name: name, v1: i == 0, count: len(h.txns)}, h: h}
		c.connect(t, b)
		c.left = !c.ok("init", c.init())
		all = append(all, c)
	}
	return all
}

// TX-6, ST-60, ST-61, ST-64, ST-72: operations of the disk fail in a workload of transactions, in each of
// several ways; what is refused is refused with the disk's codes, and after a crash each transaction is wholly in or wholly out.
func TestTransactionsAreWholeAfterAFailureOfAnyOperation(t *testing.T) {
	every := 23
	if *sweepFull {
		every = 1
	}
	seed := sweepSeedOf(t, 0)
	var from *brokertest.Snapshot
	begun := &txnHistory{}
	t.Run("workload", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := brokertest.Start(t)
			id, err := newPeer(t, b).create("demo", 3)
			noError(t, err)
			begun.id = id
			clients := txnPatients(t, b, begun)
			rng := rand.New(rand.NewPCG(seed, 1))
			for i := range 6 {
				clients[i%2].transaction(rng)
			}
			from, err = b.Snapshot()
			noError(t, err)
		})
	})
	refused, starts := 0, 0
	runs := eachFault(t, every, seed, func(t *testing.T, d *disease, n int) bool {
		h := begun.clone()
		var end func() string
		b, err := from.Try(t, func(b *brokertest.Broker) { end = d.begin(b, n) })
		if err != nil {
			starts++
			t.Logf("%s: the start failed: %v", end(), err)
			h.check(t, from.Kill(t))
			return true
		}
		b.MayFail()
		clients := txnPatients(t, b, h)
		rng := rand.New(rand.NewPCG(seed, 2))
		for i := range 12 {
			clients[i%2].transaction(rng)
		}
		happened := end()
		for _, c := range clients {
			refused += c.refused
		}
		if happened == "" {
			return false
		}
		t.Logf("failed: %s", happened)
		if n%2 == 0 {
			s, err := b.Snapshot()
			noError(t, err)
			h.check(t, s.Kill(t))
		} else {
			h.check(t, b.PowerCut(crashfs.LoseUnsynced))
		}
		return true
	})
	t.Logf("%d operations failed, %d starts among them, %d requests were refused", runs, starts, refused)
}
