// Package groups restarts the members of a group, and the broker beneath them, over and over, and measures how soon a group is at work.
package groups

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/target"
)

var rounds = flag.Int("rounds", 3, "how often every member of the group is restarted, in each mode")

const (
	topic      = "rolling"
	partitions = 20
	size       = 10
	// session is far longer than a restart of the broker, and bounds how long a member that could not say goodbye is waited for.
	session = 6 * time.Second
	// bound is for one step: a session, a rebalance, and a slow machine.
	bound     = 40 * time.Second
	heartbeat = 200 * time.Millisecond
)

// Show 2: a rolling restart of ten members, cooperative, eager and static, with SIGKILLs of the broker in between. No
// partition is ever with two members, the group never gets stuck, nothing is lost, and nothing comes again after a commit.
func TestRollingRestart(t *testing.T) {
	for name, opts := range map[string]func(member int) []kgo.Opt{
		"cooperative": func(int) []kgo.Opt { return []kgo.Opt{kgo.Balancers(kgo.CooperativeStickyBalancer())} },
		"eager":       func(int) []kgo.Opt { return []kgo.Opt{kgo.Balancers(kgo.RangeBalancer())} },
		"static": func(n int) []kgo.Opt {
			return []kgo.Opt{kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.InstanceID(fmt.Sprint("instance-", n))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newRolling(t, name == "static", opts).run()
		})
	}
}

// A rolling is one run.
type rolling struct {
	*testing.T
	broker  *target.Broker
	static  bool
	options func(member int) []kgo.Opt
	own     *ownership
	members [size]*member
	started int

	generation  int32
	kills       int
	longest     time.Duration
	fenced      int                      // commits of members that are gone, refused
	produced    [partitions]atomic.Int64 // acknowledged
	stopProduce context.CancelFunc
	producing   sync.WaitGroup
}

// A member is one consumer.
type member struct {
	name   string
	client *kgo.Client
	end    context.CancelFunc // ends polling
	polls  sync.WaitGroup
	id     string // of the last generation it was in, once it has ended
	gen    int32
}

// stop ends polling and leaves the group, unless the member is static.
func (m *member) stop() {
	m.end()
	m.polls.Wait()
	m.id, m.gen = m.client.GroupMetadata()
	m.client.CloseAllowingRebalance()
}

func newRolling(t *testing.T, static bool, options func(int) []kgo.Opt) *rolling {
	t.Helper()
	r := &rolling{T: t, static: static, options: options, own: newOwnership(partitions)}
	r.broker = target.Start(t, target.Options{Flags: []string{"--group-min-session-timeout-ms", "1000"},
		Properties: map[string]string{"group.min.session.timeout.ms": "1000", "group.initial.rebalance.delay.ms": "100",
			"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "500"}})
	client := r.client()
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), partitions, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rolling) client(opts ...kgo.Opt) *kgo.Client {
	r.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(r.broker.Addr()), kgo.RetryTimeout(time.Minute), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }))...)
	if err != nil {
		r.Fatal(err)
	}
	return client
}

func (r *rolling) run() {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r.stopProduce = cancel
	r.producing.Go(func() { r.produce(ctx) })
	for i := range r.members {
		r.members[i] = r.join(i)
	}
	r.Cleanup(func() {
		for _, m := range r.members {
			m.stop()
		}
	})
	r.longest = r.own.await(r.T, r.names(), bound)
	for round := range *rounds {
		kill := map[int]int{}
		for moment := never + 1; moment < moments; moment++ {
			kill[rand.IntN(size)] = moment
		}
		for i := range r.members {
			r.step(i, kill[i])
		}
		r.own.report(r.T)
		if r.Failed() {
			r.Fatalf("in round %d", round+1)
		}
	}
	r.finish()
}

// The moments of a step at which the broker is killed, each at random within a few heartbeats.
const (
	never = iota
	whileLeaving
	whileAway
	whileJoining // a rebalance is prepared, agreed on, and assigned; a static member is replaced
	assigned     // a member has just heard of its partitions
	atRest
	moments
)

// step restarts a member, and the broker at some moment of it; then the group is whole again.
func (r *rolling) step(i, moment int) {
	old := r.members[i]
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		old.stop()
	}()
	if moment == whileLeaving {
		r.kill(rand.N(heartbeat / 4))
	}
	<-gone
	if moment == whileAway {
		r.kill(rand.N(heartbeat / 4))
	}
	r.generation = max(r.generation, old.gen)
	assignedBefore := r.own.assignments()
	r.members[i] = r.join(i)
	switch moment {
	case whileJoining:
		// Half of the kills are within the first milliseconds, when a static member is replaced.
		r.kill(rand.N([]time.Duration{5 * time.Millisecond, 2 * heartbeat}[rand.IntN(2)]))
	case assigned:
		r.own.awaitAssignment(r.T, assignedBefore, bound)
		r.kill(rand.N(5 * time.Millisecond))
	}
	r.longest = max(r.longest, r.own.await(r.T, r.names(), bound))
	if moment == atRest {
		r.kill(2*heartbeat + rand.N(heartbeat))
		r.longest = max(r.longest, r.own.await(r.T, r.names(), bound))
	}
	r.refuseOld(old)
}

// kill kills the broker after a while, and starts it.
func (r *rolling) kill(after time.Duration) {
	<-time.After(after)
	r.broker.Kill()
	r.broker.Restart()
	r.kills++
}

func (r *rolling) names() (names []string) {
	for _, m := range r.members {
		names = append(names, m.name)
	}
	return names
}

// join starts a member. It commits what it has consumed before it lets a rebalance happen, as careful consumers do.
func (r *rolling) join(i int) *member {
	r.started++
	m := &member{name: fmt.Sprintf("member-%d#%d", i, r.started)}
	polling, end := context.WithCancel(context.Background())
	m.end = end
	released := func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { r.own.release(m.name, lost[topic]) }
	m.client = r.client(append(r.options(i), kgo.ClientID(m.name), kgo.ConsumerGroup("group"), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(session), kgo.RebalanceTimeout(15*time.Second), kgo.HeartbeatInterval(heartbeat), kgo.FetchMaxWait(100*time.Millisecond),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.OnPartitionsRevoked(released), kgo.OnPartitionsLost(released),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) { r.own.assign(m.name, got[topic]) }))...)
	m.polls.Go(func() {
		for polling.Err() == nil {
			r.poll(polling, m)
		}
	})
	return m
}

// poll consumes and commits once.
func (r *rolling) poll(polling context.Context, m *member) {
	defer m.client.AllowRebalance()
	fetches := m.client.PollRecords(polling, 200)
	for rec := range fetches.RecordsAll() {
		r.own.consume(m.name, rec.Partition, rec.Offset)
	}
	records := fetches.Records()
	if len(records) == 0 {
		return
	}
	offsets := map[int32]kgo.EpochOffset{}
	for _, rec := range records {
		offsets[rec.Partition] = kgo.EpochOffset{Epoch: rec.LeaderEpoch, Offset: rec.Offset + 1}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m.client.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
			if err != nil {
				return
			}
			for _, p := range resp.Topics[0].Partitions {
				if p.ErrorCode == 0 {
					r.own.acknowledge(m.name, p.Partition, offsets[p.Partition].Offset)
				}
			}
		})
}

// refuseOld wants a commit by a member that is gone to be refused: a static one's id is another's by now.
func (r *rolling) refuseOld(old *member) {
	client := r.client()
	defer client.Close()
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.MemberID, req.Generation = "group", old.id, old.gen
	t := kmsg.NewOffsetCommitRequestTopic()
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	id, err := kadm.NewClient(client).ListTopics(r.Context(), topic)
	if err != nil {
		r.Fatal(err)
	}
	t.TopicID = id[topic].ID
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(r.Context(), client)
	if err != nil {
		r.Fatal(err)
	}
	switch err := kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode); {
	case errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration):
		r.fenced++
	default:
		r.Errorf("a commit of %s, which is gone, in generation %d: %v", old.name, old.gen, err)
	}
}

// produce sends numbered records to all partitions in turn, some hundred in a second.
func (r *rolling) produce(ctx context.Context) {
	client := r.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(2000))
	defer client.Close()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := uint64(0); ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			if err := client.Flush(context.Background()); err != nil {
				r.Errorf("flush: %v", err)
			}
			return
		}
		for p := range int32(partitions) {
			client.Produce(context.Background(), &kgo.Record{Topic: topic, Partition: p, Value: binary.BigEndian.AppendUint64(nil, n)}, func(rec *kgo.Record, err error) {
				if err != nil {
					r.Errorf("produce to partition %d: %v", p, err)
					return
				}
				r.produced[p].Store(rec.Offset + 1)
			})
		}
	}
}

// finish has everything consumed, and says what it was like.
func (r *rolling) finish() {
	r.stopProduce()
	r.producing.Wait()
	var ends []int64
	var total int64
	for p := range r.produced {
		ends = append(ends, r.produced[p].Load())
		total += ends[p]
	}
	late := time.After(bound)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		missing, _ := r.own.consumed(ends)
		if missing == 0 {
			break
		}
		select {
		case <-tick.C:
		case <-late:
			r.Fatalf("%d records of %d were not consumed within %v", missing, total, bound)
		}
	}
	r.own.report(r.T)
	_, generation := r.members[0].client.GroupMetadata()
	r.Logf("%s: %d rounds, %d members restarted, %d kills of the broker, %d generations, %d assignments, stable again after %v at the latest; "+
		"%d records produced, all consumed, %d of them again without a commit between; %d commits of members that were gone refused",
		r.broker.Name(), *rounds, r.started-size, r.kills, max(generation, r.generation), r.own.assigned, r.longest.Round(time.Millisecond),
		total, r.own.repeats, r.fenced)
}
