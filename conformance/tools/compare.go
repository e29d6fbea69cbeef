package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Difference is one of the ways in which what the tools print is wanted to differ from what they print with Kafka.
type Difference struct {
	What, Kafka, Here, Why string
	Matches                []Match
}

// Match is where a difference shows. All are globs: of a script's name, a command, a line that only Kafka gives, a line that only ours gives.
type Match struct {
	Script, Command string
	Kafka, Ours     []string // of lines with their "| " or "! "

	used map[string]bool // globs of lines that matched something
}

// differences are those of differences.json.
type differences []Difference

func loadDifferences(path string) (differences, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all differences
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i := range all {
		for j := range all[i].Matches {
			all[i].Matches[j].used = map[string]bool{}
		}
	}
	return all, nil
}

// A verdict is how the output of a step compares with Kafka's.
type verdict struct {
	wanted   []string // the differences that it shows
	unwanted []string // lines that no difference explains, with "Kafka: " or "ours:  "
}

// judge compares the outputs of one command.
func (d differences) judge(script, command string, kafka, ours []string) verdict {
	var v verdict
	onlyKafka, onlyOurs := diff(kafka, ours)
	look := func(lines []string, name string, globs func(*Match) []string) {
		for _, line := range lines {
			what := d.explain(script, command, line, globs)
			if what == "" {
				v.unwanted = append(v.unwanted, name+line)
			} else if !slices.Contains(v.wanted, what) {
				v.wanted = append(v.wanted, what)
			}
		}
	}
	look(onlyKafka, "Kafka: ", func(m *Match) []string { return m.Kafka })
	look(onlyOurs, "ours:  ", func(m *Match) []string { return m.Ours })
	return v
}

// explain is the difference that allows for a line.
func (d differences) explain(script, command, line string, globs func(*Match) []string) string {
	for i := range d {
		for j := range d[i].Matches {
			m := &d[i].Matches[j]
			if !glob(m.Script, script) || !glob(m.Command, strings.TrimPrefix(command, "$ ")) {
				continue
			}
			for _, g := range globs(m) {
				if glob(g, line) {
					m.used[g] = true
					return d[i].What
				}
			}
		}
	}
	return ""
}

// stale are the globs that matched no line.
func (d differences) stale() (all []string) {
	for _, one := range d {
		for _, m := range one.Matches {
			for _, g := range slices.Concat(m.Kafka, m.Ours) {
				if !m.used[g] {
					all = append(all, fmt.Sprintf("%s: %s, %s, %q", one.What, m.Script, m.Command, g))
				}
			}
		}
	}
	return all
}

// glob: * stands for any text.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile(`^` + strings.Join(parts, `.*`) + `$`).MatchString(text)
}

// diff is the lines of a and of b that are not in their longest common subsequence.
func diff(a, b []string) (onlyA, onlyB []string) {
	common := make([][]int, len(a)+1) // of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			onlyA = append(onlyA, a[i])
			i++
		default:
			onlyB = append(onlyB, b[j])
			j++
		}
	}
	return append(onlyA, a[i:]...), append(onlyB, b[j:]...)
}
