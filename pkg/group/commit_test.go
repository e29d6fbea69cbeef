package group

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
)

// GR-4: a consumer that is no member makes a group by its commit.
func TestOffsetsAreFetchedAsCommitted(t *testing.T) {
	k := newKit(t)
	want := FetchedOffset{Topic: "t", TopicID: k.topics["t"], Partition: 3, Offset: -5, LeaderEpoch: 7, Metadata: "m"}
	errs := k.CommitOffsets(t.Context(), &CommitRequest{Group: "g", Generation: -1, Version: 10, Retention: -1, Offsets: []OffsetToCommit{
		{Topic: "u", TopicID: k.topics["u"], Partition: 1, Offset: math.MaxInt64, LeaderEpoch: -1},
		{Topic: "t", TopicID: k.topics["t"], Partition: 3, Offset: -5, LeaderEpoch: 7, Metadata: "m"},
	}})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	none := FetchedOffset{Topic: "t", Partition: 9, Offset: -1, LeaderEpoch: -1}
	r := k.FetchOffsets(&FetchOffsetsRequest{Group: "g", Partitions: []OffsetOf{{Topic: "t", Partition: 9}, {Topic: "t", Partition: 3}}})
	if r.Err != nil || len(r.Offsets) != 2 || r.Offsets[0] != none || r.Offsets[1] != want {
		t.Errorf("%+v", r)
	}
	r = k.FetchOffsets(&FetchOffsetsRequest{Group: "g", All: true})
	if r.Err != nil || len(r.Offsets) != 2 || r.Offsets[0] != want || r.Offsets[1].Topic != "u" || r.Offsets[1].Offset != math.MaxInt64 {
		t.Errorf("%+v", r)
	}
	// A group there is not has no offsets, which is no error.
	r = k.FetchOffsets(&FetchOffsetsRequest{Group: "other", Partitions: []OffsetOf{{Topic: "t", Partition: 9}}})
	if r.Err != nil || r.Offsets[0] != none {
		t.Errorf("%+v", r)
	}
	if r = k.FetchOffsets(&FetchOffsetsRequest{Group: "other", All: true}); r.Err != nil || r.Offsets == nil || len(r.Offsets) > 0 {
		t.Errorf("%+v", r)
	}
	if d, err := k.Describe("g"); err != nil || d.State != "Empty" || d.ProtocolType != "" {
		t.Errorf("%+v, %v", d, err)
	}
	k.want(k.commit("", 0, 4), nil) // "" is a group for offsets
	if got := k.committed("", 0); got != 4 {
		t.Error(got)
	}
}

// GR-4: who may commit, by group and generation; the states are in the transcripts of group/classic.
func TestCommitsAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		commit := func(group, id string, instance *string, generation int32, version int16) error {
			return k.CommitOffsets(t.Context(), &CommitRequest{Group: group, MemberID: id, InstanceID: instance, Generation: generation, Version: version,
				Retention: -1, Offsets: []OffsetToCommit{{Topic: "t", TopicID: k.topics["t"], LeaderEpoch: -1}}})[0]
		}
		k.want(commit("other", "x", nil, 3, 8), kerr.IllegalGeneration)
		k.want(commit("other", "x", nil, 3, 9), kerr.GroupIDNotFound)
		m := k.alone("g")
		instance := "i"
		k.want(commit("g", m.id, nil, 1, 9), nil)
		k.want(commit("g", m.id, nil, 2, 9), kerr.IllegalGeneration)
		k.want(commit("g", m.id, &instance, 1, 9), kerr.UnknownMemberID)
		k.want(commit("g", "", nil, -1, 9), kerr.UnknownMemberID)
		k.want(commit(strings.Repeat("g", metastore.MaxGroupName+1), "", nil, -1, 9), kerr.InvalidGroupID)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		k.want(k.CommitOffsets(gone, &CommitRequest{Group: "g", Generation: -1, Offsets: make([]OffsetToCommit, 1)})[0], kerr.NotCoordinator)
		// A commit keeps the session.
		for range 5 {
			pass(9 * time.Second)
			k.want(commit("g", m.id, nil, 1, 9), nil)
		}
	})
}

// GR-4: metadata is limited by its length as Java counts it; the other partitions stand.
func TestLargeMetadataIsRefusedAlone(t *testing.T) {
	k := newKit(t)
	k.settings.OffsetMetadataMaxBytes = 4
	req := &CommitRequest{Group: "g", Generation: -1, Retention: -1}
	texts := []string{"1234", "12345", "äöüß", "\U0001F600\U0001F600", "\U0001F600\U0001F600x"}
	for i, s := range texts {
		req.Offsets = append(req.Offsets, OffsetToCommit{Topic: "t", TopicID: k.topics["t"], Partition: int32(i), Offset: 1, Metadata: s})
	}
	for i, err := range k.CommitOffsets(t.Context(), req) {
		var want error
		if i == 1 || i == 4 {
			want = kerr.OffsetMetadataTooLarge
		}
		k.want(err, want)
		if got := k.committed("g", int32(i)); (got == 1) != (want == nil) {
			t.Errorf("%q: offset %d", texts[i], got)
		}
	}
}

// GR-4: an offset for a topic that was made again is none for who asks by id.
func TestOffsetsOfATopicsPredecessorAreNone(t *testing.T) {
	k := newKit(t)
	k.want(k.commit("g", 0, 5), nil)
	for id, want := range map[kafka.TopicID]int64{k.topics["t"]: 5, kafka.NewTopicID(): -1, {}: 5} {
		r := k.FetchOffsets(&FetchOffsetsRequest{Group: "g", Partitions: []OffsetOf{{Topic: "t", TopicID: id}}})
		if r.Offsets[0].Offset != want {
			t.Errorf("%+v", r)
		}
	}
}

// ST-80: commits that come together share transactions, and each is on disk when it is answered.
func TestCommitsShareTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		before := k.store.Commits()
		hold := make(chan struct{})
		k.failing(func() error { <-hold; return nil })
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				if err := k.commit(fmt.Sprint("g", i%20), int32(i/20), int64(i)); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(hold)
		wg.Wait()
		if n := k.store.Commits() - before; n > 3 {
			t.Errorf("%d commits", n)
		}
		after := k.cut()
		for i := range 200 {
			if got := after.committed(fmt.Sprint("g", i%20), int32(i/20)); got != int64(i) {
				t.Errorf("%d: %d", i, got)
			}
		}
	})
}

// ST-80, GR-6: the power is cut before every commit of the store. What was
// acknowledged by then is there, and every group is one that had been.
func TestPowerCutsKeepWhatWasAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		type cut struct {
			path  string
			acked map[string]int64
		}
		var mu sync.Mutex // guards what follows
		var cuts []cut
		acked := map[string]int64{}
		dir := t.TempDir()
		k.failing(func() error {
			mu.Lock()
			defer mu.Unlock()
			c := cut{filepath.Join(dir, fmt.Sprint(len(cuts))), map[string]int64{}}
			for g, o := range acked {
				c.acked[g] = o
			}
			k.copyTo(c.path)
			cuts = append(cuts, c)
			return nil
		})
		var wg sync.WaitGroup
		for n := range 4 {
			group := fmt.Sprint("g", n)
			wg.Go(func() {
				for round := range 4 {
					m := k.alone(group)
					for i := range 3 {
						o := int64(10*round + i + 1)
						if err := k.CommitOffsets(t.Context(), &CommitRequest{Group: group, MemberID: m.id, Generation: m.last.Generation, Retention: -1,
							Offsets: []OffsetToCommit{{Topic: "t", TopicID: k.topics["t"], Offset: o}}})[0]; err != nil {
							t.Error(err)
						}
						mu.Lock()
						acked[group] = o
						mu.Unlock()
					}
					k.want(m.leave(), nil)
				}
			})
		}
		wg.Wait()
		synctest.Wait() // what is written behind
		for _, c := range cuts {
			after := k.from(c.path, crashfs.New())
			for g, o := range c.acked {
				d, err := after.Describe(g)
				if got := after.committed(g, 0); got < o || err != nil || d.State != "Empty" && d.State != "Stable" {
					t.Errorf("%s: offset %d of %d, %+v, %v", g, got, o, d, err)
				}
			}
			after.close()
		}
		t.Logf("%d cuts", len(cuts))
		if len(cuts) < 20 {
			t.Errorf("%d cuts", len(cuts))
		}
	})
}

// Commits, fetches and deletes of the same groups at once: an offset that was
// acknowledged after the last delete began is there, and none is without its group.
func TestCommitsAndDeletesAreInOrder(t *testing.T) {
	k := newKit(t)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			group := fmt.Sprint("g", n/2) // two of them share one
			for i := range 60 {
				switch r.IntN(3) {
				case 0:
					if err := k.Delete(t.Context(), []string{group})[0]; err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
						t.Error(err)
					}
				case 1:
					k.committed(group, int32(n))
				default:
					if err := k.commit(group, int32(n), int64(i)); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for n := range 4 { // now the group may or may not be there, and is as its offsets say
		group := fmt.Sprint("g", n)
		r := k.FetchOffsets(&FetchOffsetsRequest{Group: group, All: true})
		if there := k.state(group) != stateDead; !there && len(r.Offsets) > 0 {
			t.Errorf("%s has offsets and is not there", group)
		}
		k.want(k.commit(group, 9, 99), nil)
	}
	after := k.cut()
	for n := range 4 {
		group := fmt.Sprint("g", n)
		if after.state(group) != "Empty" || after.committed(group, 9) != 99 {
			t.Errorf("%s: %s, offset %d", group, after.state(group), after.committed(group, 9))
		}
	}
}

// GR-5: OffsetDelete.
func TestDeleteOffsets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		drop := func(group string, topics ...string) DeleteOffsetsResponse {
			req := &DeleteOffsetsRequest{Group: group}
			for _, topic := range topics {
				req.Partitions = append(req.Partitions, kafka.TopicPartition{Topic: topic})
			}
			return k.DeleteOffsets(t.Context(), req)
		}
		k.want(drop("g", "t").Err, kerr.GroupIDNotFound)
		k.want(k.commit("g", 0, 1), nil)
		k.want(k.commit("g", 1, 1), nil)
		m := k.alone("g") // subscribed to t
		r := drop("g", "t", "u")
		k.want(r.Err, nil)
		k.want(r.Partitions[0], kerr.GroupSubscribedToTopic)
		k.want(r.Partitions[1], nil)
		k.want(m.leave(), nil)
		if r = drop("g", "t", "u"); r.Err != nil || errors.Join(r.Partitions...) != nil {
			t.Errorf("%+v", r)
		}
		if a, b := k.committed("g", 0), k.committed("g", 1); a != -1 || b != 1 {
			t.Errorf("offsets %d, %d", a, b)
		}
		if after := k.cut(); after.committed("g", 0) != -1 {
			t.Error("not durable")
		}
		synctest.Wait() // what is written behind
		k.failing(full)
		k.want(drop("g", "t").Err, nil) // nothing to delete, nothing to write
		r = k.DeleteOffsets(t.Context(), &DeleteOffsetsRequest{Group: "g", Partitions: []kafka.TopicPartition{{Topic: "t", Partition: 1}}})
		k.want(r.Err, kerr.NotCoordinator)
	})
}

func BenchmarkCommitOffsets(b *testing.B) {
	k := newKit(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := k.commit("g", 0, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkFetchOffsets(b *testing.B) {
	k := newKit(b)
	if err := k.commit("g", 0, 1); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		k.committed("g", 0)
	}
}
