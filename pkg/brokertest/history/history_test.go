package history_test

import (
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
)

// A broker that tells an offset, or a log start, and then another is found at once.
func TestAnswersThatContradictEachOtherAreFound(t *testing.T) {
	h, one, _, other := fixture(t)
	noError(t, h.Ack(one, 0, true)) // a repeat
	if h.Ack(one, 1, true) == nil {
		t.Error("another offset for a repeat")
	}
	h.Refuse(other)
	if h.Ack(other, 3, true) == nil {
		t.Error("an acknowledgement after a refusal")
	}
	if h.Starts("a", 0, 1) == nil {
		t.Error("a log start that nobody asked for")
	}
	if got := h.Acknowledged(); got != 3 {
		t.Errorf("%d records are acknowledged, want 3", got)
	}
}

// A clone is not changed by what becomes of its original.
func TestACloneGoesItsOwnWay(t *testing.T) {
	h, one, two, other := fixture(t)
	tx := h.Transaction()
	clone := h.Clone()
	noError(t, h.Ack(other, 3, true))
	tx.Committed()
	h.Topic("a", 1)
	check := clone.Check(history.Kill)
	read(check, 0, 0, logOf(one, two))
	check.Done()
	noError(t, check.Err())
	if clone.Partitions("a") != 2 {
		t.Error("the clone has the new topic")
	}
}
