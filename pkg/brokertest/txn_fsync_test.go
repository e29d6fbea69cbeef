package brokertest_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/config"
)

// slowDisk makes each fsync and each commit to meta.db take 10 ms of the bubble, and counts both.
func slowDisk(b *brokertest.Broker) (syncs, commits *atomic.Int64) {
	syncs, commits = new(atomic.Int64), new(atomic.Int64)
	b.OnStep(func(step string) {
		switch {
		case strings.HasPrefix(step, "commit"):
			commits.Add(1)
		case strings.HasPrefix(step, "sync"):
			syncs.Add(1)
		default:
			return
		}
		<-time.After(10 * time.Millisecond)
	})
	return syncs, commits
}

// TX-12: from the first produce to the answer of EndTxn a transaction waits
// for the disk four times: its row, its record, the decision, and side by side
// the marker and the commit that completes it.
func TestATransactionWaitsForTheDiskFourTimes(t *testing.T) {
	for _, v1 := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := brokertest.Start(t, func(s *config.Settings) { s.FsyncInterval = 0 })
			id, err := newPeer(t, b).create("demo", 3)
			noError(t, err)
			c := &txnClient{name: "tx", v1: v1}
			c.connect(t, b)
			noError(t, c.init())
			transaction := func() error {
				return errors.Join(c.add([]int32{0}), c.send(id, "x", -1, []int32{0}), c.end(true))
			}
			noError(t, transaction()) // makes the partition's files
			syncs, commits := slowDisk(b)
			began := time.Now()
			noError(t, transaction())
			waits := time.Since(began) / (10 * time.Millisecond)
			b.OnStep(nil)
			t.Logf("version 1 %v: %d waits for the disk: %d fsyncs of logs, %d commits to meta.db", v1, waits, syncs.Load(), commits.Load())
			if waits > 4 {
				t.Errorf("a transaction waits for the disk %d times", waits)
			}
		})
	}
}

// TX-12: concurrent transactions share the waits.
func TestConcurrentTransactionsShareTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const producers = 20
		b := brokertest.Start(t, func(s *config.Settings) { s.FsyncInterval = 0 })
		id, err := newPeer(t, b).create("demo", 3)
		noError(t, err)
		var clients []*txnClient
		for i := range producers {
			c := &txnClient{name: string(rune('a' + i))}
			c.connect(t, b)
			noError(t, errors.Join(c.init(), c.send(id, "x", -1, []int32{0, 1, 2}), c.end(true)))
			clients = append(clients, c)
		}
		var commits atomic.Int64
		b.OnStep(func(step string) {
			if strings.HasPrefix(step, "commit") {
				commits.Add(1)
			}
		})
		errs := make([]error, producers)
		var wg sync.WaitGroup
		for i, c := range clients {
			wg.Go(func() { errs[i] = errors.Join(c.send(id, "y", -1, []int32{0, 1, 2}), c.end(true)) })
		}
		wg.Wait()
		b.OnStep(nil)
		noError(t, errors.Join(errs...))
		t.Logf("%d transactions on 3 partitions: %d commits to meta.db", producers, commits.Load())
		if n := commits.Load(); n >= 3*producers {
			t.Errorf("%d commits to meta.db for %d transactions, each of which waits for three", n, producers)
		}
	})
}
