package brokertest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
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
	if err != nil {
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
	if err := c.remove(name); err != nil {
		c.refusal("delete", err)
		c.left[name] = true
		return
	}
	c.world.topics[name] = topicState{}
	c.world.Promise(gone)
}

func (c *patient) send(name string, partition int) {
	key := fmt.Sprintf("%s-%d", name, partition)
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
	names := []string{"a", "b"}
	for range steps {
		name := names[rng.IntN(len(names))]
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

// ST-60, ST-61, ST-72: every operation of the disk fails once in a run of its
// own. Whoever is answered with an error gets KAFKA_STORAGE_ERROR, and a start after
// a power cut finds what was acknowledged.
func TestAFailureOfAnyOperationLosesNothing(t *testing.T) {
	const every, steps = 4, 45
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	failures, refused := 0, 0
	for n := 1 + int(seed%every); ; n += every {
		hit := false
		name := fmt.Sprintf("operation %d", n)
		ok := t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := brokertest.Start(t)
				b.MayFail()
				c := &patient{peer: newPeer(t, b), left: map[string]bool{}, world: newWorld()}
				c.world.producer = c.producerID()
				rng := rand.New(rand.NewPCG(seed, 1))
				rule := faultfs.Rule{Kinds: vfs.OpChanges | vfs.OpOpen | vfs.OpRead, Nth: n, Happens: n%3 == 0}
				if n%2 == 0 {
					rule.Err = syscall.ENOSPC
				}
				if n%5 == 0 {
					rule.Times = 3
				}
				fault := b.Fault.Fail(rule)
				c.work(rng, steps)
				if hit = fault.Hits() > 0; hit {
					t.Logf("failed: %s", fault.Last())
				}
				refused += c.failed
				fault.Remove()
				c.world.check(t, b.PowerCut(crashfs.Survivals(seed+uint64(n), 3)[n%3]))
			})
		})
		if !ok {
			t.Fatalf("seed %d", seed)
		}
		if !hit {
			break // the workload ends before its operation n
		}
		failures++
	}
	t.Logf("%d operations failed, %d requests were refused", failures, refused)
	if failures < 10 {
		t.Error("too few for the test to mean anything")
	}
}
