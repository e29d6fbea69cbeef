package brokertest_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	removed     = flag.Bool("removed", false, "run the tests with each step of testdata/removed-steps.txt removed")
	removedStep = flag.String("removed.step", "", "only the steps whose names match this expression")
)

// A removedStep is a change of one file that takes away an fsync, or an order of writes.
type removedCode struct {
	name, file string
	tests      []string // packages, asked one after the other until one fails
	old, new   string
}

// removedSteps reads testdata/removed-steps.txt.
func removedSteps(t *testing.T) (steps []removedCode) {
	t.Helper()
	b, err := os.ReadFile("testdata/removed-steps.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, all, _ := strings.Cut(string(b), "\n\n")
	for block := range strings.SplitSeq(all, "=====\n") {
		head, change, ok := strings.Cut(block, "-----\n")
		before, after, ok2 := strings.Cut(change, "+++++\n")
		lines := strings.Split(strings.TrimSpace(head), "\n")
		if !ok || !ok2 || len(lines) != 3 {
			t.Fatalf("not a step: %q", block)
		}
		steps = append(steps, removedCode{lines[0], lines[1], strings.Fields(lines[2]), before, after})
	}
	return steps
}

// without is the file without the step.
func (s *removedCode) without() (string, error) {
	b, err := os.ReadFile(filepath.Join("../..", s.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(b), s.old); n != 1 {
		return "", fmt.Errorf("%s has %d places that read\n%s", s.file, n, s.old)
	}
	return strings.Replace(string(b), s.old, s.new, 1), nil
}

// The steps that the next test removes are those of the code.
func TestTheStepsToRemoveAreThere(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range removedSteps(t) {
		text, err := s.without()
		if err == nil {
			_, err = parser.ParseFile(token.NewFileSet(), s.file, text, 0)
		}
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if seen[s.name] || len(s.tests) == 0 {
			t.Errorf("%s: not named well", s.name)
		}
		seen[s.name] = true
	}
}

// Issue 6, Show 1: a test fails for each fsync and each order of writes that is taken out of the code.
//
//	go test ./pkg/brokertest -run TestEachRemovedStepIsCaught -v -timeout 2h -removed
func TestEachRemovedStepIsCaught(t *testing.T) {
	if !*removed {
		t.Skip("runs the tests some dozens of times: -removed")
	}
	only, err := regexp.Compile(*removedStep)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, s := range removedSteps(t) {
		if !only.MatchString(s.name) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			by, err := s.caughtBy(t)
			if err != nil {
				t.Error(err)
			}
			fmt.Fprintf(&table, "| %s | %s |\n", s.name, by)
			t.Log(by)
		})
	}
	t.Logf("\n| removed step | caught by |\n|---|---|\n%s", &table)
}

var (
	failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	hungTest   = regexp.MustCompile(`panic: test timed out[^\n]*\n\s*running tests:\n\s*(\w+)`)
)

// caughtBy is the first test that fails without the step.
func (s *removedCode) caughtBy(t *testing.T) (string, error) {
	overlay, err := s.overlay(t)
	if err != nil {
		return "", err
	}
	for _, pkg := range s.tests {
		cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-failfast", "-timeout=5m", "-overlay="+overlay, "./pkg/"+pkg)
		cmd.Dir = "../.."
		out, err := cmd.CombinedOutput()
		if err == nil {
			continue
		}
		if _, ran := errors.AsType[*exec.ExitError](err); !ran {
			return "", err
		}
		for _, exp := range []*regexp.Regexp{failedTest, hungTest} {
			if m := exp.FindAllSubmatch(out, -1); m != nil {
				return failures(pkg, m), nil
			}
		}
		return "", fmt.Errorf("%s: no test has failed, and yet: %s", pkg, out)
	}
	return "nothing", fmt.Errorf("no test of %v has noticed", s.tests)
}

// failures names the first tests of those that have failed.
func failures(pkg string, tests [][][]byte) string {
	const most = 3
	names := pkg
	for i, m := range tests {
		if i == most {
			return fmt.Sprintf("%s and %d more", names, len(tests)-most)
		}
		names += " " + string(m[1])
	}
	return names
}

// overlay makes the file that has the go command take the changed file for the original.
func (s *removedCode) overlay(t *testing.T) (string, error) {
	text, err := s.without()
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(filepath.Join("../..", s.file))
	if err != nil {
		return "", err
	}
	changed, list := filepath.Join(t.TempDir(), "changed.go"), filepath.Join(t.TempDir(), "overlay.json")
	b, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err == nil {
		err = errors.Join(os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(list, b, 0o600))
	}
	return list, err
}
