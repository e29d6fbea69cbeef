package topic

import (
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/config"
)

// FX-5: topics at start are made or grow, never shrink, and keep their configs.
func TestSeedMakesAndGrowsAndNeverShrinks(t *testing.T) {
	k := onDisk(t).start()
	defer k.stop()
	seed := func(v string) {
		t.Helper()
		k.settings.Topics = v
		seeds, err := config.ParseTopics(k.settings)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Seed(t.Context(), seeds); err != nil {
			t.Fatal(err)
		}
	}
	seed("orders:3,plain,audit:1:cleanup.policy=compact,delete")
	before := k.store.Commits()
	seed("orders:5,new:2,audit:1:cleanup.policy=delete")
	if k.logged.has("never shrinks") {
		t.Error("a warning without a reason")
	}
	seed("orders:2,plain")
	if !k.logged.has("never shrinks") {
		t.Error("no warning")
	}
	if n := k.store.Commits() - before; n != 2 {
		t.Errorf("%d commits", n)
	}
	for name, want := range map[string]int32{"orders": 5, "audit": 1, "plain": 1, "new": 2} {
		if topic, ok := k.Lookup(name); !ok || topic.Partitions() != want {
			t.Errorf("%s: %v", name, topic)
		}
	}
	audit, _ := k.Lookup("audit")
	if got := audit.Overrides()["cleanup.policy"]; got != "compact,delete" {
		t.Errorf("configs were changed: %s", got)
	}
}
