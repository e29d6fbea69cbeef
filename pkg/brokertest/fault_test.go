package brokertest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// A patient client goes on where it can when the disk fails: it repeats a
// batch once, and leaves alone what is refused then.
type patient struct {
	peer
	world  *world
	left   map[string]bool // topics and partitions left alone
	failed int
	last   error // of the last topic made or taken away
}

// refusal wants an error to be the disk's (ST-60, ST-61), and counts it.
func (c *patient) refusal(what string, err error) {
	c.t.Helper()
	c.failed++
	if !errors.Is(err, kerr.KafkaStorageError) {
		c.t.Errorf("%s: %v", what, err)
	}
}

func (c *patient) makeTopic(name string) {
	t := c.world.newTopic(name, 2)
	c.world.topics[name] = t
	id, err := c.create(name, len(t.parts))
	if c.last = err; err != nil {
		c.refusal("create", err)
		c.left[name] = true
		return
	}
	t.id = id
	c.world.topics[name] = t
	c.world.Promise(topicFacts(name, len(t.parts)))
}

func (c *patient) dropTopic(name string) {
	gone := topicFacts(name, 0)
	c.world.Begin(gone)
	err := c.remove(name)
	if c.last = err; err != nil {
		c.refusal("delete", err)
		c.left[name] = true
		return
	}
	for i := range c.world.topics[name].parts {
		delete(c.left, partitionName(name, i)) // a successor is another matter
	}
	c.world.topics[name] = topicState{}
	c.world.Promise(gone)
}

func (c *patient) send(name string, partition int) {
	key := partitionName(name, partition)
	if c.left[key] {
		return
	}
	batches := make([][]byte, partition+1)
	var b history.Batch
	b, batches[partition] = c.world.next(c.t, name, partition, 2)
	for range 2 {
		offsets, errs := c.tryProduce(name, c.world.topics[name].id, -1, batches)
		err := errs[partition]
		if err == nil {
			if err := c.world.Ack(b, offsets[partition], true); err != nil {
				c.t.Error(err)
			}
			return
		}
		c.refusal("produce", err)
	}
	c.left[key] = true
}

// trim has all records of a topic's first partition deleted; a refusal leaves open where it starts.
func (c *patient) trim(name string) {
	p := &c.world.topics[name].parts[0]
	p.latest = p.next
	c.world.MayStart(name, 0, p.latest)
	for range 2 {
		starts, errs := c.deleteTo(name, -1)
		if errs[0] == nil {
			if err := c.world.Starts(name, 0, starts[0]); err != nil {
				c.t.Error(err)
			}
			return
		}
		c.refusal("delete records", errs[0])
	}
}

// work is the same sequence of steps for the same seed.
func (c *patient) work(rng *rand.Rand, steps int) {
	for range steps {
		name := faultTopics[rng.IntN(len(faultTopics))]
		switch r := rng.IntN(12); {
		case c.left[name]:
		case !c.world.topics[name].exists:
			c.makeTopic(name)
		case r == 0:
			c.dropTopic(name)
		case r == 1:
			<-time.After(time.Second) // the timer flushes
		case r == 2:
			c.trim(name)
		default:
			c.send(name, rng.IntN(2))
		}
	}
}

// resume repeats what was refused, which a disk that is well again takes.
func (c *patient) resume() {
	c.t.Helper()
	for _, name := range faultTopics {
		topic := c.world.topics[name]
		if c.left[name] {
			// Whether it is there or not: it can be made or taken away.
			if _, _, found := c.find(name); found {
				c.dropTopic(name)
			} else {
				c.makeTopic(name)
			}
			if !errors.Is(c.last, kerr.UnknownTopicOrPartition) && c.last != nil {
				c.t.Errorf("%s is refused still: %v", name, c.last)
			}
			continue
		}
		for i := range topic.parts {
			if p := &topic.parts[i]; c.left[partitionName(name, i)] {
				batches := make([][]byte, i+1)
				batches[i] = p.last
				offsets, errs := c.tryProduce(name, topic.id, -1, batches)
				if errs[i] != nil {
					c.t.Errorf("%s-%d is refused still: %v", name, i, errs[i])
					continue
				}
				noError(c.t, c.world.Ack(p.lastIs, offsets[i], true))
			}
		}
	}
}

func partitionName(topic string, i int) string { return fmt.Sprintf("%s-%d", topic, i) }

// A disease is one way in which a disk fails at its operation n (or n, n+1 ...).
type disease struct {
	name string
	// heals: what was refused is taken as soon as the disk is well again.
	heals bool
	begin func(b *brokertest.Broker, n int) (end func() (happened string))
}

// rule is a disease of operations of some kinds.
func rule(name string, heals bool, of func(n int) faultfs.Rule) disease {
	return disease{name, heals, func(b *brokertest.Broker, n int) func() string {
		r := of(n)
		r.Nth = n
		fault := b.Fault.Fail(r)
		return func() string {
			fault.Remove()
			if fault.Hits() == 0 {
				return ""
			}
			return fault.Last().String()
		}
	}}
}

// dropNames drops those in a partition's directory. Names that the data directory has dropped are there for the next process and can't be made
// anew by it: no file system is known to go on after that.
func dropNames(disk vfs.FS, dir string) {
	if dir != "/data" {
		crashfs.DropUnsyncedNames(disk, dir)
	}
}

const syncs = vfs.OpSync | vfs.OpSyncDir

// commits has commits of meta.db fail from the one of a number on: once, or as often as there are.
func commits(name string, heals bool, times int, err error) disease {
	return disease{name, heals, func(b *brokertest.Broker, n int) func() string {
		count, hits := atomic.Int64{}, atomic.Int64{}
		b.FailMeta(func() error {
			if at := int(count.Add(1)); at < n || at >= n+times {
				return nil
			}
			hits.Add(1)
			return err
		})
		return func() string {
			b.FailMeta(nil)
			if hits.Load() == 0 {
				return ""
			}
			return "commit to meta.db"
		}
	}}
}

// full is a disk that fills up at an operation, meta.db's too.
func full(b *brokertest.Broker, n int) func() string {
	var count atomic.Int64
	var at atomic.Pointer[string]
	b.Fault.OnOp(func(op vfs.Op) {
		if count.Add(1) == int64(n) {
			at.Store(new(op.String()))
			b.SetFull(true)
		}
	})
	return func() string {
		b.Fault.OnOp(nil)
		b.SetFull(false)
		if s := at.Load(); s != nil {
			return *s
		}
		return ""
	}
}

var diseases = []disease{
	rule("EIO", false, func(int) faultfs.Rule {
		return faultfs.Rule{Kinds: vfs.OpChanges | vfs.OpOpen | vfs.OpRead | vfs.OpReadDir | vfs.OpStat}
	}),
	rule("EIO, and done all the same", false, func(int) faultfs.Rule { return faultfs.Rule{Kinds: vfs.OpChanges, Happens: true} }),
	rule("ENOSPC, after a part of the write", true, func(n int) faultfs.Rule {
		return faultfs.Rule{Kinds: vfs.OpWrite | vfs.OpCreate | vfs.OpMkdir | vfs.OpAllocate, Err: syscall.ENOSPC, Short: n * 37 % 200, Times: 1 + n%3}
	}),
	rule("a failed fsync that drops what it was to write", false, func(int) faultfs.Rule {
		return faultfs.Rule{Kinds: syncs, Then: crashfs.DropUnsynced, ThenDir: dropNames}
	}),
	{"full", true, full},
	commits("ENOSPC in meta.db", true, 2, &fs.PathError{Op: "write", Path: "meta.db", Err: syscall.ENOSPC}),
	commits("EIO in meta.db", false, 1, syscall.EIO),
}

var faultTopics = []string{"a", "b"}

// faultStart is where all runs with a failing disk begin: a broker that was killed in the midst of a workload.
func faultStart(t *testing.T, seed uint64) (at *brokertest.Snapshot, w *world) {
	t.Run("workload", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := brokertest.Start(t)
			c := &patient{peer: newPeer(t, b), left: map[string]bool{}, world: newWorld()}
			c.world.producer = c.producerID()
			c.work(rand.New(rand.NewPCG(seed, 1)), 25)
			var err error
			at, err = b.Snapshot()
			noError(t, err)
			w = c.world
		})
	})
	return at, w
}

// A faultTally is what a sweep of failing operations has done.
type faultTally struct{ failed, starts, refused, resumed int }

// run starts a broker whose operation n fails, works with it as far as it lets, and looks at what it has after a crash.
func (f *faultTally) run(t *testing.T, d *disease, from *brokertest.Snapshot, w *world, seed uint64, n int) (hit bool) {
	w = w.clone()
	var end func() string
	b, err := from.Try(t, func(b *brokertest.Broker) { end = d.begin(b, n) })
	if err != nil {
		f.starts++
		t.Logf("%s: the start failed: %v", end(), err)
		w.checkAfter(t, from.Kill(t), history.PowerCut)
		return true
	}
	b.MayFail()
	c := &patient{peer: newPeer(t, b), left: map[string]bool{}, world: w}
	c.work(rand.New(rand.NewPCG(seed, 2)), 40)
	happened := end()
	f.refused += c.failed
	if happened == "" {
		return false
	}
	t.Logf("failed: %s; %d requests were refused", happened, c.failed)
	if d.heals {
		c.resume()
		f.resumed += len(c.left)
	}
	if n%2 == 0 {
		s, err := b.Snapshot()
		noError(t, err)
		b = s.Kill(t)
		w.check(t, b)
		w.check(t, b.PowerCut(crashfs.LoseUnsynced))
	} else {
		w.check(t, b.PowerCut(crashfs.Survivals(seed+uint64(n), 3)[n/2%3]))
	}
	return true
}

// eachFault has an operation of the disk fail in each of several ways, every so many of them, until run says that what it does ends before
// its operation n. It returns how many did fail.
func eachFault(t *testing.T, every int, seed uint64, run func(t *testing.T, d *disease, n int) (hit bool)) (failed int) {
	t.Helper()
	for i := range diseases {
		d := &diseases[i]
		first, step := 1+int(seed%uint64(every)), every
		if i >= len(diseases)-2 { // there are few commits
			first, step = 1, 1+every/5
		}
		if *sweepCut > 0 {
			first, step = *sweepCut, math.MaxInt/2
		}
		for n := first; ; n += step {
			hit := false
			if !t.Run(fmt.Sprintf("%s, operation %d", d.name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { hit = run(t, d, n) })
			}) {
				t.Fatalf("again: %s", sweepAgain(t, seed, n))
			}
			if !hit {
				break
			}
			failed++
		}
	}
	return failed
}

// ST-60, ST-61, ST-62, ST-64, ST-72: every operation of the disk fails once in a run of its own, in each of several ways: those of
// the start, of the recovery from a kill and of a workload. The start fails, or requests are answered with KAFKA_STORAGE_ERROR or succeed; what was
// refused is taken once there is room; and a start after a crash finds what was acknowledged.
func TestAFailureOfAnyOperationLosesNothing(t *testing.T) {
	every := 13
	if *sweepFull {
		every = 1
	}
	seed := sweepSeedOf(t, 0)
	from, w := faultStart(t, seed)
	var f faultTally
	f.failed = eachFault(t, every, seed, func(t *testing.T, d *disease, n int) bool { return f.run(t, d, from, w, seed, n) })
	t.Logf("%d operations failed, in %d ways: %d starts did, %d requests were refused, %d topics and partitions resumed; 0 acknowledged records lost", f.failed, len(diseases), f.starts, f.refused, f.resumed)
	if f.failed < 30 && *sweepCut == 0 {
		t.Error("too few for the test to mean anything")
	}
}
