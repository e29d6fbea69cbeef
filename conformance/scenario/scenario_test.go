package scenario_test

import (
	"flag"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/dozekafka/doze-kafka/conformance/judge"
	"github.com/dozekafka/doze-kafka/conformance/kafka"
	_ "github.com/dozekafka/doze-kafka/conformance/scenario"
	"github.com/dozekafka/doze-kafka/conformance/target"
)

var (
	record     = flag.Bool("record", false, "run the scenarios against Apache Kafka and write the recordings")
	update     = flag.Bool("update", false, "write the table of wanted differences into docs/limitations.md")
	recordings = flag.String("recordings", "../recordings", "the directory of the recordings")
)

const (
	differences = "../differences.json"
	limitations = "../../docs/limitations.md"
)

// shared are the options of the broker that most scenarios run on. Kafka's retention would remove records whose timestamps are
// in the past half a minute after its start; it looks for them once a day instead.
var shared = target.Options{Properties: map[string]string{"log.initial.task.delay.ms": "86400000"}}

// CF-1, CF-2, CF-3, CF-4: every scenario, run against our broker, gives what Apache Kafka gave when it was recorded, except for what
// differences.json lists. ST-40, ST-41, ST-43 to ST-47, ST-49: so do those named compaction-*, of what is left of a log. -record makes the recordings; DOZE_KAFKA_TARGET=kafka shows that a second run against Kafka gives the same bytes.
func TestScenarios(t *testing.T) {
	wanted, err := judge.LoadDifferences(differences)
	if err != nil {
		t.Fatal(err)
	}
	againstKafka := *record || os.Getenv("DOZE_KAFKA_TARGET") == "kafka"
	if *record {
		t.Setenv("DOZE_KAFKA_TARGET", "kafka")
		t.Setenv("BOOTSTRAP", "")
	}
	broker := target.Start(t, shared)
	s := &session{wanted: wanted, againstKafka: againstKafka, asked: map[string]map[int16]bool{}}
	t.Cleanup(func() { s.finish(t, broker.Addr()) }) // after those that run side by side
	for _, sc := range judge.All() {
		t.Run(sc.Name, func(t *testing.T) {
			if sc.Options == nil {
				s.run(t, sc, broker, nil)
				return
			}
			if !againstKafka {
				t.Parallel() // they wait for timers more than they work
			}
			own := target.Start(t, *sc.Options)
			s.run(t, sc, own, func() { own.Stop(); own.Restart() })
		})
	}
}

// finish looks at what can be said after all scenarios alone.
func (s *session) finish(t *testing.T, addr string) {
	t.Logf("%d scenarios, %d exchanges, %d wanted differences", s.scenarios, s.exchanges, s.allowed)
	if s.scenarios < len(judge.All()) {
		t.Log("not all scenarios were run: no test of coverage, nor of stale entries in differences.json")
		return
	}
	s.checkCoverage(t, addr)
	if !s.againstKafka {
		for _, stale := range s.wanted.Stale() {
			t.Errorf("an entry of differences.json matches nothing: %s", stale)
		}
	}
}

// session is what is known after all scenarios.
type session struct {
	againstKafka bool

	mu                            sync.Mutex // guards what follows
	wanted                        *judge.Differences
	scenarios, exchanges, allowed int
	asked                         map[string]map[int16]bool // versions by API name
}

func (s *session) run(t *testing.T, sc judge.Scenario, b *target.Broker, restart func()) {
	e := judge.NewEnv(t, sc.Name, b.Addr(), s.againstKafka)
	e.CanRestart(restart)
	e.CanCompact(judge.Cleaner{Control: b.Control(), FirstDirty: func(topic string) int64 { return b.FirstDirty(topic, 0) }})
	defer e.Close()
	sc.Run(e)
	run := &judge.Recording{Kafka: kafka.Version(), Scenario: sc.Name, Exchanges: e.Exchanges()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countLocked(run)
	if *record {
		write(t, run)
		return
	}
	s.compareLocked(t, run)
}

func (s *session) countLocked(r *judge.Recording) {
	s.scenarios++
	s.exchanges += len(r.Exchanges)
	for _, x := range r.Exchanges {
		if x.API == "" {
			continue
		}
		if s.asked[x.API] == nil {
			s.asked[x.API] = map[int16]bool{}
		}
		s.asked[x.API][x.Version] = true
	}
}

func write(t *testing.T, r *judge.Recording) {
	t.Helper()
	b, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(*recordings, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(judge.Path(*recordings, r.Scenario), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *session) compareLocked(t *testing.T, run *judge.Recording) {
	t.Helper()
	recorded, err := judge.Load(*recordings, run.Scenario)
	if err != nil {
		t.Fatal(err)
	}
	if recorded.Kafka != kafka.Version() {
		t.Errorf("recorded from Kafka %s, and %s is pinned: record again", recorded.Kafka, kafka.Version())
	}
	plain, err := run.Plain()
	if err != nil {
		t.Fatal(err)
	}
	found, err := judge.Compare(recorded, plain)
	if err != nil {
		t.Error(err)
	}
	unwanted := found
	if !s.againstKafka {
		unwanted = s.wanted.Unwanted(found)
		s.allowed += len(found) - len(unwanted)
	}
	for _, text := range judge.Report(unwanted) {
		t.Error(text)
	}
}

// CF-4, CF-6: no version is advertised that was not asked for.
func (s *session) checkCoverage(t *testing.T, addr string) {
	t.Helper()
	if s.againstKafka {
		return // it advertises much that ours does not
	}
	e := judge.NewEnv(t, "coverage", addr, false)
	defer e.Close()
	versions := e.Quiet(4, softwareNamed(kmsg.NewPtrApiVersionsRequest())).(*kmsg.ApiVersionsResponse)
	for _, k := range versions.ApiKeys {
		name := kmsg.NameForKey(k.ApiKey)
		var missing []int16
		for v := k.MinVersion; v <= k.MaxVersion; v++ {
			if !s.asked[name][v] {
				missing = append(missing, v)
			}
		}
		if len(missing) > 0 {
			t.Errorf("%s: versions %v are advertised and in no recording", name, missing)
		}
		t.Logf("%s v%d to v%d: recorded versions %v", name, k.MinVersion, k.MaxVersion, slices.Sorted(maps.Keys(s.asked[name])))
	}
}

func softwareNamed(r *kmsg.ApiVersionsRequest) *kmsg.ApiVersionsRequest {
	r.ClientSoftwareName, r.ClientSoftwareVersion = "judge", "1"
	return r
}

// CF-3: docs/limitations.md shows what differences.json lists.
func TestLimitationsShowEveryWantedDifference(t *testing.T) {
	wanted, err := judge.LoadDifferences(differences)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(limitations)
	if err != nil {
		t.Fatal(err)
	}
	want, err := wanted.Insert(string(page))
	if err != nil {
		t.Fatal(err)
	}
	if want == string(page) {
		return
	}
	if !*update {
		t.Fatal("docs/limitations.md is not what differences.json says: make limitations")
	}
	if err := os.WriteFile(limitations, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A recording without a scenario would be compared with nothing.
func TestEveryRecordingHasAScenario(t *testing.T) {
	entries, err := os.ReadDir(*recordings)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.ContainsFunc(judge.All(), func(s judge.Scenario) bool { return s.Name+".json" == entry.Name() }) {
			t.Errorf("recordings/%s is of no scenario: remove it", entry.Name())
		}
	}
}
