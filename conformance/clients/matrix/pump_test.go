//go:build unix

package matrix

import (
	"os"
	"strings"
	"testing"
)

// piped is a session whose drivers are pipes that the test writes into.
func piped(t *testing.T, names ...string) (*session, map[string]*os.File) {
	t.Helper()
	s := &session{t: t, ledger: newLedger(2, true, false)}
	writers := map[string]*os.File{}
	for _, name := range names {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			w.Close() //nolint:errcheck // a pipe of the test's own
			r.Close() //nolint:errcheck // the same
		})
		s.sources = append(s.sources, &source{driver: &driver{name: name, session: s}, pipe: r})
		writers[name] = w
	}
	return s, writers
}

// write puts text into a driver's pipe.
func write(t *testing.T, w *os.File, text string) {
	t.Helper()
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// look reads and judges once.
func (s *session) look(t *testing.T) error {
	t.Helper()
	if err := wait(s.sources); err != nil {
		t.Fatal(err)
	}
	if err := drainAll(s.sources); err != nil {
		t.Fatal(err)
	}
	s.judge(s.sources)
	return s.failure
}

const (
	takes    = `{"event":"assigned","partitions":[0],"owned":[0]}` + "\n"
	givesUp  = `{"event":"revoked","partitions":[0],"owned":[]}` + "\n"
	takesTwo = `{"event":"assigned","partitions":[0,1],"owned":[0,1]}` + "\n"
)

func TestAnAssignmentIsJudgedAfterWhatTheOthersHadWritten(t *testing.T) {
	s, w := piped(t, "a", "b", "c") // a is read first
	write(t, w["c"], takes)
	if err := s.look(t); err != nil {
		t.Fatal(err)
	}
	write(t, w["b"], takes+givesUp)
	write(t, w["a"], takes)
	write(t, w["c"], givesUp)
	if err := s.look(t); err != nil {
		t.Error(err)
	}
}

func TestAnAssignmentThatOverlapsFails(t *testing.T) {
	s, w := piped(t, "a", "b")
	write(t, w["b"], takes)
	write(t, w["a"], takesTwo)
	if err := s.look(t); err == nil || !strings.Contains(err.Error(), "partition 0 is assigned to") {
		t.Error(err)
	}
}

func TestLinesAreReadWhole(t *testing.T) {
	s, w := piped(t, "a")
	write(t, w["a"], takes[:20])
	if err := s.look(t); err != nil || len(s.ledger.owner) != 0 {
		t.Fatal(err, s.ledger.owner)
	}
	write(t, w["a"], takes[20:]+"not JSON\n")
	if err := s.look(t); err == nil || s.ledger.owner[0] != "a" {
		t.Error(err, s.ledger.owner)
	}
	if err := w["a"].Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.look(t); err == nil || !s.sources[0].ended {
		t.Error("the end of the pipe is not noticed")
	}
}
