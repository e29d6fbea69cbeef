package judge

import (
	"fmt"
	"regexp"

	"github.com/dozekafka/doze-kafka/conformance/target"
)

// Scenario is a program whose answers are recorded.
type Scenario struct {
	Name string // also that of its recording, and the beginning of its topics' names
	Run  func(*Env)
	// Options make a broker of the scenario's own. nil: it shares one with all others that want nothing else.
	Options *target.Options
}

var scenarios []Scenario

// All are the registered scenarios.
func All() []Scenario { return scenarios }

// Register adds a scenario that runs on the shared broker, from a package variable: var _ = judge.Register("produce-acks", produceAcks).
func Register(name string, run func(*Env)) bool { return add(Scenario{Name: name, Run: run}) }

// RegisterOwn adds a scenario that gets a broker of its own, with these options.
func RegisterOwn(name string, o target.Options, run func(*Env)) bool {
	return add(Scenario{Name: name, Run: run, Options: &o})
}

var nameRule = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func add(s Scenario) bool {
	if !nameRule.MatchString(s.Name) {
		panic(fmt.Sprintf("scenario %q: a name is of a-z, 0-9 and -", s.Name))
	}
	for _, other := range scenarios {
		if other.Name == s.Name {
			panic(fmt.Sprintf("two scenarios are named %q", s.Name))
		}
	}
	scenarios = append(scenarios, s)
	return true
}
