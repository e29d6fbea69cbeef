package brokertest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest"
	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
	"github.com/dozekafka/doze-kafka/pkg/config"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// An admin is one client of the workload. It has topics and groups of its own,
// and the transactions of meta.db are those of all admins.
type admin struct {
	peer
	*history.History
	rng    *rand.Rand
	topic  string
	id     [16]byte
	size   int    // partitions; 0: there is no topic
	broker string // a config of the broker that no other admin alters
	groups []string
	commit int64 // counts, so that each commit has another offset
}

// brokerConfigs can be altered while a broker runs, and change nothing that is looked at here.
var brokerConfigs = []string{"log.segment.delete.delay.ms", "log.cleaner.delete.retention.ms", "log.local.retention.bytes", "log.remote.copy.lag.bytes",
	"log.flush.interval.messages", "log.cleaner.max.compaction.lag.ms"}

func newAdmin(t *testing.T, b *brokertest.Broker, h *history.History, n int, seed uint64) *admin {
	a := &admin{peer: newPeer(t, b), History: h, rng: rand.New(rand.NewPCG(seed, uint64(n))), topic: fmt.Sprint("w", n)}
	for i := range 3 {
		a.groups = append(a.groups, fmt.Sprintf("g%d.%d", n, i))
	}
	a.broker = brokerConfigs[n]
	first := map[string]string{"topic " + a.topic: history.None, "config " + a.topic: history.None, "broker " + a.broker: history.None}
	for _, g := range a.groups {
		first["group "+g] = history.None
		a.eachOffset(first, g, history.None)
	}
	h.Promise(first)
	return a
}

// did asks something whose answer promises changes.
func (a *admin) did(changes map[string]string, ask func() error) {
	a.t.Helper()
	a.Begin(changes)
	if err := ask(); err != nil {
		a.t.Fatalf("%v: %v", changes, err)
	}
	a.Promise(changes)
}

// offset is the fact about an offset.
func (a *admin) offset(group string, partition int32) string {
	return fmt.Sprintf("offset %s %s %d", group, a.topic, partition)
}

// eachOffset is what becomes of all offsets of a group, and of the group.
func (a *admin) eachOffset(changes map[string]string, group, value string) {
	for p := range int32(maxPartitions) {
		changes[a.offset(group, p)] = value
	}
}

const maxPartitions = 6

func (a *admin) createTopic() {
	size := 1 + a.rng.IntN(3)
	a.did(map[string]string{"topic " + a.topic: fmt.Sprint(size), "config " + a.topic: topicConfigs[1][1]}, func() (err error) {
		a.id, err = a.create(a.topic, size)
		return err
	})
	a.size = size
}

// deleteTopic takes the offsets with it (GR-7).
func (a *admin) deleteTopic() {
	changes := map[string]string{"topic " + a.topic: history.None, "config " + a.topic: history.None}
	for _, g := range a.groups {
		a.eachOffset(changes, g, history.None)
	}
	a.did(changes, func() error { return a.remove(a.topic) })
	a.size = 0
}

func (a *admin) grow() {
	if a.size == maxPartitions {
		return
	}
	size := a.size + 1
	a.did(map[string]string{"topic " + a.topic: fmt.Sprint(size)}, func() error {
		req := kmsg.NewPtrCreatePartitionsRequest()
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = a.topic, int32(size)
		req.Topics, req.TimeoutMillis = append(req.Topics, t), 10_000
		return kerr.ErrorForCode(ask[*kmsg.CreatePartitionsResponse](a.peer, req).Topics[0].ErrorCode)
	})
	a.size = size
}

func (a *admin) alter() {
	value := fmt.Sprint(100_000 + a.rng.IntN(1_000_000))
	a.did(map[string]string{"config " + a.topic: value}, func() error {
		return a.incremental(kmsg.ConfigResourceTypeTopic, a.topic, retention, kmsg.IncrementalAlterConfigOpSet, &value)
	})
}

// alterBroker sets a config of the whole cluster, or takes it back.
func (a *admin) alterBroker() {
	value, op := fmt.Sprint(100_000+a.rng.IntN(1_000_000)), kmsg.IncrementalAlterConfigOpSet
	changes := map[string]string{"broker " + a.broker: value}
	if a.rng.IntN(3) == 0 {
		changes["broker "+a.broker], op = history.None, kmsg.IncrementalAlterConfigOpDelete
	}
	a.did(changes, func() error { return a.incremental(kmsg.ConfigResourceTypeBroker, "", a.broker, op, &value) })
}

func (a *admin) incremental(kind kmsg.ConfigResourceType, name, config string, op kmsg.IncrementalAlterConfigOp, value *string) error {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kind, name
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Op, c.Value = config, op, value
	r.Configs = append(r.Configs, c)
	req.Resources = append(req.Resources, r)
	return kerr.ErrorForCode(ask[*kmsg.IncrementalAlterConfigsResponse](a.peer, req).Resources[0].ErrorCode)
}

// ofCluster is a config of the cluster that was altered.
func (p peer) ofCluster(name string) string {
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ConfigNames = kmsg.ConfigResourceTypeBroker, []string{name}
	req.Resources = append(req.Resources, r)
	for _, c := range ask[*kmsg.DescribeConfigsResponse](p, req).Resources[0].Configs {
		return *c.Value
	}
	return history.None
}

// commitOffsets commits for some partitions of the topic at once.
func (a *admin) commitOffsets(group string) {
	changes := map[string]string{"group " + group: "Empty"}
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic, t.TopicID = a.topic, a.id
	for p := range int32(a.size) {
		if p > 0 && a.rng.IntN(2) == 0 {
			continue
		}
		a.commit++
		part := kmsg.NewOffsetCommitRequestTopicPartition()
		part.Partition, part.Offset = p, a.commit
		t.Partitions = append(t.Partitions, part)
		changes[a.offset(group, p)] = fmt.Sprint(a.commit)
	}
	a.did(changes, func() error {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Group, req.Topics = group, append(req.Topics, t)
		var errs []error
		for _, p := range ask[*kmsg.OffsetCommitResponse](a.peer, req).Topics[0].Partitions {
			errs = append(errs, kerr.ErrorForCode(p.ErrorCode))
		}
		return errors.Join(errs...)
	})
}

func (a *admin) deleteOffset(group string) {
	p := int32(a.rng.IntN(a.size))
	a.did(map[string]string{a.offset(group, p): history.None}, func() error {
		req := kmsg.NewPtrOffsetDeleteRequest()
		t := kmsg.NewOffsetDeleteRequestTopic()
		part := kmsg.NewOffsetDeleteRequestTopicPartition()
		part.Partition, t.Topic = p, a.topic
		t.Partitions = append(t.Partitions, part)
		req.Group, req.Topics = group, append(req.Topics, t)
		resp := ask[*kmsg.OffsetDeleteResponse](a.peer, req)
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			if errors.Is(err, kerr.GroupIDNotFound) {
				return nil
			}
			return err
		}
		return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
	})
}

func (a *admin) deleteGroup(group string) {
	changes := map[string]string{"group " + group: history.None}
	a.eachOffset(changes, group, history.None)
	a.did(changes, func() error {
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Groups = []string{group}
		err := kerr.ErrorForCode(ask[*kmsg.DeleteGroupsResponse](a.peer, req).Groups[0].ErrorCode)
		if errors.Is(err, kerr.GroupIDNotFound) {
			return nil
		}
		return err
	})
}

func (a *admin) work(steps int) {
	for range steps {
		group := a.groups[a.rng.IntN(len(a.groups))]
		switch r := a.rng.IntN(20); {
		case a.size == 0:
			a.createTopic()
		case r == 0:
			a.deleteTopic()
		case r == 1:
			a.grow()
		case r < 4:
			a.alter()
			a.alterBroker()
		case r < 6:
			a.deleteGroup(group)
		case r < 9:
			a.deleteOffset(group)
		default:
			a.commitOffsets(group)
		}
	}
}

// fact is what a broker says of a fact: "offset g0 w0 1", "group g0", "topic w0", "config w0", "broker log.segment.delete.delay.ms".
func (p peer) fact(fact string) string {
	words := strings.Fields(fact)
	id, partitions, there := [16]byte{}, 0, false
	switch words[0] {
	case "topic", "config":
		id, partitions, there = p.find(words[1])
	case "offset":
		id, _, there = p.find(words[2])
	}
	switch {
	case words[0] == "group":
		req := kmsg.NewPtrDescribeGroupsRequest()
		req.Groups = []string{words[1]}
		if g := ask[*kmsg.DescribeGroupsResponse](p, req).Groups[0]; g.ErrorCode == 0 {
			return g.State
		}
		return history.None
	case words[0] == "broker":
		return p.ofCluster(words[1])
	case !there:
		return history.None
	case words[0] == "topic":
		return fmt.Sprint(partitions)
	case words[0] == "config":
		return p.retention(words[1])
	}
	var partition int32
	if _, err := fmt.Sscan(words[3], &partition); err != nil {
		p.t.Fatal(err)
	}
	req := kmsg.NewPtrOffsetFetchRequest()
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.TopicID, t.Partitions = words[2], id, []int32{partition}
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.Topics = words[1], append(g.Topics, t)
	req.Groups = append(req.Groups, g)
	got := ask[*kmsg.OffsetFetchResponse](p, req).Groups[0].Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
		p.t.Fatalf("%s: %v", fact, err)
	}
	if got.Offset < 0 {
		return history.None
	}
	return fmt.Sprint(got.Offset)
}

// checkFacts wants a broker to keep what was promised. What it says now is promised from then on.
func checkFacts(t *testing.T, h *history.History, b *brokertest.Broker) {
	t.Helper()
	p := newPeer(t, b)
	c := h.Check(history.PowerCut)
	for _, fact := range h.Facts() {
		got := p.fact(fact)
		c.Fact(fact, got)
		h.Promise(map[string]string{fact: got})
	}
	for _, v := range c.Violations {
		t.Error(v)
	}
}

// adminSweep runs some admins side by side and takes cuts at steps all over.
// At its end the retention of offsets passes.
func adminSweep(t *testing.T, admins, steps, every int, seed uint64) (cuts []adminCut) {
	synctest.Test(t, func(t *testing.T) {
		b := brokertest.Start(t, func(s *config.Settings) { s.OffsetsRetentionMinutes = 60 })
		h := history.New()
		var mu sync.Mutex
		n := 0
		b.OnStep(func(step string) {
			mu.Lock()
			defer mu.Unlock()
			if n++; n%every > 0 {
				return
			}
			promised := h.Clone() // before the snapshot: what is promised meanwhile may be in it, too
			s, err := b.Snapshot()
			if err != nil {
				t.Errorf("%s: %v", step, err)
				return
			}
			cuts = append(cuts, adminCut{n, step, promised, h.Clone(), s})
		})
		var wg sync.WaitGroup
		for i := range admins {
			a := newAdmin(t, b, h, i, seed)
			wg.Go(func() { a.work(steps) })
		}
		wg.Wait()
		checkFacts(t, h, b)
		expired := map[string]string{}
		for _, fact := range h.Facts() {
			if strings.HasPrefix(fact, "offset ") || strings.HasPrefix(fact, "group ") {
				expired[fact] = history.None
			}
		}
		h.Begin(expired)
		<-time.After(90 * time.Minute)
		h.Promise(expired)
		checkFacts(t, h, b)
		b.OnStep(nil)
	})
	return cuts
}

// An adminCut is a snapshot with what was promised before it, and what may have been on its way by then.
type adminCut struct {
	number        int
	step          string
	before, after *history.History
	*brokertest.Snapshot
}

// GR-6, GR-7, ST-71, ST-80: the power is cut at steps all over a workload of
// commits by many groups, deleted offsets, groups and topics, altered configs, created
// partitions and expiry, several at once. What was acknowledged is there, and what was deleted stays away;
// and what the broker says after the cut outlives the next.
func TestAdminPromisesOutliveAPowerCutAtAnyStep(t *testing.T) {
	admins, steps, every := 4, 60, 2
	if *sweepFull {
		steps, every = 200, 1
	}
	seed := sweepSeedOf(t, 0)
	var cuts []adminCut
	t.Run("workload", func(t *testing.T) { cuts = adminSweep(t, admins, steps, every, seed) })
	facts := 0
	for _, c := range cuts {
		survival := crashfs.Survivals(seed+uint64(c.number), 3)[c.number%3]
		ok := t.Run(fmt.Sprintf("%d %s, %s", c.number, strings.ReplaceAll(c.step, "/", "|"), survival), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// A request that came on its way while the snapshot was taken may be in it.
				c.before.Widen(c.after)
				b := c.PowerCut(t, survival)
				checkFacts(t, c.before, b)
				checkFacts(t, c.before, b.PowerCut(crashfs.LoseUnsynced))
			})
		})
		facts += 2 * len(c.before.Facts())
		if !ok {
			t.Fatalf("again, though several admins at once are not the same twice: %s", sweepAgain(t, seed, 0))
		}
	}
	t.Logf("%d cuts, %d facts held against what was promised", len(cuts), facts)
	if len(cuts) < 20 {
		t.Error("too few cuts for the test to mean anything")
	}
}
