package tools

import (
	_ "embed" // section.md
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Section is the end of docs/clients.md, about Kafka's tools. TestTranscripts writes it (-update) and checks it.
//
//go:embed section.md
var Section string

const sectionTitle = "## Kafka's own tools\n"

const sectionHead = sectionTitle + `
The command line tools of Apache Kafka %s, run against this broker and against Kafka itself by the scripts in ` + "`conformance/tools/testdata`" + `,
which hold what was printed with Kafka. The second column is how often a tool was called, the third how often everything that it printed, and its
exit status, was the same; ids, ports, times and measured figures apart.

| tool | calls | the same | what differs |
|---|---|---|---|
`

const sectionOthers = `
In a test of their own: ` + "`kafka-verifiable-producer`" + ` and two ` + "`kafka-verifiable-consumer`" + `s of one group while the broker is killed and started again, and
` + "`kafka-replica-verification`" + `. ` + "`kafka-dump-log`" + ` reads the files of this broker.
`

// tally counts what the scripts did with one tool.
type tally struct {
	calls, same int
	differs     []string // what, in the order of differences.json
}

// section renders Section from a run of all scripts.
func section(version string, tallies map[string]*tally, d differences) string {
	var b strings.Builder
	fmt.Fprintf(&b, sectionHead, version)
	for _, tool := range slices.Sorted(maps.Keys(tallies)) {
		t := tallies[tool]
		var what []string
		for _, one := range d {
			if slices.Contains(t.differs, one.What) {
				what = append(what, one.What)
			}
		}
		fmt.Fprintf(&b, "| `%s` | %d | %d | %s |\n", tool, t.calls, t.same, strings.Join(what, "; "))
	}
	b.WriteString(sectionOthers + "\n| what differs | with Kafka | here | why |\n|---|---|---|---|\n")
	for _, one := range d {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", one.What, one.Kafka, one.Here, one.Why)
	}
	return b.String()
}

// insert puts the section at the end of docs/clients.md, in the place of the one that is there.
func insert(page, section string) string {
	head, _, _ := strings.Cut(page, "\n"+sectionTitle)
	return head + "\n" + section
}
