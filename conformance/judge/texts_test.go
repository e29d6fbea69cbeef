package judge

import (
	"reflect"
	"testing"
)

func TestTextsAreSomeOrNone(t *testing.T) {
	tree := map[string]any{"A": "x", "B": []any{map[string]any{"A": "y", "C": "z"}, map[string]any{"A": ""}, map[string]any{"A": nil}}}
	hideTexts(tree, []string{"A"})
	if got := compact(tree); got != `{"A":"<text>","B":[{"A":"<text>","C":"z"},{"A":""},{"A":null}]}` {
		t.Error(got)
	}
}

func TestHiddenFieldsAreTheSameWhateverTheyHold(t *testing.T) {
	tree := map[string]any{"LeaderID": "a", "Groups": []any{map[string]any{"Members": nil, "State": "Stable"}}}
	hide(tree, []string{"LeaderID", "Members"})
	want := map[string]any{"LeaderID": "<by chance>", "Groups": []any{map[string]any{"Members": "<by chance>", "State": "Stable"}}}
	if !reflect.DeepEqual(tree, want) {
		t.Errorf("got %v, want %v", tree, want)
	}
}
