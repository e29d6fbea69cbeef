package metastore

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tracedStore names the file that the traced process makes a store at.
const tracedStore = "METASTORE_TRACED"

// TestTheTracedProcess is that of the next test: it makes a store, and commits twice.
func TestTheTracedProcess(t *testing.T) {
	path := os.Getenv(tracedStore)
	if path == "" {
		t.Skip("it is run by another test")
	}
	s, err := Open(Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		update(t, s, putClusterID(fmt.Sprint(i)))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// traced is a system call of interest, in strace's words.
var traced = regexp.MustCompile(`(?m)\b(fsync|fdatasync|pwrite64|rename|renameat|renameat2)\((.*?)(?:\)| <unfinished)`)

// ST-2, ST-70: seen from outside, by strace: a new file is synced before it has its name, its name is synced, and each commit syncs
// its pages, then the page that makes them seen.
func TestEveryCommitIsSynced(t *testing.T) {
	calls := trace(t, newPath(t))
	commit := []string{"pwrite64 meta.db", "sync meta.db", "pwrite64 meta.db", "sync meta.db"}
	want := slices.Concat([]string{"pwrite64 new", "sync new", "rename", "sync directory"}, commit, commit)
	// bbolt syncs the empty file that it has made, too.
	if at := slices.Index(calls, "rename"); at < 2 || !slices.Equal(calls[at-2:], want) {
		t.Errorf("the calls are\n%s", strings.Join(calls, "\n"))
	}
}

// ST-64: after a failed commit the file is written anew and synced before it has its name, and its name is synced.
func TestAFileOfAFailedCommitIsWrittenAnewDurably(t *testing.T) {
	path := newPath(t)
	failCommit(t, path)
	calls := trace(t, path)
	want := []string{"pwrite64 new", "sync new", "rename", "sync directory", "pwrite64 meta.db"}
	if len(calls) < len(want) || !slices.Equal(calls[:len(want)], want) {
		t.Errorf("the calls are\n%s", strings.Join(calls, "\n"))
	}
}

// trace is what TestTheTracedProcess does to a store, in short: writes, renames and syncs, without what is repeated at once.
func trace(t *testing.T, path string) (calls []string) {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	out := filepath.Join(t.TempDir(), "trace")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), strace, "-f", "-y", "-o", out, "-e", "trace=fsync,fdatasync,pwrite64,rename,renameat,renameat2",
		self, "-test.run=^TestTheTracedProcess$")
	cmd.Env = append(os.Environ(), tracedStore+"="+path)
	if said, err := cmd.CombinedOutput(); err != nil {
		if os.Getenv("CI") != "true" && bytes.Contains(said, []byte("ptrace")) {
			t.Skipf("strace may not trace: %s", said)
		}
		t.Fatalf("%v: %s", err, said)
	}
	said, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range traced.FindAllStringSubmatch(string(said), -1) {
		call := map[bool]string{true: "sync", false: m[1]}[strings.HasSuffix(m[1], "sync")]
		switch {
		case strings.HasPrefix(m[1], "rename"):
			call = "rename"
		case strings.Contains(m[2], "meta.db.new>"):
			call += " new"
		case strings.Contains(m[2], "meta.db>"):
			call += " meta.db"
		case strings.Contains(m[2], filepath.Dir(path)+">"):
			call += " directory"
		default:
			continue
		}
		calls = append(calls, call)
	}
	return slices.Compact(calls)
}
