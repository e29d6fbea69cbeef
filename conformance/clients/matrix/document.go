package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dozekafka/doze-kafka/conformance/tools"
)

const documentHead = `# Clients

<!-- Written by a run of the client matrix: make clients-doc. Do not edit. -->

One and the same workload was run with each of these clients against this broker; ` + "`.ci/run`" + ` runs it again, and fails if this table says anything else.
The programs are in ` + "`conformance/clients/drivers`" + `, what they are told and checked for in ` + "`conformance/clients/PROTOCOL.md`" + `.

`

const documentSteps = `
- **create**: the client's admin API makes a topic of six partitions.
- **codecs**: records with keys, values and headers are produced with acks=all with each codec, and read back from outside with the codec of the stored batch.
- **idempotent**: the same again with the idempotent producer.
- **eager**, **cooperative**: the whole workload in a group with an eager assignor (range, or round robin where a client has no range), and with the cooperative
  sticky one. Three members join at once; every partition has one owner at any instant, and
  every record comes once, in order, with the bytes that were produced.
- **commit**: the members commit their positions; the broker is asked for them from outside.
- **rebalance**: one member leaves, the other two have all partitions, and nothing that was committed comes again.
- **restart**: the broker is killed with SIGKILL and started on the same port and data, with the two members in the group; what is produced then comes to them once, and they commit again.
- **resume**: all leave; a new member of the group begins exactly at the commits.
- **transactions**: records and offsets of a group are committed and aborted; a second instance fences the first, whose transaction is aborted and can't be ended any more;
  one that has timed out is aborted and can't be ended either. What a reader from outside sees, and the group's offsets, are exactly those of the committed ones.
- **read committed**: a member of a group reads the same topic with its isolation level: exactly what was committed, while a transaction is open beside it.

## What a client has not

These are the clients' own limits: against Apache Kafka they are the same.

`

// document is docs/clients.md.
func document(results map[string]*result) string {
	var b strings.Builder
	b.WriteString(documentHead)
	columns := slices.Concat([]string{"client", "version", "language", "create", "codecs", "idempotent"}, lastSteps)
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, d := range Drivers {
		if r := results[d.Name]; r != nil {
			b.WriteString(r.row() + "\n")
		}
	}
	b.WriteString(documentSteps)
	for _, d := range Drivers {
		for _, what := range slices.Sorted(maps.Keys(d.Limits)) {
			fmt.Fprintf(&b, "- %s, %s: %s.\n", d.Name, what, d.Limits[what])
		}
	}
	b.WriteString("\n" + tools.Section)
	return b.String()
}

// differences compares the document with a run. A client that was not run here, because a program is missing, is not compared; nor is the
// version of kcat, which is the machine's.
func differences(have string, results map[string]*result) (differ []string) {
	rows := map[string]*result{}
	for _, d := range Drivers {
		rows[d.Name] = &result{}
		rows[d.Name].info.Client = d.Name
	}
	maps.Copy(rows, results)
	haveLines, wantLines := strings.Split(have, "\n"), strings.Split(document(rows), "\n")
	for i := range max(len(haveLines), len(wantLines)) {
		var h, w string
		if i < len(haveLines) {
			h = haveLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		name, isRow := rowOf(w)
		if name == "kcat" {
			h, w = withoutVersion(h), withoutVersion(w)
		}
		if h == w || isRow && results[name] == nil {
			continue
		}
		differ = append(differ, fmt.Sprintf("line %d says\n  %s\nthe run\n  %s", i+1, h, w))
	}
	return differ
}

// rowOf is the client of a line of the table.
func rowOf(line string) (name string, ok bool) {
	cells := strings.Split(line, " | ")
	if len(cells) < 6 {
		return "", false
	}
	name = strings.TrimPrefix(cells[0], "| ")
	return name, slices.ContainsFunc(Drivers, func(d *Driver) bool { return d.Name == name })
}

func withoutVersion(row string) string {
	cells := strings.Split(row, " | ")
	if len(cells) > 1 {
		cells[1] = ""
	}
	return strings.Join(cells, " | ")
}
