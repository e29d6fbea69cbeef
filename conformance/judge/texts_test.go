package judge

import "testing"

func TestTextsAreSomeOrNone(t *testing.T) {
	tree := map[string]any{"A": "x", "B": []any{map[string]any{"A": "y", "C": "z"}, map[string]any{"A": ""}, map[string]any{"A": nil}}}
	hideTexts(tree, []string{"A"})
	if got := compact(tree); got != `{"A":"<text>","B":[{"A":"<text>","C":"z"},{"A":""},{"A":null}]}` {
		t.Error(got)
	}
}
