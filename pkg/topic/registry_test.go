package topic

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

func sortedNames(k *kit) (names []string) {
	for _, t := range k.All() {
		names = append(names, t.Name())
	}
	return names
}

// ST-2, ST-50: topics, ids, configs and records are there after a restart.
func TestTopicsOutliveARestart(t *testing.T) {
	k := onDisk(t).start()
	v := "compact"
	made := k.create(Spec{Name: "b", Partitions: 3, ReplicationFactor: -1, Configs: []ConfigEntry{{"cleanup.policy", &v}}}, simple("a"))
	k.mustProduce(made[1], 0, "one")
	k.stop()

	k.clean = func(kafka.TopicPartition) bool { return true }
	k.start()
	defer k.stop()
	if got := sortedNames(k); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
	b, ok := k.LookupID(made[0].ID())
	if !ok || b.Name() != "b" || b.Partitions() != 3 || b.Overrides()["cleanup.policy"] != "compact" {
		t.Errorf("%+v", b)
	}
	if n := k.OpenLogs(); n != 0 {
		t.Errorf("ST-21: %d logs are open", n)
	}
	a, _ := k.Lookup("a")
	if err := k.holds(a, 0, "one"); err != nil {
		t.Error(err)
	}
	if n := k.OpenLogs(); n != 1 {
		t.Errorf("%d logs are open", n)
	}
}

// The snapshot's list stays sorted and complete over any changes.
func TestTheListIsSortedAfterAnyChange(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	k.create(simple("m"), simple("c"))
	k.create(simple("a"), simple("z"), simple("d"))
	m, _ := k.Lookup("m")
	if err := k.Grow(t.Context(), m, 2); err != nil {
		t.Fatal(err)
	}
	c, _ := k.Lookup("c")
	if err := k.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := sortedNames(k); !slices.Equal(got, []string{"a", "d", "m", "z"}) {
		t.Errorf("%q", got)
	}
	if now, _ := k.Lookup("m"); now.Partitions() != 2 || k.All()[2] != now {
		t.Errorf("%+v", now)
	}
}

// Lookups run beside changes; changes of one name take turns. Run with -race.
func TestLookupsRunBesideChanges(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	ctx, cancel := context.WithCancel(t.Context())
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for ctx.Err() == nil {
				for _, topic := range k.All() {
					if l, err := topic.Log(0); err == nil {
						_ = l.Offsets()
					}
				}
			}
		})
	}
	for i := range 4 {
		writers.Go(func() {
			for j := range 10 {
				name := fmt.Sprintf("t.%d", (i+j)%3)
				topic, err := k.Ensure(ctx, name)
				if err != nil {
					continue // deleted between the two looks
				}
				_ = k.produce(topic, 0, "x")
				_ = k.Grow(ctx, topic, topic.Partitions()+1)
				if j%2 == 0 {
					_ = k.Delete(ctx, topic)
				}
			}
		})
	}
	writers.Wait()
	cancel()
	readers.Wait()
	for _, topic := range k.All() {
		if byID, ok := k.LookupID(topic.ID()); !ok || byID != topic {
			t.Errorf("%s is not found by its id", topic.Name())
		}
	}
}

// Changes of different names share commits; one of the same name waits.
func TestChangesOfDifferentNamesShareCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := onDisk(t)
		held := make(chan struct{})
		k.fail = func() error { <-held; return nil }
		k.start()
		before := k.store.Commits()
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() { k.create(simple(fmt.Sprintf("t%d", i))) })
			synctest.Wait()
		}
		ids := make([]kafka.TopicID, 8)
		for i := range ids {
			wg.Go(func() {
				if topic, err := k.Ensure(t.Context(), "same"); err == nil {
					ids[i] = topic.ID()
				}
			})
			synctest.Wait()
		}
		close(held)
		wg.Wait()
		if n := k.store.Commits() - before; n != 2 {
			t.Errorf("%d commits", n)
		}
		if same, _ := k.Lookup("same"); slices.ContainsFunc(ids, func(id kafka.TopicID) bool { return id != same.ID() }) {
			t.Error("auto-creation of one name gave several topics")
		}
		k.stop()
	})
}

func BenchmarkLookup(b *testing.B) {
	k := onDisk(b).start()
	defer k.stop()
	k.create(simple("a"))
	b.ReportAllocs()
	for b.Loop() {
		t, _ := k.Lookup("a")
		_, _ = t.Log(0)
	}
}
