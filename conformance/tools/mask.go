package tools

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A masker replaces what differs from run to run, by something as long where the tools align columns.
type masker struct {
	replace []string // pairs: what the script put in, such as the broker's address
	seen    map[string]string
	now     func() time.Time
}

var (
	uuids      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	topicIDs   = regexp.MustCompile(`(TopicId: )([A-Za-z0-9_-]{22})`)
	clusterIDs = regexp.MustCompile(`(Cluster ID: )(\S+)`)
	millis     = regexp.MustCompile(`\b1[0-9]{12}\b`)
	adminIDs   = regexp.MustCompile(`adminclient-[0-9]+`)
	directory  = regexp.MustCompile(`(directoryId": "|^[0-9]+\s+)[A-Za-z0-9_-]{22}`)
	frames     = regexp.MustCompile(`^[|!] \t(at |\.\.\. [0-9]+ more)`)
	usage      = regexp.MustCompile(`^! (Option +Description|usage: .*)$`)
	logTimes   = regexp.MustCompile(`^\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[,.]\d{3}\]? `)
	memberIDs  = regexp.MustCompile(`(Member )[A-Za-z0-9_-]{22} `) // those that a client gives itself
	throughput = regexp.MustCompile(`("avg_throughput":)[0-9.]+`)
	optionList = regexp.MustCompile(`\[[a-z-]+\](, \[[a-z-]+\])+`) // in the order of a hash map
	consoleIDs = regexp.MustCompile(`(console-(?:share-)?consumer-|perf-consumer-)[0-9]+\b`)
	digits     = regexp.MustCompile(`[0-9]+(\.[0-9]+)?(E-?[0-9]+)?`)
	spaces     = regexp.MustCompile(` +`)
)

// nearNow is how far from the present a time may be to be masked; scripts use times that are further away.
const nearNow = 20 * time.Minute

func newMasker(replace ...string) *masker {
	return &masker{replace: replace, seen: map[string]string{}, now: time.Now}
}

// lines masks the lines of an output, drops the stack frames of an exception and the list of options after an error, and applies the
// script's filters.
func (m *masker) lines(all, filters []string) ([]string, error) {
	var kept []string
	inUsage := false
	for _, line := range all {
		if frames.MatchString(line) || inUsage && strings.HasPrefix(line, "!") {
			continue
		}
		if usage.MatchString(line) {
			inUsage = true
			kept = append(kept, "! (the options)")
			continue
		}
		kept = append(kept, line[:min(2, len(line))]+m.line(line[min(2, len(line)):]))
	}
	for _, f := range filters {
		var err error
		if kept, err = filter(kept, f); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

func (m *masker) line(line string) string {
	line = strings.NewReplacer(m.replace...).Replace(line)
	line = logTimes.ReplaceAllString(line, "")
	line = uuids.ReplaceAllStringFunc(line, func(id string) string {
		return m.numbered(id, "00000000-0000-0000-0000-%012d")
	})
	line = topicIDs.ReplaceAllStringFunc(line, func(s string) string {
		return "TopicId: " + m.numbered(strings.TrimPrefix(s, "TopicId: "), "topic-id-%013d")
	})
	line = clusterIDs.ReplaceAllString(line, "${1}<cluster>")
	line = adminIDs.ReplaceAllString(line, "adminclient-<n>")
	line = directory.ReplaceAllString(line, "${1}<directory>")
	line = sortOptions(line)
	line = memberIDs.ReplaceAllString(line, "${1}<member> ")
	line = throughput.ReplaceAllString(line, "${1}<measured>")
	line = consoleIDs.ReplaceAllString(line, "${1}<random>")
	return millis.ReplaceAllStringFunc(line, func(s string) string {
		ms, err := strconv.ParseInt(s, 10, 64)
		if away := m.now().Sub(time.UnixMilli(ms)); err != nil || away > nearNow || away < -nearNow {
			return s
		}
		return "<now>"
	})
}

// sortOptions sorts the lists of options in a tool's own messages.
func sortOptions(line string) string {
	return optionList.ReplaceAllStringFunc(line, func(list string) string {
		return strings.Join(slices.Sorted(slices.Values(strings.Split(list, ", "))), ", ")
	})
}

// numbered gives the same id the same number, in the order in which they are seen.
func (m *masker) numbered(id, form string) string {
	if m.seen[id] == "" {
		m.seen[id] = fmt.Sprintf(form, len(m.seen)+1)
	}
	return m.seen[id]
}

// filter does what a script's `| name` asks for.
func filter(all []string, name string) ([]string, error) {
	verb, arg, _ := strings.Cut(name, " ")
	var out []string
	switch verb {
	case "sort": // where the order is that of a hash map of the broker
		out = slices.Sorted(slices.Values(all))
	case "numbers": // measured ones; and the width of their columns
		for _, line := range all {
			out = append(out, spaces.ReplaceAllString(digits.ReplaceAllString(line, "N"), " "))
		}
	case "head": // of a usage text
		n, err := strconv.Atoi(arg)
		if err != nil {
			return nil, err
		}
		out = all[:min(n, len(all))]
	case "grep":
		for _, line := range all {
			if strings.Contains(line, arg) {
				out = append(out, line)
			}
		}
	default:
		return nil, fmt.Errorf("no filter %q: sort, numbers, head N, grep TEXT", name)
	}
	return out, nil
}
