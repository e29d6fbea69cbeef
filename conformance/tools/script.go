package tools

import (
	"fmt"
	"strings"
)

// A step of a script is a line that does something, with the lines that belong to it:
//
//	# A comment.
//	% member m1 group topic      done by the test itself: see world.go
//	$ kafka-topics --list        a tool, which is told the broker's address
//	< a line                     of its standard input, or of the file that a % line writes
//	| a line                     of its standard output
//	! a line                     of its standard error
//	[exit 1]                     its exit status, if that is not 0
type step struct {
	before  []string // comments and empty lines
	command string   // with its "$ " or "% "
	input   []string
	output  []string // with "| ", "! " or as "[exit 1]"
}

// parse reads a script; what follows the last command is the last step, without a command.
func parse(script string) ([]step, error) {
	var steps []step
	var s step
	flush := func() {
		if s.command != "" {
			steps = append(steps, s)
			s = step{}
		}
	}
	for i, line := range strings.Split(strings.TrimRight(script, "\n"), "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			flush()
			s.before = append(s.before, line)
		case strings.HasPrefix(line, "$ "), strings.HasPrefix(line, "% "):
			flush()
			s.command = line
		case s.command == "":
			return nil, fmt.Errorf("line %d belongs to no command: %q", i+1, line)
		case strings.HasPrefix(line, "< "):
			s.input = append(s.input, line[2:])
		case line == "|" || line == "!" || strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "! ") || strings.HasPrefix(line, "[exit "):
			s.output = append(s.output, line)
		default:
			return nil, fmt.Errorf("line %d begins with nothing that is known: %q", i+1, line)
		}
	}
	return append(steps, s), nil
}

// format is the inverse of parse.
func format(steps []step) string {
	var b strings.Builder
	for _, s := range steps {
		for _, line := range s.before {
			b.WriteString(line + "\n")
		}
		if s.command == "" {
			continue
		}
		b.WriteString(s.command + "\n")
		for _, line := range s.input {
			b.WriteString("< " + line + "\n")
		}
		for _, line := range s.output {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// output is a result as the lines of a transcript. Spaces at the end of a line, with which the tools fill their columns, are left out.
func output(r Result) []string {
	var all []string
	add := func(mark, text string) {
		if text == "" {
			return
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			all = append(all, strings.TrimRight(mark+" "+line, " \t\r"))
		}
	}
	add("|", r.Stdout)
	add("!", r.Stderr)
	if r.Exit != 0 {
		all = append(all, fmt.Sprintf("[exit %d]", r.Exit))
	}
	return all
}

// words splits a command as a shell does: at spaces outside of quotes. `| sort` and the like at its end are its filters.
func words(command string) (args, filters []string, err error) {
	var all []string
	var word strings.Builder
	var quote rune
	started := false
	for _, r := range command {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, started = r, true
		case r == ' ':
			if started {
				all = append(all, word.String())
				word.Reset()
				started = false
			}
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if quote != 0 {
		return nil, nil, fmt.Errorf("a quote does not end: %s", command)
	}
	if started {
		all = append(all, word.String())
	}
	for i, w := range all {
		if w == "|" {
			return all[:i], strings.Split(strings.Join(all[i+1:], " "), " | "), nil
		}
	}
	return all, nil, nil
}
