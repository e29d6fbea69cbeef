package classic

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The next that is due, whatever was added, used and forgotten, as a look at all of them finds it.
func TestTheNextPendingIDIsTheFirstThatIsDue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var p pendingIDs
	model := map[string]time.Time{}
	for i := range 5000 {
		id := fmt.Sprint("m-", rng.IntN(200))
		if rng.IntN(2) == 0 && !p.has(id) {
			at := time.Unix(int64(rng.IntN(1000)), int64(i))
			p.add(id, at)
			model[id] = at
		} else {
			p.remove(id)
			delete(model, id)
		}
		var want time.Time
		for _, at := range model {
			if want.IsZero() || at.Before(want) {
				want = at
			}
		}
		if got := p.next(); !got.at.Equal(want) || !want.IsZero() && !model[got.id].Equal(want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	if len(p.queue) > 5000 {
		t.Error(len(p.queue))
	}
}

// What a heartbeat costs beside ids that were given out and never used.
func BenchmarkHeartbeatBesidePendingIDs(b *testing.B) {
	now := time.Unix(1e9, 0)
	s := New(Config{MaxSize: 10, NewMemberID: func(prefix string) string { return fmt.Sprint(prefix, rand.Uint64()) }}, now)
	for range 50_000 {
		s.Join(now, &JoinRequest{ProtocolType: "consumer", Protocols: []Protocol{{Name: "range"}}, SessionTimeout: time.Minute, RequireKnownMember: true}, 1)
	}
	for b.Loop() {
		_ = s.Heartbeat(now, "nobody", nil, 1)
		s.Deadline()
	}
}
