package transcript

import "testing"

func TestDifferenceIsTheFirstLine(t *testing.T) {
	for _, c := range []struct{ got, want, difference string }{
		{"a\n-> 1\n", "a\n-> 1\n", ""},
		{"a\n-> 2\nb\n", "a\n-> 1\nc\n", "line 2:\n got -> 2\nwant -> 1"},
		{"a\n-> 1", "a", "line 2:\n got -> 1\nwant (the end)"},
		// A command that prints less than it did.
		{"a", "a\n-> 1", "line 2:\n got (the end)\nwant -> 1"},
	} {
		if d := difference(c.got, c.want); d != c.difference {
			t.Errorf("%q for %q: %q", c.got, c.want, d)
		}
	}
}
