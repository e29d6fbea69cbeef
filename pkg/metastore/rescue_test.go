package metastore

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

// failCommit makes a store whose last commit has failed.
func failCommit(t *testing.T, path string) {
	t.Helper()
	var failing error
	s := open(t, Options{Path: path, Fail: func() error { return failing }})
	update(t, s, putClusterID("before"))
	failing = syscall.EIO
	if err := s.Update(t.Context(), putClusterID("after")); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	_ = s.Close() // it tells of the failed commit
}

// ST-64: what a failed commit may have left on no disk is written anew by the next Open, once.
func TestTheFileOfAFailedCommitIsWrittenAnew(t *testing.T) {
	path := newPath(t)
	failCommit(t, path)
	for _, anew := range []bool{true, false} {
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, Options{Path: path})
		after, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if same := os.SameFile(before, after); same == anew {
			t.Errorf("the file is the same one: %v", same)
		}
		if got := clusterID(t, s); got != "before" {
			t.Errorf("cluster id %q", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
