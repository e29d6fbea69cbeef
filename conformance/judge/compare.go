package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const absent = "(absent)"

// Difference is one field in which our broker is not as Kafka was recorded.
type Difference struct {
	Scenario, Step string
	API            string // with version: "Produce v9"
	Path           string // "response.Topics[0].Partitions[0].ErrorCode"
	Kafka, Ours    string
}

// String is the difference in four lines.
func (d Difference) String() string {
	return fmt.Sprintf("%s, step %q (%s)\n  %s\n    Kafka: %s\n    ours:  %s", d.Scenario, d.Step, d.API, d.Path, d.Kafka, d.Ours)
}

// Report is all differences as text. One that shows the same in several steps of a scenario is told once.
func Report(all []Difference) []string {
	type key struct{ scenario, path, kafka, ours string }
	var order []key
	steps := map[key][]Difference{}
	for _, d := range all {
		k := key{d.Scenario, d.Path, d.Kafka, d.Ours}
		if steps[k] == nil {
			order = append(order, k)
		}
		steps[k] = append(steps[k], d)
	}
	var texts []string
	for _, k := range order {
		text := steps[k][0].String()
		for i, d := range steps[k][1:] {
			if i == 5 {
				text += fmt.Sprintf("\n  and in %d steps more", len(steps[k])-6)
				break
			}
			text += fmt.Sprintf("\n  also in step %q (%s)", d.Step, d.API)
		}
		texts = append(texts, text)
	}
	return texts
}

// Compare lists every difference between a recording and a run; both have to be plain. An error says that the scenario no longer asks what was recorded.
func Compare(kafka, ours *Recording) ([]Difference, error) {
	var all []Difference
	for i, k := range kafka.Exchanges {
		if i >= len(ours.Exchanges) {
			return all, fmt.Errorf("%s: the recording has a step %q, the scenario does not get there: record again", kafka.Scenario, k.Step)
		}
		o := ours.Exchanges[i]
		if k.Step != o.Step || k.API != o.API || k.Version != o.Version {
			return all, fmt.Errorf("%s: step %d is %q (%s v%d) in the recording and %q (%s v%d) now: record again", kafka.Scenario, i+1, k.Step, k.API, k.Version, o.Step, o.API, o.Version)
		}
		c := comparison{at: Difference{Scenario: kafka.Scenario, Step: k.Step, API: "raw bytes"}}
		if k.API != "" {
			c.at.API = fmt.Sprintf("%s v%d", k.API, k.Version)
		}
		c.exchange(k, o)
		all = append(all, c.all...)
	}
	if len(ours.Exchanges) > len(kafka.Exchanges) {
		return all, fmt.Errorf("%s: step %q is not in the recording: record again", kafka.Scenario, ours.Exchanges[len(kafka.Exchanges)].Step)
	}
	return all, nil
}

type comparison struct {
	at  Difference
	all []Difference
}

func (c *comparison) exchange(k, o Exchange) {
	c.value("request", k.Request, o.Request)
	c.value("outcome", outcome(k), outcome(o))
	if k.Outcome != o.Outcome {
		return
	}
	c.value("response", k.Response, o.Response)
	c.value("responseBytes", k.Bytes, o.Bytes)
	c.value("encoding", k.Encoding, o.Encoding)
}

func outcome(x Exchange) string {
	if x.Outcome == "" {
		return "answered"
	}
	return x.Outcome
}

func (c *comparison) add(path, kafka, ours string) {
	d := c.at
	d.Path, d.Kafka, d.Ours = path, kafka, ours
	c.all = append(c.all, d)
}

func (c *comparison) value(path string, k, o any) {
	switch kafka := k.(type) {
	case map[string]any:
		if ours, ok := o.(map[string]any); ok {
			c.object(path, kafka, ours)
			return
		}
	case []any:
		if ours, ok := o.([]any); ok {
			c.list(path, kafka, ours)
			return
		}
	}
	if kafka, ours := compact(k), compact(o); kafka != ours {
		c.add(path, kafka, ours)
	}
}

func (c *comparison) object(path string, k, o map[string]any) {
	names := slices.Sorted(maps.Keys(k))
	for name := range o {
		if _, ok := k[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		kafka, inKafka := k[name]
		ours, inOurs := o[name]
		switch at := path + "." + name; {
		case !inOurs:
			c.add(at, compact(kafka), absent)
		case !inKafka:
			c.add(at, absent, compact(ours))
		default:
			c.value(at, kafka, ours)
		}
	}
}

// list compares by name where the entries have names, so that one missing entry is one difference; else by position.
func (c *comparison) list(path string, k, o []any) {
	if kafka, ours := names(k), names(o); kafka != nil && ours != nil {
		c.named(path, k, o, kafka, ours)
		return
	}
	for i := range max(len(k), len(o)) {
		switch at := fmt.Sprintf("%s[%d]", path, i); {
		case i >= len(o):
			c.add(at, compact(k[i]), absent)
		case i >= len(k):
			c.add(at, absent, compact(o[i]))
		default:
			c.value(at, k[i], o[i])
		}
	}
}

func (c *comparison) named(path string, k, o []any, kafka, ours []string) {
	var common, ourOrder []string
	for i, name := range kafka {
		at := fmt.Sprintf("%s[%s]", path, name)
		j := slices.Index(ours, name)
		if j < 0 {
			c.add(at, compact(k[i]), absent)
			continue
		}
		common = append(common, name)
		c.value(at, k[i], o[j])
	}
	for j, name := range ours {
		if !slices.Contains(kafka, name) {
			c.add(fmt.Sprintf("%s[%s]", path, name), absent, compact(o[j]))
			continue
		}
		ourOrder = append(ourOrder, name)
	}
	if !slices.Equal(common, ourOrder) {
		c.add(path+" (order)", strings.Join(common, " "), strings.Join(ourOrder, " "))
	}
}

// nameFields tell the entries of a list apart.
var nameFields = []string{"Name", "Topic", "TopicID", "ResourceName", "ApiKey", "Partition", "Group", "MemberID"}

// names are what tells the entries of a list apart, or nil when nothing does.
func names(list []any) []string {
	for _, field := range nameFields {
		var all []string
		for _, entry := range list {
			object, ok := entry.(map[string]any)
			if !ok {
				return nil
			}
			name, ok := object[field]
			if !ok || name == nil || slices.Contains(all, compact(name)) {
				break
			}
			all = append(all, compact(name))
		}
		if len(all) == len(list) && len(all) > 0 {
			return all
		}
	}
	return nil
}
