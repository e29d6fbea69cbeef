package metastore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"github.com/dozekafka/doze-kafka/pkg/vfs"
)

// open opens a store that is closed with the test.
func open(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // some tests close it first
	return s
}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "meta.db") }

func update(t testing.TB, s *Store, fn func(*Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func clusterID(t testing.TB, s *Store) (id string) {
	t.Helper()
	if err := s.View(func(tx *Tx) error { id = tx.ClusterID(); return nil }); err != nil {
		t.Fatal(err)
	}
	return id
}

func putClusterID(id string) func(*Tx) error {
	return func(tx *Tx) error { return tx.PutClusterID(id) }
}

// ST-2: what was committed is there after a restart; bbolt syncs (ST-70).
func TestAStoreKeepsWhatWasCommitted(t *testing.T) {
	path := newPath(t)
	s := open(t, Options{Path: path})
	if s.db.NoSync || s.db.NoGrowSync {
		t.Error("bbolt does not sync")
	}
	update(t, s, putClusterID("one"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), putClusterID("two")); !errors.Is(err, errClosed) {
		t.Errorf("Update after Close: %v", err)
	}
	if got := clusterID(t, open(t, Options{Path: path})); got != "one" {
		t.Errorf("cluster id %q", got)
	}
}

// A crash while the file is made leaves nothing that a start trips over.
func TestAHalfMadeFileIsMadeAgain(t *testing.T) {
	path := newPath(t)
	if err := os.WriteFile(path+".new", []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, Options{Path: path})
	if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the half-made file: %v", err)
	}
}

// ST-3: a locked meta.db is an error after 1 s, not a hang.
func TestALockedFileIsAnErrorAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := newPath(t)
		open(t, Options{Path: path})
		begin := time.Now()
		_, err := Open(Options{Path: path})
		if !errors.Is(err, vfs.ErrLocked) || !strings.HasPrefix(err.Error(), path+": another broker has it open") {
			t.Errorf("%v", err)
		}
		if d := time.Since(begin); d < 900*time.Millisecond || d > 1100*time.Millisecond {
			t.Errorf("after %v", d)
		}
	})
}

// ST-4: a newer format is refused in one line; so is what is not ours.
func TestWhatIsNotOursIsRefused(t *testing.T) {
	for want, prepare := range map[string]func(path string){
		"format version 2 is newer than this broker's, which is 1": func(path string) {
			s := open(t, Options{Path: path})
			update(t, s, func(tx *Tx) error { return tx.put(bucketMeta, keyFormat, binary.BigEndian.AppendUint32(nil, 2)) })
			_ = s.Close()
		},
		"not a meta.db of this broker (it has no meta)": func(path string) {
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = db.Close()
		},
		"not a meta.db, or a damaged one": func(path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("x", 20000)), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		path := newPath(t)
		prepare(path)
		_, err := Open(Options{Path: path})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A file that is shorter than it says, or has a page of garbage, is refused in
// one line: bbolt by itself ends the process, or panics.
func TestADamagedFileIsRefusedInOneLine(t *testing.T) {
	path := newPath(t)
	s := open(t, Options{Path: path})
	for i := range 50 {
		update(t, s, func(tx *Tx) error {
			return tx.PutTopic(Topic{Name: strconv.Itoa(i), Partitions: 1, Configs: map[string]string{"k": strings.Repeat("v", 500)}})
		})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	used := 40 * page // the rest was never written
	refused := 0
	try := func(what string, content []byte) {
		path := newPath(t)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		start := func(tx *Tx) error { _, err := tx.NextBrokerEpoch(); return err }
		s, err := Open(Options{Path: path, Start: start})
		if err == nil { // the page was a free one
			if err := s.Close(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			return
		}
		refused++
		if text := err.Error(); !strings.Contains(text, path) || strings.Contains(text, "\n") {
			t.Errorf("%s: %q", what, text)
		}
	}
	for size := page / 2; size < used; size += page {
		try(fmt.Sprintf("cut to %d of %d bytes", size, len(whole)), whole[:size])
	}
	for pos := 2 * page; pos < used; pos += page {
		garbage := slices.Clone(whole)
		for i := range page {
			garbage[pos+i] = byte(i*7 + 3)
		}
		try(fmt.Sprintf("garbage at %d of %d bytes", pos, len(whole)), garbage)
	}
	if refused < 20 {
		t.Errorf("only %d of the damaged files were refused", refused)
	}
}

// ST-70: a copy holds what was committed, and nothing of a transaction under way.
func TestACopyHoldsTheCommittedState(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	update(t, s, putClusterID("committed"))
	path := newPath(t)
	update(t, s, func(tx *Tx) error {
		if err := tx.PutClusterID("under way"); err != nil {
			return err
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		_, err = s.WriteTo(f)
		return errors.Join(err, f.Close())
	})
	if got := clusterID(t, open(t, Options{Path: path})); got != "committed" {
		t.Errorf("the copy has %q", got)
	}
}

// Start is run once in each Open, in the new store and in the old one; without it there is no store.
func TestStartIsRunBeforeOpenReturns(t *testing.T) {
	path := newPath(t)
	if _, err := Open(Options{Path: path, Start: func(*Tx) error { return errTest }}); !errors.Is(err, errTest) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a store is there although its start failed: %v", err)
	}
	for want := range int32(2) {
		s := open(t, Options{Path: path, Start: func(tx *Tx) error {
			epoch, err := tx.NextBrokerEpoch()
			if epoch != want {
				t.Errorf("epoch %d, want %d", epoch, want)
			}
			return err
		}})
		_ = s.Close()
	}
}

func TestAViewCannotChangeAnything(t *testing.T) {
	s := open(t, Options{Path: newPath(t)})
	if err := s.View(putClusterID("x")); !errors.Is(err, errReadOnly) {
		t.Errorf("%v", err)
	}
}

func TestCloseWaitsForTheLastCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		s := open(t, Options{Path: newPath(t), Fail: func() error { <-held; return nil }})
		closed := make(chan error, 1)
		go func() { _ = s.Update(context.Background(), putClusterID("x")) }()
		synctest.Wait()
		go func() { closed <- s.Close() }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Errorf("Close ended before the commit: %v", err)
		default:
		}
		close(held)
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// PF-1: a start on an empty directory.
func BenchmarkOpenFresh(b *testing.B) {
	dir, n := b.TempDir(), 0
	for b.Loop() {
		n++
		s, err := Open(Options{Path: filepath.Join(dir, strconv.Itoa(n)), Start: func(tx *Tx) error {
			_, err := tx.NextBrokerEpoch()
			return errors.Join(err, tx.PutClusterID("x"))
		}})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := errors.Join(err, s.Close(), os.Remove(s.o.Path)); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
