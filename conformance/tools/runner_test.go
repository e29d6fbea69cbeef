package tools

import "testing"

func TestAnswersOfTheRunner(t *testing.T) {
	if r, err := parseAnswer("2 YQ== Yg=="); err != nil || r != (Result{Stdout: "a", Stderr: "b", Exit: 2}) {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := parseAnswer("0  "); err != nil || r != (Result{}) {
		t.Errorf("nothing printed: %+v, %v", r, err)
	}
	for _, line := range []string{"", "0", "0 a b c", "x YQ== YQ==", "0 ! YQ==", "0 YQ== !"} {
		if r, err := parseAnswer(line); err == nil {
			t.Errorf("%q is %+v", line, r)
		}
	}
}
