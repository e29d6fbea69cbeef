package judge

import (
	"strings"
	"testing"
)

func recordingOf(t *testing.T, steps string) *Recording {
	t.Helper()
	r, err := Unmarshal([]byte(`{"kafka":"4.4.0","scenario":"s","exchanges":[` + steps + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCompareFindsEveryField(t *testing.T) {
	for _, c := range []struct{ name, kafka, ours, want string }{
		{"equal", `{"step":"a","api":"X","version":1,"response":{"A":[1,{"B":null}]}}`, `{"step":"a","api":"X","version":1,"response":{"A":[1,{"B":null}]}}`, ""},
		{"value", `{"step":"a","api":"X","version":1,"response":{"A":[1,{"B":null}]}}`, `{"step":"a","api":"X","version":1,"response":{"A":[1,{"B":"x"}]}}`,
			"s, step \"a\" (X v1)\n  response.A[1].B\n    Kafka: null\n    ours:  x"},
		{"null is not empty", `{"step":"a","response":{"A":null}}`, `{"step":"a","response":{"A":[]}}`, "s, step \"a\" (raw bytes)\n  response.A\n    Kafka: null\n    ours:  []"},
		{"list", `{"step":"a","response":{"A":[1,2]}}`, `{"step":"a","response":{"A":[1]}}`, "s, step \"a\" (raw bytes)\n  response.A[1]\n    Kafka: 2\n    ours:  (absent)"},
		{"named", `{"step":"a","response":{"A":[{"Name":"x","V":1},{"Name":"y","V":2}]}}`, `{"step":"a","response":{"A":[{"Name":"y","V":3}]}}`,
			"s, step \"a\" (raw bytes)\n  response.A[x]\n    Kafka: {\"Name\":\"x\",\"V\":1}\n    ours:  (absent)\ns, step \"a\" (raw bytes)\n  response.A[y].V\n    Kafka: 2\n    ours:  3"},
		{"order", `{"step":"a","response":{"A":[{"Name":"x"},{"Name":"y"}]}}`, `{"step":"a","response":{"A":[{"Name":"y"},{"Name":"x"}]}}`,
			"s, step \"a\" (raw bytes)\n  response.A (order)\n    Kafka: x y\n    ours:  y x"},
		{"closed", `{"step":"a","outcome":"connection closed"}`, `{"step":"a","response":{"A":1}}`, "s, step \"a\" (raw bytes)\n  outcome\n    Kafka: connection closed\n    ours:  answered"},
		{"bytes", `{"step":"a","responseBytes":"00"}`, `{"step":"a","responseBytes":"01"}`, "s, step \"a\" (raw bytes)\n  responseBytes\n    Kafka: 00\n    ours:  01"},
	} {
		found, err := Compare(recordingOf(t, c.kafka), recordingOf(t, c.ours))
		var text []string
		for _, d := range found {
			text = append(text, d.String())
		}
		if got := strings.Join(text, "\n"); got != c.want || err != nil {
			t.Errorf("%s: %v\ngot  %s\nwant %s", c.name, err, got, c.want)
		}
	}
}

func TestCompareWantsTheSameSteps(t *testing.T) {
	for name, ours := range map[string]string{"missing": "", "another": `{"step":"b"}`, "version": `{"step":"a","version":2}`, "more": `{"step":"a"},{"step":"b"}`} {
		if _, err := Compare(recordingOf(t, `{"step":"a"}`), recordingOf(t, ours)); err == nil || !strings.Contains(err.Error(), "record again") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestReportTellsADifferenceOnce(t *testing.T) {
	a := Difference{Scenario: "s", Step: "1", API: "X v1", Path: "p", Kafka: "k", Ours: "o"}
	b, other := a, a
	b.Step, other.Path = "2", "q"
	got := Report([]Difference{a, other, b})
	want := []string{"s, step \"1\" (X v1)\n  p\n    Kafka: k\n    ours:  o\n  also in step \"2\" (X v1)", other.String()}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q", got)
	}
}
