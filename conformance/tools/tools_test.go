package tools

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/conformance/kafka"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var (
	record = flag.Bool("record", false, "run the scripts against Apache Kafka and write what the tools printed into testdata/")
	update = flag.Bool("update", false, "write what this run says about the tools into section.md")
	ours   = flag.String("ours", "", "a directory for the scripts with what the tools printed now, to look at")
)

// options: Kafka's retention would remove records whose timestamps are in the past half a minute after its start; it looks for them once a
// day instead.
var options = target.Options{Properties: map[string]string{"log.initial.task.delay.ms": "86400000"}}

// CF-5, GR-5: Kafka's own tools print with our broker what they print with Kafka, except for what differences.json lists. -record asks
// Kafka again; DOZE_KAFKA_TARGET=kafka shows that it says the same twice.
func TestTranscripts(t *testing.T) {
	target.Need(t, "java", "javac", "mvn")
	if *record {
		t.Setenv("DOZE_KAFKA_TARGET", "kafka")
	}
	t.Setenv("BOOTSTRAP", "") // each script has a broker of its own
	wanted, err := loadDifferences("differences.json")
	if err != nil {
		t.Fatal(err)
	}
	s := &session{wanted: wanted, againstKafka: os.Getenv("DOZE_KAFKA_TARGET") == "kafka", tallies: map[string]*tally{}}
	if s.runner, err = NewRunner(context.WithoutCancel(t.Context()), t.TempDir()); err != nil { // it is closed after the test
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.runner.Close(); err != nil {
			t.Error(err)
		}
	})
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { s.run(t, file) })
	}
	if s.scripts == len(files) && !s.againstKafka && !t.Failed() {
		s.finish(t)
	}
}

// session is what is known after all scripts.
type session struct {
	runner       *Runner
	wanted       differences
	againstKafka bool
	scripts      int
	tallies      map[string]*tally // by tool
}

func (s *session) run(t *testing.T, file string) {
	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	broker := target.Start(t, options)
	now, err := Play(t.Context(), s.runner, broker.Addr(), broker.DataDir(), t.TempDir(), string(recorded))
	if err != nil {
		t.Fatal(err)
	}
	s.scripts++
	if *ours != "" {
		if err := os.WriteFile(filepath.Join(*ours, filepath.Base(file)), []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if *record {
		if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	s.compare(t, string(recorded), now)
}

func (s *session) compare(t *testing.T, recorded, now string) {
	t.Helper()
	was, err := parse(recorded)
	if err != nil {
		t.Fatal(err)
	}
	is, err := parse(now)
	if err != nil {
		t.Fatal(err)
	}
	wanted := s.wanted
	if s.againstKafka {
		wanted = nil // Kafka is like itself
	}
	_, script, _ := strings.Cut(t.Name(), "/")
	for i, step := range was {
		tool, isTool := strings.CutPrefix(step.command, "$ ")
		if !isTool {
			continue
		}
		v := wanted.judge(script, step.command, step.output, is[i].output)
		if len(v.unwanted) > 0 {
			t.Errorf("%s\n  %s", step.command, strings.Join(v.unwanted, "\n  "))
		}
		tool, _, _ = strings.Cut(tool, " ")
		s.count(tool, v)
	}
}

func (s *session) count(tool string, v verdict) {
	c := s.tallies[tool]
	if c == nil {
		c = &tally{}
		s.tallies[tool] = c
	}
	c.calls++
	if len(v.wanted)+len(v.unwanted) == 0 {
		c.same++
	}
	c.differs = append(c.differs, v.wanted...)
}

// finish looks at what can be said after all scripts alone.
func (s *session) finish(t *testing.T) {
	t.Helper()
	for _, stale := range s.wanted.stale() {
		t.Errorf("a match of differences.json matches nothing: %s", stale)
	}
	calls, same := 0, 0
	for _, c := range s.tallies {
		calls, same = calls+c.calls, same+c.same
	}
	t.Logf("%d scripts, %d tools, %d calls, %d with the output of Kafka, the others with a wanted difference", s.scripts, len(s.tallies), calls, same)
	for tool := range classes {
		if s.tallies[tool] == nil && tool != replicaVerification {
			t.Errorf("no script calls %s", tool)
		}
	}
	want := section(kafka.Version(), s.tallies, s.wanted)
	if want == Section {
		return
	}
	if !*update {
		t.Fatal("section.md is not what this run says: go test ./tools -update, then make clients-doc")
	}
	if err := os.WriteFile("section.md", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
