package judge

import (
	"strings"
	"testing"
)

func TestRecordingIsReadAsItWasWritten(t *testing.T) {
	r := &Recording{Kafka: "4.4.0", Scenario: "s", Exchanges: []Exchange{{Step: "<a>", API: "X", Version: 3, Request: map[string]any{"N": int64(9223372036854775807)},
		Response: map[string]any{"List": []any{strings.Repeat("x", 200), 1, "y"}, "Empty": []any{}, "Null": nil}}}}
	first, err := r.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := r.Plain()
	if err != nil {
		t.Fatal(err)
	}
	second, err := plain.Marshal()
	if err != nil || string(first) != string(second) {
		t.Errorf("%v\n%s\n%s", err, first, second)
	}
	if !strings.Contains(string(first), `"<a>"`) || !strings.Contains(string(first), "\"request\": {\"N\":9223372036854775807}") {
		t.Errorf("%s", first)
	}
}
