package crashfs

import (
	"fmt"
	"math/rand/v2"
)

// A Survival decides what a power cut leaves of what was not synced. The same
// value leaves the same each time.
type Survival struct {
	mode mode
	seed uint64
}

type mode uint8

const (
	random mode = iota
	loseAll
	keepAll
)

// The two ends of what may survive.
var (
	LoseUnsynced = Survival{mode: loseAll} // nothing that was not synced
	KeepUnsynced = Survival{mode: keepAll} // everything, as after a kill, and durable
)

// Random decides by the seed: each file and directory keeps everything,
// nothing, a first part, or any selection of what was not synced.
func Random(seed uint64) Survival { return Survival{seed: seed} }

// Survivals returns n of them for a sweep: the two ends, and random ones that
// are made from seed. A failed check prints the one that it failed for.
func Survivals(seed uint64, n int) []Survival {
	all := []Survival{LoseUnsynced, KeepUnsynced}
	for i := len(all); i < n; i++ {
		all = append(all, Random(seed<<16+uint64(i)))
	}
	return all[:n]
}

// String is the Go expression for the value.
func (s Survival) String() string {
	switch s.mode {
	case loseAll:
		return "crashfs.LoseUnsynced"
	case keepAll:
		return "crashfs.KeepUnsynced"
	default:
		return fmt.Sprintf("crashfs.Random(%d)", s.seed)
	}
}

// CrashClone returns the disk as it is after the power was cut now and came
// back: another disk, on which everything is durable, no lock is held and no
// stop or hook is set. This disk carries on as if nothing had happened.
func (d *FS) CrashClone(s Survival) *FS {
	c := d.KillClone()
	c.root.settle(survivor{s.mode, rand.New(rand.NewPCG(s.seed, 0))}, map[*inode]bool{})
	return c
}

// KillClone returns the disk as another process finds it after this one was
// killed now: a copy on which everything written is there, what was not synced
// still is not, no lock is held, and no stop or hook is set.
func (d *FS) KillClone() *FS {
	d.mu.RLock()
	defer d.mu.RUnlock()
	c := New()
	c.root = d.root.clone(map[*inode]*inode{})
	return c
}

// A survivor is one power cut in progress.
type survivor struct {
	mode mode
	rng  *rand.Rand
}

// fate decides how one file or directory fares.
func (s survivor) fate() fate {
	f := fate{mode: s.mode, rng: s.rng, prefix: -1}
	if s.mode == random {
		switch s.rng.IntN(5) {
		case 0:
			f.mode = loseAll
		case 1:
			f.mode = keepAll
		case 2:
			f.prefix = s.rng.IntN(8)
		}
	}
	return f
}

// A fate is what happens to the unsynced parts of one file or directory.
type fate struct {
	mode mode
	rng  *rand.Rand
	// prefix is how many parts more survive, in their order, before the rest
	// is lost; negative if each is decided on its own.
	prefix int
}

// outcome is what is left of a change to a directory.
type outcome uint8

const (
	lost   outcome = iota
	kept           //
	linked         // a rename that made the new name and has not removed the old
)

// survives decides one part.
func (f *fate) survives() bool {
	switch {
	case f.mode != random:
		return f.mode == keepAll
	case f.prefix < 0:
		return f.rng.IntN(2) == 0
	case f.prefix == 0:
		return false
	default:
		f.prefix--
		return true
	}
}

// change decides one operation on a directory.
func (f *fate) change(c change) outcome {
	if !f.survives() {
		return lost
	}
	if f.mode == random && c.from != "" && f.rng.IntN(4) == 0 {
		return linked
	}
	return kept
}

// lost is the fate of what a failed sync has dropped: nothing of it is on the
// disk, or, in half of the random cuts, any selection.
func (f *fate) lost() fate {
	l := fate{mode: loseAll, rng: f.rng, prefix: -1}
	if f.mode == random && f.rng.IntN(2) == 0 {
		l.mode = random
	}
	return l
}

// sector decides which state a sector has: nil for the last one, else one of
// the earlier ones, of which the first is the one on the disk.
func (f *fate) sector(earlier [][]byte) []byte {
	if !f.survives() {
		return earlier[0]
	}
	if between := earlier[1:]; f.mode == random && len(between) > 0 && f.rng.IntN(2) == 0 {
		return between[f.rng.IntN(len(between))]
	}
	return nil
}

// size decides the length: the durable one, the last one, or one between the
// shortest and the longest that the file had since.
func (f *fate) size(durable, last, shortest, longest int64) int64 {
	switch f.mode {
	case loseAll:
		return durable
	case keepAll:
		return last
	}
	switch f.rng.IntN(3) {
	case 0:
		return durable
	case 1:
		return last
	default:
		return shortest + f.rng.Int64N(longest-shortest+1)
	}
}
