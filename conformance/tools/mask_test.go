package tools

import (
	"slices"
	"testing"
	"time"
)

func TestMaskHidesWhatARunDecides(t *testing.T) {
	m := newMasker("127.0.0.1:43211", "127.0.0.1:00000")
	m.now = func() time.Time { return time.UnixMilli(1_796_000_000_000) }
	for _, c := range [][2]string{
		{"127.0.0.1:43211 (1)", "127.0.0.1:00000 (1)"},
		{"m-2d6e3bd4-5f14-4b0d-9a40-2f7a4f0ac001 x", "m-00000000-0000-0000-0000-000000000001 x"},
		{"m-2d6e3bd4-5f14-4b0d-9a40-2f7a4f0ac002 x", "m-00000000-0000-0000-0000-000000000002 x"},
		{"m-2d6e3bd4-5f14-4b0d-9a40-2f7a4f0ac001 x", "m-00000000-0000-0000-0000-000000000001 x"},
		{"TopicId: tooShort	x", "TopicId: tooShort	x"},
		{"TopicId: AbCdEfGhIjKlMnOpQrStUv	x", "TopicId: topic-id-0000000000003	x"},
		{"CreateTime:1796000000123", "CreateTime:<now>"},
		{"CreateTime:1767607203000", "CreateTime:1767607203000"}, // a script's own
		{"2026-11-29 23:48:37,768 ERROR x", "ERROR x"},
		{"[2026-11-29 23:48:37,768] WARN x", "WARN x"},
		{"one of: [group], [all-groups]", "one of: [all-groups], [group]"},
		{"Member 6jRmI0bqRdGKL9oCbpgfhQ with", "Member <member> with"},
		{`"avg_throughput":1.9,`, `"avg_throughput":<measured>,`},
		{"console-consumer-12345 x", "console-consumer-<random> x"},
		{"clientId=adminclient-12]", "clientId=adminclient-<n>]"},
	} {
		if got := m.line(c[0]); got != c[1] {
			t.Errorf("%q is %q, want %q", c[0], got, c[1])
		}
	}
}

func TestStackFramesAndOptionsAreLeftOut(t *testing.T) {
	m := newMasker()
	got, err := m.lines([]string{"! a.B: c", "! \tat a.B.c(D.java:1)", "! Caused by: d", "! \t... 3 more", "! e", "! Option      Description", "! --f", "!   g", "[exit 1]"}, nil)
	if want := []string{"! a.B: c", "! Caused by: d", "! e", "! (the options)", "[exit 1]"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

func TestFilters(t *testing.T) {
	all := []string{"| b 12.5 ms", "| a   7"}
	for name, want := range map[string][]string{
		"sort":    {"| a   7", "| b 12.5 ms"},
		"numbers": {"| b N ms", "| a N"},
		"head 1":  {"| b 12.5 ms"},
		"grep 12": {"| b 12.5 ms"},
	} {
		if got, err := filter(all, name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q (%v), want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"tail", "head x"} {
		if got, err := filter(all, name); err == nil {
			t.Errorf("%s gives %q", name, got)
		}
	}
}
