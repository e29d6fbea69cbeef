package brokertest_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
)

var (
	sweepSeed = flag.Uint64("seed", 0, "seed of a sweep; 0: any")
	sweepCut  = flag.Int("cut", 0, "only this cut, or failing operation, of a sweep, with many survivals; 0: all")
	sweepFull = flag.Bool("full", false, "sweeps are complete: each step of longer workloads, some minutes")
)

// sweepSeedOf is the seed of a round of a sweep, which is told.
func sweepSeedOf(t *testing.T, round int) uint64 {
	seed := *sweepSeed + uint64(round)
	if *sweepSeed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	return seed
}

// sweepAgain is the command that repeats one cut.
func sweepAgain(t *testing.T, seed uint64, cut int) string {
	full := ""
	if *sweepFull {
		full = " -full"
	}
	return fmt.Sprintf("go test ./pkg/brokertest -count=1 -run '^%s$' -seed %d -cut %d%s", t.Name(), seed, cut, full)
}
