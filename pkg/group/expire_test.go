package group

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
	"github.com/dozekafka/doze-kafka/pkg/metastore"
)

// GR-7: the offsets of a deleted topic go with it, in all groups; those of
// other topics stay, and no commit brings one back.
func TestOffsetsGoWithTheirTopic(t *testing.T) {
	k := newKit(t)
	for _, g := range []string{"a", "b"} {
		k.want(k.commit(g, 0, 1), nil)
		k.want(k.CommitOffsets(t.Context(), &CommitRequest{Group: g, Generation: -1, Retention: -1,
			Offsets: []OffsetToCommit{{Topic: "u", TopicID: k.topics["u"], Offset: 2}}})[0], nil)
	}
	gone := k.dropTopic("t")
	late := &CommitRequest{Group: "c", Generation: -1, Retention: -1, Offsets: []OffsetToCommit{
		{Topic: "t", TopicID: gone.ID, Offset: 3}, {Topic: "u", TopicID: k.topics["u"], Offset: 4}}}
	errs := k.CommitOffsets(t.Context(), late)
	k.want(errs[0], kerr.UnknownTopicOrPartition)
	k.want(errs[1], nil)
	k.want(k.TopicsDeleted(t.Context(), []kafka.TopicImage{gone}), nil)
	k.makeTopic("t") // again, with another id
	k.want(k.CommitOffsets(t.Context(), late)[0], kerr.UnknownTopicOrPartition)
	for _, g := range []string{"a", "b", "c"} {
		r := k.FetchOffsets(&FetchOffsetsRequest{Group: g, All: true})
		if r.Err != nil || len(r.Offsets) != 1 || r.Offsets[0].Topic != "u" {
			t.Errorf("%s: %+v", g, r)
		}
	}
}

// GR-7: a crash between the deletion of a topic and that of its offsets.
func TestAStartDropsTheOffsetsOfTopicsThatAreGone(t *testing.T) {
	k := newKit(t)
	k.want(k.commit("g", 0, 1), nil)
	k.dropTopic("t")
	if after := k.cut(); after.committed("g", 0) != -1 || after.state("g") != "Empty" {
		t.Error("still there")
	}
	k.makeTopic("t")
	if after := k.cut(); after.committed("g", 0) != -1 {
		t.Error("it is that of the topic before")
	}
	// A start on a full disk goes on without.
	k.failing(full)
	_ = k.Close()
	k.open()
	if k.state("g") != "Empty" {
		t.Error(k.state("g"))
	}
}

// GR-7: offsets.retention.minutes counts from when a group became empty, and
// for a consumer that is no member from the commit. Groups without offsets go too.
func TestOffsetsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.settings.OffsetsRetentionMinutes = 60
		k.want(k.commit("simple", 0, 1), nil)
		k.want(k.commit("left", 0, 1), nil)
		k.alone("left")
		k.alone("nothing")
		pass(9 * time.Minute) // their sessions have ended
		if k.state("left") != "Empty" || k.state("nothing") != "Empty" {
			t.Error(k.state("left"), k.state("nothing"))
		}
		pass(41 * time.Minute)
		if k.state("left") != "Empty" || k.state("nothing") != "Dead" { // it has no offsets
			t.Error(k.state("left"), k.state("nothing"))
		}
		k.want(k.commit("simple", 1, 1), nil)
		pass(9 * time.Minute) // it runs every 10 minutes: at 60
		check := func(when string, simple0, simple1, left int64) {
			t.Helper()
			if a, b, c := k.committed("simple", 0), k.committed("simple", 1), k.committed("left", 0); a != simple0 || b != simple1 || c != left {
				t.Errorf("%s: offsets %d, %d, %d", when, a, b, c)
			}
		}
		check("at 59", 1, 1, 1)
		pass(2 * time.Minute)
		check("at 61", -1, 1, 1) // "left" is empty since its session ended, after 10 s
		pass(10 * time.Minute)
		check("at 71", -1, 1, -1)
		if k.state("left") != "Dead" || k.state("simple") != "Empty" {
			t.Error(k.state("left"), k.state("simple"))
		}
		pass(50 * time.Minute)
		check("at 121", -1, -1, -1)
		if got := k.List(ListFilter{}); len(got) > 0 {
			t.Errorf("%+v", got)
		}
		if after := k.cut(); len(after.List(ListFilter{})) > 0 {
			t.Error("not durable")
		}
	})
}

// GR-7: of a stable group, topics that nobody is subscribed to age from their commit.
func TestOffsetsOfMembersExpireByTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.settings.OffsetsRetentionMinutes = 60
		k.want(k.commit("g", 0, 1), nil)
		k.want(k.CommitOffsets(t.Context(), &CommitRequest{Group: "g", Generation: -1, Retention: -1,
			Offsets: []OffsetToCommit{{Topic: "u", TopicID: k.topics["u"], Offset: 2}}})[0], nil)
		m := k.alone("g")
		for range 1000 {
			pass(9 * time.Second)
			k.want(m.heartbeat(), nil)
		}
		if r := k.FetchOffsets(&FetchOffsetsRequest{Group: "g", All: true}); len(r.Offsets) != 1 || r.Offsets[0].Topic != "t" {
			t.Errorf("%+v", r)
		}
		// Of members that are no consumers the subscription is not known.
		k.want(k.commit("connect", 0, 1), nil)
		join := &JoinRequest{Group: "connect", ProtocolType: "connect", Protocols: []Protocol{{Name: "p"}}, SessionTimeout: 20 * time.Minute, RebalanceTimeout: time.Hour}
		r := <-k.Join(join)
		k.want((<-k.Sync(&SyncRequest{Group: "connect", MemberID: r.MemberID, Generation: r.Generation})).Err, nil)
		for range 10 {
			pass(9 * time.Minute)
			k.want(k.Heartbeat(&HeartbeatRequest{Group: "connect", MemberID: r.MemberID, Generation: r.Generation}), nil)
		}
		if got := k.committed("connect", 0); got != 1 {
			t.Error(got)
		}
		k.want(m.join(), kerr.UnknownMemberID)
		k.alone("g")
		// While it rebalances nothing expires, and the group is not deleted.
		waiting := k.member("g").start()
		pass(8 * time.Second)
		if n, err := k.ExpireOffsets(t.Context()); n != 0 || err != nil || k.state("g") != "PreparingRebalance" {
			t.Errorf("%d, %v, %s", n, err, k.state("g"))
		}
		_ = waiting
	})
}

// retention_time_ms of OffsetCommit v2 to v4 wins over the broker's retention.
func TestAnExplicitRetentionWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		for i, retention := range []time.Duration{-1, 0, time.Minute, 30 * 24 * time.Hour} {
			k.want(k.CommitOffsets(t.Context(), &CommitRequest{Group: "g", Generation: -1, Retention: retention,
				Offsets: []OffsetToCommit{{Topic: "t", TopicID: k.topics["t"], Partition: int32(i), Offset: 1}}})[0], nil)
		}
		check := func(want ...int64) {
			t.Helper()
			if _, err := k.ExpireOffsets(t.Context()); err != nil {
				t.Error(err)
			}
			for i, w := range want {
				if got := k.committed("g", int32(i)); got != w {
					t.Errorf("partition %d: %d", i, got)
				}
			}
		}
		check(1, -1, 1, 1)
		pass(time.Minute)
		check(1, -1, -1, 1)
		pass(8 * 24 * time.Hour)
		check(-1, -1, -1, 1)
	})
}

// What was committed since the offsets were read is not dropped with them.
func TestNothingExpiresBesideACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.want(k.commit("g", 0, 1), nil)
		g := k.lock("g", false)
		version := g.version
		g.mu.Unlock()
		old := []metastore.Offset{{Topic: "t", Partition: 0, Committed: time.UnixMilli(0)}}
		k.want(k.commit("g", 0, 2), nil)
		var dropped atomic.Int64
		g.mu.Lock()
		k.want(g.expireOffsets(old, version, &dropped)(), nil)
		if got := k.committed("g", 0); got != 2 || dropped.Load() != 0 || k.state("g") != "Empty" {
			t.Errorf("offset %d, %s", got, k.state("g"))
		}
	})
}

// What can't be dropped now is dropped later.
func TestExpiryOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.want(k.commit("g", 0, 1), nil)
		k.failing(full)
		pass(8*24*time.Hour + time.Minute) // not when it runs by itself
		synctest.Wait()
		if _, err := k.ExpireOffsets(t.Context()); err == nil || k.committed("g", 0) != 1 || k.state("g") != "Empty" {
			t.Errorf("%v, offset %d, %s", err, k.committed("g", 0), k.state("g"))
		}
		k.fail.Store(nil)
		if n, err := k.ExpireOffsets(t.Context()); n != 1 || err != nil || k.state("g") != "Dead" {
			t.Errorf("%d, %v, %s", n, err, k.state("g"))
		}
	})
}

func TestExpiredIsByTheFirstThatIsSet(t *testing.T) {
	now := time.UnixMilli(1e12)
	for _, c := range []struct {
		committed, expires, since time.Duration // ago; 0 is not set
		want                      bool
	}{
		{committed: 59 * time.Minute}, {committed: time.Hour, want: true},
		{committed: 2 * time.Hour, since: 59 * time.Minute}, {committed: 2 * time.Hour, since: time.Hour, want: true},
		{committed: 2 * time.Hour, expires: -1}, {committed: 1, expires: 1, want: true},
	} {
		o := metastore.Offset{Committed: now.Add(-c.committed)}
		var since time.Time
		if c.expires != 0 {
			o.Expires = now.Add(-c.expires)
		}
		if c.since != 0 {
			since = now.Add(-c.since)
		}
		if got := expired(o, since, now, time.Hour); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
