package group

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/metastore"
	"github.com/dozekafka/doze-kafka/pkg/vfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/crashfs"
	"github.com/dozekafka/doze-kafka/pkg/vfs/faultfs"
)

// pair makes a stable group of two members.
func (k *kit) pair(group string) (a, b *member) {
	k.Helper()
	a = k.alone(group)
	b = k.member(group)
	answer := b.start()
	k.want(a.join(), nil)
	b.last = <-answer
	_, err := a.sync()
	k.want(err, nil)
	_, err = b.sync()
	k.want(err, nil)
	return a, b
}

// GR-6: what was answered, or took effect, is there after a SIGKILL even if meta.db has none of it yet.
func TestNoKillTakesBackWhatWasAnswered(t *testing.T) {
	steps := map[string]func(k *kit) func(after *kit){
		"SyncGroup": func(k *kit) func(*kit) {
			a, b := k.pair("g")
			return func(after *kit) {
				d, _ := after.Describe("g")
				if d.State != "Stable" || len(d.Members) != 2 || string(d.Members[0].Assignment) != a.id || string(d.Members[1].Assignment) != b.id {
					k.Errorf("%+v", d)
				}
				a.k, b.k = after, after
				k.want(errors.Join(a.heartbeat(), b.heartbeat(), a.commitAs(), b.commitAs()), nil)
			}
		},
		"LeaveGroup": func(k *kit) func(*kit) {
			a, b := k.pair("g")
			k.want(a.leave(), nil)
			return func(after *kit) {
				a.k, b.k = after, after
				k.want(a.commitAs(), kerr.UnknownMemberID)
				k.want(b.commitAs(), nil) // what it has consumed before it joins again
				k.want(b.heartbeat(), kerr.RebalanceInProgress)
				k.want(b.join(), nil)
				if b.last.Generation != 3 || len(b.last.Members) != 1 {
					k.Errorf("%+v", b.last)
				}
			}
		},
		"LeaveGroup of the last": func(k *kit) func(*kit) {
			a := k.alone("g")
			k.want(a.leave(), nil)
			return func(after *kit) {
				if a.k = after; after.state("g") != "Empty" || after.groups["g"].state.Generation() != 2 {
					k.Error(after.state("g"))
				}
				k.want(a.commitAs(), kerr.UnknownMemberID)
			}
		},
		"end of a session": func(k *kit) func(*kit) {
			a, b := k.pair("g")
			pass(6 * time.Second)
			k.want(b.heartbeat(), nil)
			pass(6 * time.Second)
			k.want(b.heartbeat(), kerr.RebalanceInProgress)
			return func(after *kit) {
				a.k, b.k = after, after
				k.want(a.commitAs(), kerr.UnknownMemberID)
				k.want(b.heartbeat(), kerr.RebalanceInProgress)
			}
		},
		"static member replaced": func(k *kit) func(*kit) {
			instance := "i"
			m := k.member("g")
			m.last = <-m.offering(&instance, "range")
			m.id = m.last.MemberID
			_, err := m.sync()
			k.want(err, nil)
			old := m.id
			m.id = ""
			m.last = <-m.offering(&instance, "range")
			m.id = m.last.MemberID
			return func(after *kit) {
				k.want(after.Heartbeat(&HeartbeatRequest{Group: "g", MemberID: old, InstanceID: &instance, Generation: 1}), kerr.FencedInstanceID)
				k.want(after.Heartbeat(&HeartbeatRequest{Group: "g", MemberID: m.id, InstanceID: &instance, Generation: 1}), nil)
				if d, _ := after.Describe("g"); string(d.Members[0].Assignment) != old { // named after the id of before
					k.Errorf("%+v", d)
				}
			}
		},
	}
	for name, step := range steps {
		for kills := range 3 { // the later ones while the start before has not written it
			t.Run(fmt.Sprint(name, " ", kills), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					k := newKit(t)
					k.failing(full)
					check := step(k)
					for range kills + 1 {
						disk, path := k.disk.KillClone(), t.TempDir()+"/meta.db"
						k.copyTo(path)
						k = k.openOn(path, disk, full)
					}
					k.failing(func() error { return nil })
					check(k)
				})
			})
		}
	}
}

// openOn is from with a store that fails from the start.
func (k *kit) openOn(path string, disk *crashfs.FS, fail func() error) *kit {
	after := &kit{TB: k.TB, path: path, disk: disk, epoch: k.epoch, settings: k.settings, clock: k.clock, topics: k.topics, unclean: true}
	after.failing(fail)
	after.openStore()
	after.open()
	k.Cleanup(after.close)
	return after
}

// GR-6: nobody is answered before what was decided is in the file.
func TestTheJournalIsWrittenBeforeTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		a := k.alone("g")
		b := k.member("g")
		joining := b.start()
		var parked []func() int
		writes := 0
		k.fault.OnOp(func(op vfs.Op) {
			if op.Kind != vfs.OpWrite {
				return
			}
			writes++
			for _, answers := range parked {
				if answers() > 0 {
					t.Error("answered already")
				}
			}
		})
		parked = append(parked, func() int { return len(joining) })
		k.want(a.join(), nil)
		if parked = nil; writes != 1 {
			t.Errorf("%d writes", writes)
		}
		b.last = <-joining
		synced := b.startSync()
		parked = append(parked, func() int { return len(synced) })
		_, err := a.sync()
		k.want(err, nil)
		if writes != 2 {
			t.Errorf("%d writes", writes)
		}
		parked = nil
		k.fault.OnOp(nil)
	})
}

// GR-6: a power cut leaves any part of the journal, of what it is now or was
// before. No group is ever older than its row, and none that was deleted comes back.
func TestATornJournalBeatsNoNewerRow(t *testing.T) {
	type cut struct {
		path   string
		disk   *crashfs.FS
		exists map[string]bool // what clients were told is durable; a name in flux is not there
	}
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		var mu sync.Mutex // guards cuts, exists
		var cuts []cut
		exists := map[string]bool{}
		snapshot := func() {
			mu.Lock()
			defer mu.Unlock()
			c := cut{path: fmt.Sprint(t.TempDir(), "/meta.db"), disk: k.disk.KillClone(), exists: map[string]bool{}}
			k.copyTo(c.path)
			for g, is := range exists {
				c.exists[g] = is
			}
			cuts = append(cuts, c)
		}
		_, other := k.pair("waits")
		k.want(other.leave(), nil) // from here on the group is in a rebalance, and the journal alone knows
		k.failing(func() error { snapshot(); return nil })
		k.disk.OnOp(func(vfs.Op) { snapshot() })
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range 30 {
			name := fmt.Sprint("g", rng.IntN(3))
			mu.Lock()
			is := exists[name]
			delete(exists, name)
			mu.Unlock()
			if is {
				k.want(k.Delete(t.Context(), []string{name})[0], nil)
			} else {
				m := k.alone(name)
				if i%3 == 0 {
					synctest.Wait()
				}
				k.want(m.leave(), nil)
				if i%2 == 0 {
					synctest.Wait()
				}
			}
			mu.Lock()
			exists[name] = !is
			mu.Unlock()
		}
		k.disk.OnOp(nil)
		for i, c := range cuts {
			for _, survival := range []crashfs.Survival{crashfs.Random(uint64(2 * i)), crashfs.Random(uint64(2*i + 1))} {
				checkCut(k, c.path, c.disk.CrashClone(survival), c.exists, fmt.Sprintf("cut %d, %v", i, survival))
			}
			if waits := checkCut(k, c.path, c.disk, c.exists, fmt.Sprintf("kill %d", i)); waits != "PreparingRebalance" {
				t.Errorf("kill %d: the group in a rebalance is %s: the deletion of another has forgotten it", i, waits)
			}
		}
	})
}

// checkCut starts on what is left, and compares with what meta.db had.
func checkCut(k *kit, from string, disk *crashfs.FS, exists map[string]bool, what string) (waits string) {
	k.Helper()
	path := k.TempDir() + "/meta.db"
	b, err := os.ReadFile(from)
	k.want(err, nil)
	k.want(os.WriteFile(path, b, 0o600), nil)
	after := &kit{TB: k.TB, path: path, disk: disk, epoch: k.epoch, settings: k.settings, clock: k.clock, topics: k.topics, unclean: true}
	after.openStore()
	rows, _, err := (&Coordinator{o: Options{Store: after.store}}).rows()
	k.want(err, nil)
	after.open()
	defer after.close()
	for name, row := range rows {
		if g := after.groups[name]; g == nil || g.last < row.Version || g.state.Generation() < row.Generation {
			k.Errorf("%s: group %s is older than its row of version %x", what, name, row.Version)
		}
	}
	for name, is := range exists {
		if _, there := after.groups[name]; !is && there {
			k.Errorf("%s: group %s is back", what, name)
		}
	}
	if b, err := vfs.ReadFile(disk, "/"+journalName); !errors.Is(err, fs.ErrNotExist) {
		k.Errorf("%s: a journal of %d bytes after the start: %v", what, len(b), err)
	}
	return after.state("waits")
}

// GR-6: a full disk stops no group; it is told once. Once there is room the
// journal has everything that meta.db has not.
func TestGroupsGoOnWithoutAJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		var log bytes.Buffer
		k.journal.log = slog.New(slog.NewTextHandler(&log, nil))
		k.failing(full)
		k.fault.SetFull(true)
		a := k.alone("a")
		for i := range 5 {
			k.want(k.alone(fmt.Sprint("g", i)).leave(), nil)
		}
		k.want(a.heartbeat(), nil)
		if n := strings.Count(log.String(), "level=WARN"); n != 1 {
			t.Errorf("%d warnings: %s", n, &log)
		}
		k.fault.SetFull(false)
		b := k.alone("b")
		if !strings.Contains(log.String(), "written again") {
			t.Error(&log)
		}
		k = k.killed()
		a.k, b.k = k, k
		k.want(errors.Join(a.heartbeat(), b.heartbeat()), nil)
		if k.state("g3") != "Empty" {
			t.Error(k.state("g3"))
		}
	})
}

// GR-6: an operation of the journal's disk that fails, whichever it is, costs a group nothing while the broker runs.
func TestGroupsOutliveAnyFaultOfTheJournal(t *testing.T) {
	for n := 1; ; n++ {
		hit := false
		synctest.Test(t, func(t *testing.T) {
			k := newKit(t)
			fault := k.fault.Fail(faultfs.Rule{Nth: n, Err: syscall.EIO})
			a, b := k.pair("g")
			k.want(a.leave(), nil)
			k.want(b.join(), nil)
			_, err := b.sync()
			k.want(err, nil)
			synctest.Wait()
			k = k.killed()
			b.k = k
			k.want(b.heartbeat(), nil)
			hit = fault.Hits() > 0
		})
		if !hit {
			break
		}
	}
}

// ST-4: a stop in order leaves no journal, unless meta.db could not be written: then the next start has it from there.
func TestAStopInOrderLeavesNoJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		m := k.alone("g")
		if _, err := k.disk.Stat("/" + journalName); err != nil {
			t.Error(err)
		}
		k.restart()
		if _, err := k.disk.Stat("/" + journalName); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		k.failing(full)
		k.want(m.leave(), nil)
		if err := k.Close(); err == nil {
			t.Error("a stop that lost something")
		}
		k.failing(func() error { return nil })
		k.want(k.store.Close(), nil)
		k.openStore()
		k.open()
		if k.state("g") != "Empty" {
			t.Error(k.state("g"))
		}
	})
}

// The file stays small while meta.db keeps up, and holds each group once or twice while it does not.
func TestTheJournalIsBounded(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		k := newKit(t)
		if stuck {
			k.failing(full)
		}
		assignment := bytes.Repeat([]byte("a"), 100<<10)
		var most int64
		for i := range 300 {
			g := k.journal.add(state(fmt.Sprint("g", i%3), 0, assignment))
			k.journal.await(g.Version)
			if !stuck {
				k.journal.settled(g.Name, g.Version)
			}
			most = max(most, k.journal.size)
		}
		if bound := int64(rewriteAfter + 200<<10); most > bound {
			t.Errorf("stuck %v: %d bytes", stuck, most)
		}
		left, err := k.journal.read()
		k.want(err, nil)
		got := map[string]uint64{}
		for _, g := range left {
			got[g.Name] = max(got[g.Name], g.Version)
		}
		for name, u := range k.journal.pending {
			if got[name] != u.Version {
				t.Errorf("%s: %x, want %x", name, got[name], u.Version)
			}
		}
		k.journal.pending = nil
	}
}

// A power cut brings the journal back that a start had read and removed: it counts no more.
func TestAJournalThatWasReadDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t)
		k.failing(full)
		k.want(k.alone("g").leave(), nil)
		was, err := vfs.ReadFile(k.disk, "/"+journalName)
		k.want(err, nil)
		k = k.cutWith(was)
		if k.state("g") != "Empty" {
			t.Fatal(k.state("g"))
		}
		k.want(k.Delete(t.Context(), []string{"g"})[0], nil)
		if k = k.cutWith(was); k.state("g") != "Dead" {
			t.Error(k.state("g"))
		}
	})
}

// cutWith is what is there after a power cut that leaves such a journal.
func (k *kit) cutWith(journal []byte) *kit {
	k.Helper()
	disk := crashfs.New()
	k.want(vfs.WriteFileSync(disk, "/"+journalName, journal, 0o600), nil)
	path := k.TempDir() + "/meta.db"
	k.copyTo(path)
	return k.from(path, disk)
}

// What a meta.db that was lost had beside it is of no use to another one.
func TestAJournalOfAnotherMetaDBIsIgnored(t *testing.T) {
	k := newKit(t)
	newer := k.newer(nil, 0, []metastore.Group{{Name: "a", Version: baseVersion(k.epoch) + 1}, {Name: "b", Version: baseVersion(k.epoch) - 1}})
	if _, b := newer["b"]; !b || len(newer) != 1 {
		t.Errorf("%v", newer)
	}
}

func BenchmarkJournal(b *testing.B) {
	for _, members := range []int{1, 50} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			j := newJournal(vfs.OS, b.TempDir(), 1, slog.New(slog.DiscardHandler))
			g := state("g", 0, bytes.Repeat([]byte("a"), 100))
			for range members - 1 {
				g.Members = append(g.Members, g.Members[0])
			}
			b.ReportAllocs()
			for b.Loop() {
				was := j.add(g)
				j.await(was.Version)
				j.settled(g.Name, was.Version)
			}
			j.close(false)
		})
	}
}
