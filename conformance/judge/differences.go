package judge

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// Wanted is a difference that is wanted: a row of docs/limitations.md, and where it shows in recordings.
type Wanted struct {
	What    string  `json:"what"`
	Kafka   string  `json:"kafka"`
	Here    string  `json:"here"`
	Why     string  `json:"why"`
	Matches []Match `json:"matches"`
}

// Match says where a wanted difference shows. Every field is a pattern in which * stands for any text; an empty one matches anything.
type Match struct {
	Scenario string `json:"scenario,omitempty"`
	Step     string `json:"step,omitempty"`
	API      string `json:"api,omitempty"` // "Metadata v*"
	Path     string `json:"path,omitempty"`
	Kafka    string `json:"kafka,omitempty"`
	Ours     string `json:"ours,omitempty"`
}

// Differences are the wanted ones, and which of their matches were seen.
type Differences struct {
	Wanted []Wanted
	seen   map[[2]int]bool
}

// LoadDifferences reads differences.json.
func LoadDifferences(path string) (*Differences, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := &Differences{seen: map[[2]int]bool{}}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d.Wanted); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, w := range d.Wanted {
		if w.What == "" || w.Kafka == "" || w.Here == "" || w.Why == "" || len(w.Matches) == 0 {
			return nil, fmt.Errorf("%s: %q: what, kafka, here, why and matches are needed", path, w.What)
		}
	}
	return d, nil
}

// Unwanted returns those of all that no match allows.
func (d *Differences) Unwanted(all []Difference) []Difference {
	var rest []Difference
	for _, x := range all {
		if !d.allows(x) {
			rest = append(rest, x)
		}
	}
	return rest
}

func (d *Differences) allows(x Difference) bool {
	allowed := false
	for i, w := range d.Wanted {
		for j, m := range w.Matches {
			if m.matches(x) {
				d.seen[[2]int{i, j}] = true
				allowed = true
			}
		}
	}
	return allowed
}

func (m Match) matches(x Difference) bool {
	return glob(m.Scenario, x.Scenario) && glob(m.Step, x.Step) && glob(m.API, x.API) && glob(m.Path, x.Path) && glob(m.Kafka, x.Kafka) && glob(m.Ours, x.Ours)
}

func glob(pattern, s string) bool {
	if pattern == "" {
		return true
	}
	return regexp.MustCompile(`(?s)^` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `$`).MatchString(s)
}

// Stale lists the matches that allowed nothing, after every scenario was compared.
func (d *Differences) Stale() []string {
	var stale []string
	for i, w := range d.Wanted {
		for j, m := range w.Matches {
			if !d.seen[[2]int{i, j}] {
				stale = append(stale, fmt.Sprintf("%s: %+v", w.What, m))
			}
		}
	}
	return stale
}

// Markers around what Table makes, in docs/limitations.md.
const (
	tableBegin = "<!-- differences: generated from conformance/differences.json by `make limitations` -->\n"
	tableEnd   = "<!-- /differences -->\n"
)

// Table is the wanted differences as Markdown.
func (d *Differences) Table() string {
	var b strings.Builder
	b.WriteString("| what | Kafka | here | why |\n|---|---|---|---|\n")
	for _, w := range d.Wanted {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", w.What, w.Kafka, w.Here, w.Why)
	}
	return b.String()
}

// Insert returns page with the table between its markers.
func (d *Differences) Insert(page string) (string, error) {
	before, rest, ok := strings.Cut(page, tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return "", fmt.Errorf("no markers %q and %q", tableBegin, tableEnd)
	}
	return before + tableBegin + d.Table() + tableEnd + after, nil
}
