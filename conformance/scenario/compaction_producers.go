package scenario

import (
	"fmt"

	"github.com/dozekafka/doze-kafka/conformance/judge"
)

// What the log cleaner leaves of producers and of their transactions (ST-41, ST-44, ST-46).
var (
	_ = judge.RegisterOwn("compaction-producers", cleaning, compactionProducers)
	_ = judge.RegisterOwn("compaction-transactions", cleaning, compactionTransactions)
	_ = judge.RegisterOwn("compaction-open-transaction", cleaning, compactionOpenTransaction)
	_ = judge.RegisterOwn("compaction-restart", cleaning, compactionRestart)
)

// compactionProducers has idempotent producers of whose batches, of whose last batch, some, or nothing stays.
func compactionProducers(e *judge.Env) {
	l := newCompactedLog(e, "t", e.Now(-4))
	fillProducers(l)
	l.segment(keyed("n", "1"))
	l.look("before")
	l.compact("once")
	send := func(stage, step string, b *judge.Batch) {
		l.c.Do(stage+": "+step, 9, one(-1, l.topic, b.At(l.time)))
	}
	again := func(stage string) {
		for i := range int32(3) {
			send(stage, fmt.Sprintf("the last batch of %d again", i), idempotent(30000+int64(i), 0, 2, "k", "2"))
		}
		send(stage, "the first of 30000 again", idempotent(30000, 0, 0, "a", "1", "b", "1"))
		send(stage, "a gap of 30000", idempotent(30000, 0, 9, "a", "1"))
		send(stage, "an epoch of before", idempotent(30003, 1, 1, "a", "1"))
	}
	again("once")
	l.segment(keyed("n", "2"))
	l.compact("twice")
	again("twice")
	l.segment(idempotent(30000, 0, 3, "z", "1"), idempotent(30003, 2, 1, "z", "2"))
	l.segment(keyed("z", "3"))
	l.compact("they have gone on")
	again("they have gone on")
}

// fillProducers makes segments with batches of producers: 30000 loses all, 30001 some, 30002 nothing, of 30003 the epoch rises.
func fillProducers(l *compactedLog) {
	l.segment(idempotent(30000, 0, 0, "a", "1", "b", "1"), idempotent(30001, 0, 0, "c", "1", "d", "1"), idempotent(30002, 0, 0, "e", "1", "f", "1"))
	l.segment(idempotent(30000, 0, 2, "a", "2"), idempotent(30001, 0, 2, "c", "2"), idempotent(30002, 0, 2, "g", "2"), idempotent(30003, 1, 0, "h", "1"))
	l.segment(idempotent(30003, 2, 0, "h", "2"), keyed("a", "3", "b", "3"), keyed("d", "3"))
	l.segment(keyed("h", "3", "c", "3"))
}

// compactionTransactions has committed and aborted transactions, and their markers, pass after pass, with and without a time for the markers to stay.
func compactionTransactions(e *judge.Env) {
	awaitTransactions(e)
	for _, x := range []struct {
		label   string
		configs []string
	}{{"day", nil}, {"now", []string{"delete.retention.ms", "0"}}} {
		l := newCompactedLog(e, x.label, e.Now(0), x.configs...)
		p, q, s := newCompactedTxn(e, x.label+"-p"), newCompactedTxn(e, x.label+"-q"), newCompactedTxn(e, x.label+"-s")
		l.segment(keyed("a", "0"))
		l.writes(p, records("a", "1", "b", "1")...)
		l.writes(q, records("c", "1", "a", "2")...)
		l.ends(p, true)
		l.ends(q, false)
		l.add(keyed("d", "1"))
		l.segment(keyed("e", "1"))
		l.writes(p, records("b", "2")...)
		l.ends(p, true)
		l.writes(q, records("d", "2", "b", "q")...)
		l.segment(keyed("f", "1"))
		l.ends(q, false)
		l.writes(s, judge.KeyValue("s", "1"), tombstone("e"))
		l.ends(s, true)
		l.segment(keyed("s", "2"))
		l.writes(s, judge.KeyValue("s", "3"))
		l.ends(s, false)
		l.segment(keyed("n", "0"))
		l.lookCommitted(x.label + ": before")
		l.compactCommitted(x.label + ": once")
		for n := 1; n < 5; n++ {
			l.segment(keyed("n", fmt.Sprint(n)))
			l.compactCommitted(fmt.Sprintf("%s: pass %d", x.label, n+1))
		}
		l.writes(p, judge.KeyValue("a", "p"))
		l.ends(p, true)
		l.writes(q, judge.KeyValue("a", "q"))
		l.ends(q, true)
		l.add(keyed("n", "last"))
		l.lookCommitted(x.label + ": they go on")
	}
}

// compactionOpenTransaction has one that is open: nothing from its segment on is compacted.
func compactionOpenTransaction(e *judge.Env) {
	awaitTransactions(e)
	for _, commit := range []bool{true, false} {
		label := map[bool]string{true: "committed", false: "aborted"}[commit]
		l := newCompactedLog(e, label, e.Now(0), "delete.retention.ms", "0")
		p, q := newCompactedTxn(e, label+"-p"), newCompactedTxn(e, label+"-q")
		l.segment(keyed("a", "1", "b", "1"), keyed("a", "2"))
		l.segment(keyed("b", "2"))
		l.writes(p, judge.KeyValue("a", "3"), judge.KeyValue("p", "1"))
		l.add(keyed("b", "3"))
		l.segment(keyed("a", "4"))
		l.writes(q, judge.KeyValue("q", "1"))
		l.ends(q, false)
		l.writes(p, judge.KeyValue("p", "2"))
		l.segment(keyed("b", "4"))
		e.Compact(l.topic, l.segments[1])
		l.lookCommitted(label + ": it is open")
		l.ends(p, commit)
		l.segment(keyed("n", "1"))
		l.compactCommitted(label + ": it has ended")
		for n := 2; n < 5; n++ {
			l.segment(keyed("n", fmt.Sprint(n)))
			l.compactCommitted(fmt.Sprintf("%s: pass %d", label, n+1))
		}
	}
}

// compactionRestart looks at a compacted log after a restart.
func compactionRestart(e *judge.Env) {
	awaitTransactions(e)
	l := newCompactedLog(e, "t", e.Now(-4))
	fillProducers(l)
	p := newCompactedTxn(e, "p")
	l.writes(p, judge.KeyValue("p", "1"))
	l.ends(p, false)
	l.segment(keyed("n", "1"))
	l.compact("before")
	e.Restart()
	e.AwaitTopic(l.topic.Name, 1)
	l.look("after")
	for i := range int32(3) {
		l.c.Do(fmt.Sprintf("the last batch of %d again", i), 9, one(-1, l.topic, idempotent(30000+int64(i), 0, 2, "k", "2").At(l.time)))
	}
	l.c.Do("a gap of 30000", 9, one(-1, l.topic, idempotent(30000, 0, 9, "a", "1").At(l.time)))
	l.c.Do("the next of 30000", 9, one(-1, l.topic, idempotent(30000, 0, 3, "a", "1").At(l.time)))
	l.end++
	l.segment(keyed("n", "2"))
	l.compact("again")
}
