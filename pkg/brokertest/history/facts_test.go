package history_test

import (
	"strings"
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
)

// facts: unanswered requests leave a choice, answers and refusals none.
func TestFactsAreWhatTheyMayBe(t *testing.T) {
	h := history.New()
	one, two := map[string]string{"offset g a 0": "1"}, map[string]string{"offset g a 0": "2"}
	h.Promise(one)
	h.Begin(two)
	if got := strings.Join(h.May("offset g a 0"), " "); got != "1 2" {
		t.Errorf("while a request is on its way: %s", got)
	}
	h.Deny(two)
	if got := strings.Join(h.May("offset g a 0"), " "); got != "1" {
		t.Errorf("after a refusal: %s", got)
	}
	h.Begin(two)
	h.Promise(two)
	if got := strings.Join(h.May("offset g a 0"), " "); got != "2" {
		t.Errorf("after the answer: %s", got)
	}
}
