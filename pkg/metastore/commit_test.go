package metastore

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/dozekafka/doze-kafka/pkg/kafka"
)

var errTest = errors.New("test")

func names(t testing.TB, s *Store) (all []string) {
	t.Helper()
	err := s.View(func(tx *Tx) error {
		for topic, err := range tx.Topics() {
			if err != nil {
				return err
			}
			all = append(all, topic.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func putTopic(name string) func(*Tx) error {
	return func(tx *Tx) error { return tx.PutTopic(Topic{Name: name, ID: kafka.NewTopicID(), Partitions: 1}) }
}

// What queues while a commit runs is committed together.
func TestConcurrentUpdatesShareACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		s := open(t, Options{Path: newPath(t), Fail: func() error { <-held; return nil }})
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() { update(t, s, putTopic(string(rune('A'+i)))) })
			synctest.Wait() // the first is in its commit, the others queue
		}
		close(held)
		wg.Wait()
		if n := s.Commits(); n != 2 {
			t.Errorf("%d commits", n)
		}
		if n := len(names(t, s)); n != 32 {
			t.Errorf("%d topics", n)
		}
	})
}

// An error of a closure takes back its changes alone, whatever it did.
func TestAFailingUpdateTakesBackItsChangesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		s := open(t, Options{Path: newPath(t), Fail: func() error { <-held; return nil }})
		var wg sync.WaitGroup
		wg.Go(func() { update(t, s, putTopic("first")) })
		synctest.Wait()
		wg.Go(func() { update(t, s, putTopic("good-1")) })
		synctest.Wait()
		wg.Go(func() {
			err := s.Update(t.Context(), func(tx *Tx) error {
				err := errors.Join(putTopic("bad")(tx), putTopic("good-1")(tx), putTopic("bad")(tx), tx.PutClusterID("bad"))
				for topic, bad := range tx.Topics() {
					err = errors.Join(err, bad, tx.DropTopic(topic.Name, topic.ID))
					break
				}
				return errors.Join(err, errTest)
			})
			if !errors.Is(err, errTest) || errors.Is(err, kerr.KafkaStorageError) {
				t.Errorf("%v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			defer func() {
				if r, _ := recover().(error); !errors.Is(r, errTest) {
					t.Error("the panic did not reach its own caller")
				}
			}()
			_ = s.Update(t.Context(), func(tx *Tx) error { _ = putTopic("bad")(tx); panic(errTest) })
		})
		synctest.Wait()
		wg.Go(func() { update(t, s, putTopic("good-2")) })
		synctest.Wait()
		close(held)
		wg.Wait()
		if got := names(t, s); !slices.Equal(got, []string{"first", "good-1", "good-2"}) || clusterID(t, s) != "" {
			t.Errorf("%q, %q", got, clusterID(t, s))
		}
		if n := s.Commits(); n != 2 {
			t.Errorf("%d commits", n)
		}
	})
}

func TestAnUpdateThatChangesNothingIsNotCommitted(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	update(t, s, func(*Tx) error { return nil })
	if n := s.Commits(); n != 0 {
		t.Errorf("%d commits", n)
	}
}

func TestAnUpdateLeavesTheQueueWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		s := open(t, Options{Path: newPath(t), Fail: func() error { <-held; return nil }})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { update(t, s, putTopic("first")) })
		synctest.Wait()
		wg.Go(func() {
			if err := s.Update(ctx, putTopic("left")); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(held)
		wg.Wait()
		if got := names(t, s); !slices.Equal(got, []string{"first"}) {
			t.Errorf("%q", got)
		}
	})
}

// ST-64: a failed commit stops all further ones until the store is opened again; reads go on.
func TestAFailedCommitStopsAllFurtherOnes(t *testing.T) {
	path := newPath(t)
	var fail error
	s := open(t, Options{Path: path, Fail: func() error { return fail }})
	update(t, s, putClusterID("one"))
	fail = &fs.PathError{Op: "sync", Path: path, Err: syscall.EIO}
	for range 2 {
		err := s.Update(t.Context(), putClusterID("two"))
		if !errors.Is(err, kerr.KafkaStorageError) || !errors.Is(err, syscall.EIO) {
			t.Errorf("%v", err)
		}
		fail = nil
	}
	if got := clusterID(t, s); got != "one" {
		t.Errorf("readers see %q", got)
	}
	// ST-50: a stop after it is not clean.
	if err := s.Close(); !errors.Is(err, kerr.KafkaStorageError) {
		t.Fatal(err)
	}
	update(t, open(t, Options{Path: path}), putClusterID("three"))
}

// ST-64: ENOSPC from a write resumes when there is room, from an fsync it never does.
func TestAFullDiskIsResumable(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		path := newPath(t)
		var fail error = &fs.PathError{Op: op, Path: path, Err: syscall.ENOSPC}
		s := open(t, Options{Path: path, Fail: func() error { return fail }})
		err := s.Update(t.Context(), putClusterID("one"))
		if !errors.Is(err, kerr.KafkaStorageError) || clusterID(t, s) != "" {
			t.Errorf("%s: %v, %q", op, err, clusterID(t, s))
		}
		fail = nil
		if err = s.Update(t.Context(), putClusterID("two")); (err == nil) != (op == "write") {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// A store under load: every update that was acknowledged is there.
func TestConcurrentUpdatesAreAllKept(t *testing.T) {
	path := newPath(t)
	s := open(t, Options{Path: path})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 20 {
				_ = s.Update(t.Context(), func(tx *Tx) error {
					err := putTopic(string(rune('A'+i)) + string(rune('a'+j)))(tx)
					if j%5 == 4 {
						return errTest
					}
					return err
				})
			}
		})
	}
	wg.Wait()
	if n := len(names(t, s)); n != 16*16 {
		t.Errorf("%d topics", n)
	}
	if n := s.Commits(); n >= 16*20 {
		t.Errorf("%d commits for %d updates", n, 16*20)
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, callers := range []int{1, 32} {
		b.Run("callers="+string(rune('0'+callers/10))+string(rune('0'+callers%10)), func(b *testing.B) {
			s := open(b, Options{Path: newPath(b)})
			var next sync.Mutex
			var wg sync.WaitGroup
			left := 0
			b.ResetTimer()
			left = b.N
			for range callers {
				wg.Go(func() {
					for {
						next.Lock()
						left--
						done := left < 0
						next.Unlock()
						if done {
							return
						}
						update(b, s, func(tx *Tx) error { _, err := tx.ReserveProducerIDs(1); return err })
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(s.Commits())/float64(b.N), "commits/op")
		})
	}
}

// Submit does not wait, and keeps the order in which it was called.
func TestSubmitQueuesInOrder(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	var order []int // written by the committer alone
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Add(1)
		s.Submit(func(tx *Tx) error {
			order = append(order, i)
			if i == 7 {
				return errors.New("seven")
			}
			return tx.PutClusterID(strconv.Itoa(i))
		}, func(err error) {
			if (err != nil) != (i == 7) {
				t.Errorf("%d: %v", i, err)
			}
			wg.Done()
		})
	}
	update(t, s, func(*Tx) error { return nil })
	wg.Wait()
	if len(order) != 50 || !slices.IsSorted(order) {
		t.Errorf("%v", order)
	}
	if got := clusterID(t, s); got != "49" {
		t.Errorf("cluster id %q", got)
	}
	_ = s.Close()
	refused := make(chan error)
	s.Submit(func(*Tx) error { return nil }, func(err error) { refused <- err })
	if err := <-refused; !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
}
