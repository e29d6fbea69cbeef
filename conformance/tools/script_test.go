package tools

import (
	"slices"
	"testing"
)

func TestScriptIsTheSameAfterParseAndFormat(t *testing.T) {
	script := "# About.\n\n% file a\n< one\n< two\n$ kafka-topics --list | sort\n| a\n|\n!\n! b\n[exit 1]\n\n$ kafka-topics\n# The end.\n"
	steps, err := parse(script)
	if err != nil {
		t.Fatal(err)
	}
	if got := format(steps); got != script {
		t.Errorf("got\n%s\nwant\n%s", got, script)
	}
	if len(steps) != 4 || len(steps[1].output) != 5 || len(steps[0].input) != 2 {
		t.Errorf("steps %+v", steps)
	}
}

func TestScriptWithALineOfNoKindIsRefused(t *testing.T) {
	for _, script := range []string{"| output of nothing", "$ a\nnothing", "$ a\n<no space"} {
		if steps, err := parse(script); err == nil {
			t.Errorf("%q is %+v", script, steps)
		}
	}
}

func TestOutputHasAllStreamsAndTheStatus(t *testing.T) {
	got := output(Result{Stdout: "a  \n\nb", Stderr: "c\n", Exit: 3})
	if want := []string{"| a", "|", "| b", "! c", "[exit 3]"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := output(Result{}); got != nil {
		t.Errorf("nothing is %q", got)
	}
}

func TestWordsAreThoseOfAShell(t *testing.T) {
	args, filters, err := words(`kafka-topics  --topic 'a b|c' --x "" --y=[1,2] | head 3 | sort`)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"kafka-topics", "--topic", "a b|c", "--x", "", "--y=[1,2]"}; !slices.Equal(args, want) {
		t.Errorf("args %q, want %q", args, want)
	}
	if want := []string{"head 3", "sort"}; !slices.Equal(filters, want) {
		t.Errorf("filters %q, want %q", filters, want)
	}
	if _, _, err := words("a 'b"); err == nil {
		t.Error("a quote without an end is nothing")
	}
}
