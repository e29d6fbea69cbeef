package scenario

import (
	"fmt"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

var _ = judge.Register("txn-end", txnEnd)

// txnEnd asks each version of EndTxn in each state that lasts.
func txnEnd(e *judge.Env) {
	awaitTransactions(e)
	topic := e.CreateTopic("t", 2)
	c := e.Conn()
	for v := range int16(6) {
		do := func(p txnProducer, s string, commit bool) txnProducer {
			return p.doEnd(e, c, fmt.Sprintf("v%d %s, commit %t", v, s, commit), v, commit)
		}
		name := e.Name(fmt.Sprint("v", v))
		do(txnProducer{"", anotherID, 0}, "empty id", true)
		do(txnProducer{name + "-unknown", anotherID, 0}, "unknown id", true)
		for _, commit := range []bool{true, false} {
			p := newTxn(e, fmt.Sprintf("v%d-%t", v, commit))
			do(p.as(anotherID), "Empty, another producer id", commit)
			do(p.later(1), "Empty, epoch +1", commit)
			do(p.later(-1), "Empty, epoch -1", commit)
			p = do(p, "Empty", commit)
			p = do(p, "Empty, again", commit)
			c.Do(fmt.Sprintf("v%d described after Empty, commit %t", v, commit), 0, describeTxn(p.name))
			p = again(e, p)
			p.opens(e, topic, 0)
			do(p.as(anotherID), "Ongoing, another producer id", commit)
			do(p.later(1), "Ongoing, epoch +1", commit)
			do(p.later(-1), "Ongoing, epoch -1", commit)
			before := p
			p = do(p, "Ongoing", commit)
			c.Do(fmt.Sprintf("v%d described after Ongoing, commit %t", v, commit), 0, describeTxn(p.name))
			do(before, "repeated", commit)
			do(before, "repeated, other result", !commit)
			do(before, "repeated once more", commit)
			do(p.as(anotherID), "complete, another producer id", commit)
			do(p.later(1), "complete, epoch +1", commit)
			do(p.later(-2), "complete, epoch -2", commit)
			p = do(p, "nothing more", commit)
			p = do(p, "nothing more, other result", !commit)
			p = do(p, "nothing at last", commit)
			c.Do(fmt.Sprintf("v%d described at last, commit %t", v, commit), 0, describeTxn(p.name))
			p = again(e, p)
			p.writes(e, topic, 1, 0, fmt.Sprintf("v%d %t", v, commit))
			p = do(p, "with records", commit)
			p.writes(e, topic, 1, next(v, 1), "more")
			p = do(p, "with more records", !commit)
			// A new instance in between.
			p.opens(e, topic, 0)
			do(again(e, p).later(-1), "after another instance", commit)
			do(p, "after another instance, own epoch", commit)
		}
	}
	c.Do("the log without records", 13, fetch(topic, 0))
	c.Do("the log with records", 13, committedFetch(topic, from(1, 0)))
}

// next is the sequence that comes after an EndTxn: that of a new epoch, or the one that is due.
func next(endTxn int16, sequence int32) int32 {
	if endTxn >= newEnd {
		return 0
	}
	return sequence
}
