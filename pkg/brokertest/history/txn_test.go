package history_test

import (
	"testing"

	"github.com/dozekafka/doze-kafka/pkg/brokertest/history"
)

// ST-71, ST-73: a transaction over two partitions with an offset, in each of its outcomes, seen wholly, in part, and not at all.
func TestTransactionsAreWhollyInOrWhollyOut(t *testing.T) {
	const offset = "offset g in 0"
	outcomes := map[string]func(tx history.Txn){
		"open":       func(history.Txn) {},
		"committing": func(tx history.Txn) { tx.Committing() },
		"committed":  func(tx history.Txn) { tx.Committing(); tx.Committed() },
		"aborted":    func(tx history.Txn) { tx.Committing(); tx.Aborted() },
	}
	for _, c := range []struct {
		outcome   string
		one, two  bool // the records in the first and the second partition are seen
		committed string
		want      history.Kind
	}{
		{"open", false, false, "0", ""},
		{"open", true, false, "0", history.Aborted},
		{"open", false, false, "7", history.Fact},
		{"committing", false, false, "0", ""},
		{"committing", true, true, "7", ""},
		{"committing", true, false, "7", history.Torn},
		{"committing", true, true, "0", history.Torn},
		{"committing", false, false, "7", history.Torn},
		{"committed", true, true, "7", ""},
		{"committed", true, false, "7", history.Lost},
		{"committed", false, false, "7", history.Lost},
		{"committed", true, true, "0", history.Fact},
		{"aborted", false, false, "0", ""},
		{"aborted", true, true, "0", history.Aborted},
		{"aborted", false, false, "7", history.Fact},
	} {
		h := history.New()
		h.Topic("a", 2)
		h.Promise(map[string]string{offset: "0"})
		tx := h.Transaction()
		one, two := tx.Send("a", 0, 1, 1, -1), tx.Send("a", 1, 1, 1, -1)
		tx.Offsets(map[string]string{offset: "7"})
		noError(t, h.Ack(one, 0, true))
		noError(t, h.Ack(two, 0, true))
		outcomes[c.outcome](tx)
		check := h.Check(history.Kill)
		for part, b := range []history.Batch{one, two} {
			read(check, int32(part), 0, append(logOf(b), nil)) // the batch and its marker are there in any case
			r := check.ReadCommitted("a", int32(part), 0)
			if part == 0 && c.one || part == 1 && c.two {
				r.Record(0, b.Value(0))
			}
			r.End(2, false)
		}
		check.Fact(offset, c.committed)
		check.Done()
		if c.want == "" && check.Err() != nil || c.want != "" && check.Count(c.want) == 0 {
			t.Errorf("%+v: %v", c, check.Violations)
		}
	}
}
