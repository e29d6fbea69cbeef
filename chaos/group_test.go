package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
)

// A member of the group consumes and commits. What it is given first of a partition has to be at the offset that is committed, and
// what follows right behind.
type member struct {
	*run
	cl *kgo.Client

	mu   sync.Mutex // guards next: assignments come from another goroutine
	next map[string]int64
}

// members has one member after the other, each for some seconds.
func (r *run) members(rng *rand.Rand, stop <-chan struct{}) {
	for !over(stop) {
		m := &member{run: r, next: map[string]int64{}}
		if !m.open() {
			return
		}
		until := time.Now().Add(time.Second + time.Duration(rng.Int64N(int64(5*time.Second))))
		for !over(stop) && time.Now().Before(until) {
			m.poll()
		}
		m.cl.CloseAllowingRebalance()
		r.did("members")
	}
}

func (m *member) open() bool {
	var err error
	lost := func(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for topic, parts := range gone {
			for _, p := range parts {
				delete(m.next, fmt.Sprintf("%s-%d", topic, p))
			}
		}
	}
	m.cl, err = kgo.NewClient(kgo.SeedBrokers(m.addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(steady...), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.BlockRebalanceOnPoll(), kgo.FetchMaxWait(100*time.Millisecond),
		// A member whose leave was lost with the broker is missed by the others until its session ends.
		kgo.SessionTimeout(6*time.Second), kgo.RebalanceTimeout(6*time.Second), kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.OnPartitionsRevoked(lost), kgo.OnPartitionsLost(lost), kgo.RequestRetries(100_000), kgo.RetryTimeout(2*time.Minute), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }))
	m.fail(err)
	return err == nil
}

// poll takes what there is, checks where it is, and commits.
func (m *member) poll() {
	ctx, cancel := context.WithTimeout(m.ctx, 300*time.Millisecond)
	defer cancel()
	f := m.cl.PollRecords(ctx, 2000)
	defer m.cl.AllowRebalance()
	commits := map[string]map[int32]kgo.EpochOffset{}
	f.EachPartition(func(p kgo.FetchTopicPartition) {
		if len(p.Records) == 0 {
			return
		}
		m.follow(p.Topic, p.Partition, p.Records)
		last := p.Records[len(p.Records)-1]
		if commits[p.Topic] == nil {
			commits[p.Topic] = map[int32]kgo.EpochOffset{}
		}
		commits[p.Topic][p.Partition] = kgo.EpochOffset{Epoch: last.LeaderEpoch, Offset: last.Offset + 1}
	})
	if len(commits) > 0 {
		m.commit(commits)
	}
}

func (m *member) follow(topic string, part int32, records []*kgo.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := fmt.Sprintf("%s-%d", topic, part)
	due, going := m.next[key]
	if first := records[0].Offset; !going {
		due = first
		may := m.h.May(offsetFact(topic, part))
		begins := slices.Contains(may, fmt.Sprint(first)) || first == 0 && slices.Contains(may, history.None)
		if !begins {
			m.fail(fmt.Errorf("a member begins %s at %d, committed is one of %q", key, first, may))
		}
	}
	for _, r := range records {
		if r.Offset != due {
			m.fail(fmt.Errorf("a member is given offset %d of %s where %d is due", r.Offset, key, due))
		}
		due = r.Offset + 1
	}
	m.next[key] = due
}

func (m *member) commit(offsets map[string]map[int32]kgo.EpochOffset) {
	for topic, parts := range offsets {
		for part, o := range parts {
			m.h.Begin(map[string]string{offsetFact(topic, part): fmt.Sprint(o.Offset)})
		}
	}
	ctx, cancel := context.WithTimeout(m.ctx, 30*time.Second)
	defer cancel()
	m.cl.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		if err != nil {
			m.did("commits unanswered")
			return
		}
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				switch p.ErrorCode {
				case 0:
					m.h.Promise(map[string]string{offsetFact(t.Topic, p.Partition): fmt.Sprint(offsets[t.Topic][p.Partition].Offset)})
					m.did("commits")
				case kerr.RebalanceInProgress.Code, kerr.IllegalGeneration.Code, kerr.UnknownMemberID.Code:
					m.did("commits refused") // an attempt before may have been done
				default:
					m.fail(fmt.Errorf("commit for %s-%d: %w", t.Topic, p.Partition, kerr.ErrorForCode(p.ErrorCode)))
				}
			}
		}
	})
}
