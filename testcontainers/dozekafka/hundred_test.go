package dozekafka_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

var runs = flag.Int("runs", 5, "how often TestFirstOperationsNeedNoRetry starts a container")

// FX-21, FX-40, FX-41: over and over, the first produce and the first consume of a group after
// Run succeed in clients that try each thing once. The figures are printed.
func TestFirstOperationsNeedNoRetry(t *testing.T) {
	needDocker(t)
	var started, produced, consumed, all []time.Duration
	failed := 0
	for i := range *runs {
		ok := t.Run(fmt.Sprint(i), func(t *testing.T) {
			began := time.Now()
			c, err := start(t.Context())
			testcontainers.CleanupContainer(t, c)
			if err != nil {
				t.Fatal(err)
			}
			addrs := brokers(t, c)
			up := time.Now()
			produce(t, addrs, "first", "a")
			written := time.Now()
			consume(t, addrs, "g", "first", "a")
			done := time.Now()
			started, produced = append(started, up.Sub(began)), append(produced, written.Sub(up))
			consumed, all = append(consumed, done.Sub(written)), append(all, done.Sub(began))
		})
		if !ok {
			failed++
		}
	}
	t.Logf("%d runs, %d failed", *runs, failed)
	for _, f := range []struct {
		what  string
		times []time.Duration
	}{{"Run", started}, {"first produce", produced}, {"first consume of a group", consumed}, {"all three", all}} {
		if slices.Sort(f.times); len(f.times) > 0 {
			t.Logf("%-25s median %v, p99 %v", f.what, quantile(f.times, 50), quantile(f.times, 99))
		}
	}
}

func quantile(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)*percent+99)/100-1].Round(100 * time.Microsecond)
}
